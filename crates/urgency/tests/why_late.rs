//! The rows of "Why was it late" in docs/operations.md: each figure moves for its cause.
//!
//! All times here are inequalities between times of the same run.

mod common;

use common::{ends, spin};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Overrun, Runtime, Stats, join, scheduling_point, sync,
    time::{sleep, timeout},
    yield_now,
};

urgency::levels! { App: Urgent > Batch }

fn runtime(workers: usize) -> Runtime {
    let runtime = Runtime::builder().workers(workers).levels::<App>();
    runtime.build().unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What happened meanwhile.
fn during(runtime: &Runtime, f: impl FnOnce()) -> Stats {
    let before = runtime.stats();
    f();
    runtime.stats().since(&before)
}

#[test]
fn a_low_latency_of_a_late_answer_says_that_the_time_is_in_the_code_or_its_waits() {
    ends(|| {
        let runtime = runtime(1);
        let mut late = Duration::ZERO;
        let did = during(&runtime, || {
            let begun = Instant::now();
            let answers = Urgent.on(&runtime).spawn(async |_| sleep(ms(30)).await);
            answers.erase().get().unwrap();
            late = begun.elapsed();
        });
        let level = &did.levels[0];
        assert!(late >= ms(30));
        assert!(level.latency.sum() + level.total.running < late, "{late:?}");
        assert_eq!(level.total.lock_waits, 0);
    });
}

#[test]
fn latency_beside_running_of_the_same_levels_says_that_they_fill_the_workers() {
    // Polls that took a relief period would have turns among each other.
    let brief = Duration::from_micros(500);
    ends(move || {
        let runtime = runtime(1);
        let are_all = &*Box::leak(Box::new(AtomicBool::new(false)));
        let did = during(&runtime, || {
            Urgent
                .on(&runtime)
                .spawn(async |_| without_scheduling_point(are_all))
                .detach();
            let spins = (0..64).map(|_| Urgent.on(&runtime).spawn(async move |_| spin(brief)));
            let spins: Vec<_> = spins.collect();
            let now = runtime.stats();
            assert!(now.levels[0].queued > 0 && now.levels[0].oldest_wait.is_some());
            are_all.store(true, SeqCst);
            for spin in spins {
                spin.erase().get().unwrap();
            }
        });
        let level = &did.levels[0];
        assert!(
            level.latency.sum() >= brief * (1..60).sum::<u32>(),
            "each waits for those before it"
        );
        assert!(level.total.running >= ms(30));
        assert_eq!(did.levels[1].total.behind, Duration::ZERO);
    });
}

fn without_scheduling_point(stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        hint::spin_loop();
    }
}

#[test]
fn behind_reliefs_and_overruns_name_code_that_does_not_come_to_a_scheduling_point() {
    ends(|| {
        let runtime = runtime(1);
        let stop = &*Box::leak(Box::new(AtomicBool::new(false)));
        let did = during(&runtime, || {
            let (begun, begins) = channel();
            let batch = Batch.on(&runtime).spawn_fn(move |_| {
                begun.send(()).unwrap();
                without_scheduling_point(stop);
            });
            begins.recv().unwrap();
            let urgent = Urgent.on(&runtime).spawn(async |_| ());
            urgent.erase().get().unwrap();
            assert!(runtime.stats().overruns.iter().any(|it| it.now == 1));
            stop.store(true, SeqCst);
            batch.erase().get().unwrap();
            while runtime.stats().overruns.iter().all(|it| it.times == 0) {
                thread::yield_now();
            }
        });
        let batch = &did.levels[1].total;
        assert!(
            batch.reliefs >= 1 && batch.behind > Duration::ZERO,
            "{did:?}"
        );
        assert!(
            did.overruns
                .iter()
                .any(|it| it.what.contains("why_late") && it.level == "Batch")
        );
    });
}

#[test]
fn abandonments_say_that_batch_work_gave_way_and_running_says_to_which_level() {
    ends(|| {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicBool::new(false));
        let did = during(&runtime, || {
            let (begun, begins) = channel();
            let stops = stop.clone();
            let batch = Batch.on(&runtime).spawn_fn(move |_| {
                begun.send(()).unwrap();
                while !stops.load(SeqCst) {
                    scheduling_point();
                }
            });
            begins.recv().unwrap();
            for _ in 0..5 {
                Urgent
                    .on(&runtime)
                    .spawn(async |_| spin(ms(2)))
                    .erase()
                    .get()
                    .unwrap();
            }
            stop.store(true, SeqCst);
            batch.erase().get().unwrap();
        });
        assert!(did.levels[1].total.abandonments + did.levels[1].total.reliefs >= 1);
        assert!(did.levels[0].total.running >= ms(10));
    });
}

#[test]
fn asleep_and_no_steals_say_that_a_computation_has_no_forks_for_other_workers() {
    ends(|| {
        let runtime = runtime(2);
        let serial = during(&runtime, || runtime.run(|| spin(ms(40))));
        let jobs = |did: &Stats| did.total().jobs;
        let asleep: Duration = serial.workers.iter().map(|it| it.asleep).sum();
        assert!(jobs(&serial) == 0 && asleep >= ms(30), "{serial:?}");
        let forked = during(&runtime, || {
            let other = AtomicBool::new(false);
            let waits = || {
                while !other.load(SeqCst) {
                    scheduling_point();
                }
            };
            runtime.run(|| join(waits, || other.store(true, SeqCst)));
        });
        assert!(
            jobs(&forked) >= 1 && forked.total().steals >= 1,
            "{forked:?}"
        );
    });
}

#[test]
fn jobs_and_running_of_another_level_say_that_a_fork_join_shares_the_workers() {
    ends(|| {
        let runtime = runtime(2);
        let other = AtomicBool::new(false);
        let did = during(&runtime, || {
            let waits = || {
                while !other.load(SeqCst) {
                    scheduling_point();
                }
            };
            let urgent = Urgent.on(&runtime).spawn(async |_| spin(ms(5)));
            // No worker comes for the fork before the task is over.
            let batch = runtime.at(Batch);
            batch.run(|| join(waits, || other.store(true, SeqCst)));
            urgent.erase().get().unwrap();
        });
        assert!(did.levels[1].total.jobs >= 1, "{did:?}");
        assert!(did.levels[0].total.running >= ms(5), "{did:?}");
    });
}

#[test]
fn hand_offs_and_threads_count_closures_that_wait() {
    ends(|| {
        let runtime = runtime(1);
        let (go, wait) = (Arc::new(sync::Notify::new()), 6);
        let threads = runtime.stats().threads;
        let did = during(&runtime, || {
            let closures = (0..wait).map(|_| {
                let go = go.clone();
                Batch
                    .on(&runtime)
                    .spawn_fn(move |_| urgency::block_on(go.notified()))
            });
            let closures: Vec<_> = closures.collect();
            while runtime.stats().levels[1].total.closures < wait {
                thread::yield_now();
            }
            assert!(runtime.stats().threads >= threads.max(wait as usize));
            while closures.iter().any(|it| !it.is_finished()) {
                go.notify_one();
                thread::yield_now();
            }
        });
        assert!(did.levels[1].total.hand_offs >= 1, "{did:?}");
    });
}

#[test]
fn overruns_name_closures_that_sleep_in_the_kernel_and_their_threads_are_there() {
    ends(|| {
        let runtime = runtime(1);
        let lock = &*Box::leak(Box::new(std::sync::Mutex::new(())));
        let did = during(&runtime, || {
            let held = lock.lock().unwrap();
            let (begun, begins) = channel();
            let closures = (0..3).map(|_| {
                let begun = begun.clone();
                Batch.on(&runtime).spawn_fn(move |_| {
                    begun.send(()).unwrap();
                    drop(lock.lock().unwrap());
                })
            });
            let closures: Vec<_> = closures.collect();
            // Each of the others begins once the one before it has lost its worker.
            begins.iter().take(3).for_each(drop);
            let named = |it: &Overrun| it.what.contains("why_late") && it.now == 2;
            let stats = runtime.stats();
            assert!(stats.overruns.iter().any(named), "{:?}", stats.overruns);
            drop(held);
            for closure in closures {
                closure.erase().get().unwrap();
            }
        });
        assert!(
            did.levels[1].total.reliefs >= 2 && did.threads_peak >= 3,
            "{did:?}"
        );
        assert_eq!(
            did.levels[1].total.lock_waits, 0,
            "a lock of std's is not seen"
        );
    });
}

#[test]
fn entitled_and_serving_say_why_a_job_has_fewer_cores() {
    ends(|| {
        let first = runtime(2);
        let second = Runtime::builder()
            .share_workers_with(&first)
            .levels::<App>();
        let second = second.build().unwrap();
        let stop = &*Box::leak(Box::new(AtomicBool::new(false)));
        let busy = |runtime: &Runtime, tasks: usize| {
            for _ in 0..tasks {
                let task = Batch.on(runtime).spawn(async move |_| {
                    while !stop.load(SeqCst) {
                        yield_now().await;
                    }
                });
                task.detach();
            }
        };
        busy(&first, 4);
        busy(&second, 4);
        let share = |runtime: &Runtime| runtime.stats().share;
        // Both have more work than workers: one each.
        while [&first, &second].map(|it| (share(it).entitled, share(it).serving))
            != [(Some(1), 1); 2]
        {
            thread::sleep(ms(1));
        }
        stop.store(true, SeqCst);
        // It has no work. (Nothing divides the workers where no runtime has: `entitled` may stay.)
        while share(&second).serving != 0 {
            thread::sleep(ms(1));
        }
        assert!(share(&second).came >= 1);
    });
}

#[test]
fn lock_waits_count_what_entered_the_queue_of_a_lock_and_for_how_long() {
    ends(|| {
        let runtime = runtime(1);
        let lock = &*Box::leak(Box::new(sync::Mutex::new(())));
        let room = &*Box::leak(Box::new(sync::Semaphore::new(0)));
        let uncontended = during(&runtime, || {
            let locks = Urgent.on(&runtime).spawn(async |_| drop(lock.lock().await));
            locks.erase().get().unwrap();
        });
        assert_eq!(uncontended.levels[0].total.lock_waits, 0);
        let waits = during(&runtime, || {
            let held = lock.try_lock().unwrap();
            let closure = Batch.on(&runtime).spawn_fn(|_| drop(lock.blocking_lock()));
            let task = Urgent.on(&runtime).spawn(async |_| drop(lock.lock().await));
            let granted = Urgent
                .on(&runtime)
                .spawn(async |_| room.acquire().await.unwrap().forget());
            let given_up = Urgent.on(&runtime).spawn(async |_| {
                assert!(timeout(ms(3), lock.lock()).await.is_err());
                assert!(timeout(ms(1), room.acquire_many(2)).await.is_err());
            });
            let all = |stats: &Stats| {
                stats.levels[0].total.tasks >= 4 && stats.levels[1].total.closures >= 1
            };
            while !all(&runtime.stats()) {
                thread::yield_now();
            }
            // The only worker has begun them all. Once it sleeps again, all of them wait.
            let asleep = || runtime.stats().workers[0].asleep;
            let begun = asleep();
            while asleep() == begun {
                thread::yield_now();
            }
            runtime.block_on(sleep(ms(20)));
            while runtime.stats().levels[0].total.lock_waits < 2 {
                thread::yield_now();
            }
            room.add_permits(1);
            granted.erase().get().unwrap();
            given_up.erase().get().unwrap();
            drop(held);
            task.erase().get().unwrap();
            closure.erase().get().unwrap();
        });
        let [urgent, batch] = [0, 1].map(|level| &waits.levels[level].total);
        assert_eq!((urgent.lock_waits, batch.lock_waits), (4, 1));
        assert!(urgent.lock_waited >= ms(20), "{urgent:?}");
    });
}
