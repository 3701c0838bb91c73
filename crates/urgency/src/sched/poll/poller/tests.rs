//! Which thread looks for events, and when it rests.

use crate::{
    Runtime,
    io::Async,
    join,
    sched::{machine::claim::Want, stack::Stack, worker::runs::Runs},
    scheduling_point,
    time::sleep,
    yield_now,
};
use std::{
    hint,
    io::{Read as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
    thread,
    time::{Duration, Instant},
};

#[test]
fn a_worker_that_searches_for_long_is_not_waited_for() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let job = runtime.job();
    let worker = job.claim(Want::Any).unwrap();
    let looks = || {
        worker.lap();
        job.core.does_a_worker_look()
    };
    // At the latest when this thread is not preempted between the two.
    while !looks() {}
    thread::sleep(Duration::from_millis(1));
    assert!(!job.core.does_a_worker_look());
    job.release(worker);
}

#[test]
fn a_worker_that_was_left_to_the_poller_and_that_another_job_has_taken_is_waited_for_by_relief() {
    let first = Runtime::builder().workers(1).build().unwrap();
    let second = Runtime::builder().share_workers_with(&first).build();
    let second = second.unwrap();
    let worker = second.job().claim(Want::Any).unwrap();
    let core = &first.job().core;
    // No thread waits in the poller, so no expiry comes between the two looks.
    while core.pollers.enter(2) {}
    let timer = &core.relief_timer;
    assert!(!timer.is_set());
    first.job().unstarted.fetch_add(1, SeqCst);
    assert!(first.job().claim_unstarted().is_none());
    assert!(timer.is_set());
    second.job().release(worker);
}

/// A paused clock would move past what that thread has in hand.
#[test]
fn a_runtime_is_not_idle_while_another_thread_has_come_out_of_the_poller() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let core = &runtime.job().core;
    let limit = Instant::now() + Duration::from_secs(20);
    while !core.is_quiet() {
        assert!(Instant::now() < limit, "its worker does not become idle");
        thread::yield_now();
    }
    // As the thread that asks; no other one is in the poller.
    let _asks = core.places.visit(0);
    assert!(core.is_quiet());
    let other = core.places.visit(0);
    assert!(!core.is_quiet());
    drop(other);
    assert!(core.is_quiet());
}

/// A worker's thread has run brief polls for longer than it may compute between two visits to the poller. The other
/// thread there leaves events to the workers.
#[test]
fn when_workers_run_dry_after_many_brief_polls_a_thread_waits_for_events() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    *runtime.job().core.rests_for.lock() = Duration::from_secs(60);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (arrived, arrivals) = channel();
    let reader = Async::new(reader).unwrap();
    let reads = runtime.spawn(async move {
        while let Ok(1) = reader.read_with(|mut pipe| pipe.read(&mut [0])).await {
            arrived.send(()).unwrap();
        }
    });
    for round in 0..20 {
        let busy = [(); 2].map(|()| {
            runtime.spawn(async {
                let end = Instant::now() + Duration::from_millis(4);
                while Instant::now() < end {
                    yield_now().await;
                }
            })
        });
        // Events for the thread in the poller, after which it sees that the workers are brief.
        runtime.block_on(async {
            for _ in 0..3 {
                sleep(Duration::from_millis(1)).await;
            }
        });
        for task in busy {
            task.get().unwrap();
        }
        thread::sleep(Duration::from_millis(1));
        writer.write_all(&[1]).unwrap();
        let answer = arrivals.recv_timeout(Duration::from_secs(20));
        assert!(answer.is_ok(), "no thread waits for events, round {round}");
    }
    drop(writer);
    reads.get().unwrap();
}

/// The poll that writes goes on until its byte has been read: it is brief as far as the event can see.
#[test]
fn an_event_takes_a_long_stacks_worker_beside_a_brief_poll() {
    const ROUNDS: u64 = 20;
    let spins = |stop: &AtomicBool| {
        while !stop.load(SeqCst) {
            hint::spin_loop();
        }
    };
    let mut reliefs = 0;
    for _ in 0..ROUNDS {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (begun, has_begun) = channel();
        let of_long = stop.clone();
        let long = runtime.spawn_fn(move || {
            begun.send(()).unwrap();
            spins(&of_long);
        });
        has_begun.recv().unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let reader = Async::new(reader).unwrap();
        let of_reader = stop.clone();
        let reads = runtime.spawn(async move {
            let read = reader.read_with(|mut pipe| pipe.read(&mut [0])).await;
            of_reader.store(true, SeqCst);
            read.unwrap()
        });
        let writes = runtime.spawn(async move {
            // The reader waits for its byte by now.
            sleep(Duration::from_millis(2)).await;
            writer.write_all(&[1]).unwrap();
            spins(&stop);
        });
        assert_eq!(reads.get().unwrap(), 1);
        writes.get().unwrap();
        long.get().unwrap();
        reliefs += runtime.stats().total().reliefs;
    }
    // The thread that the event wakes may have no processor until relief comes.
    assert!(reliefs < ROUNDS / 2, "{reliefs} readers waited for relief");
}

/// How often a thread in the poller rests while two tasks yield for so many milliseconds: as often, if each rest is a
/// relief period.
fn rests_beside_yields(runtime: &Runtime, millis: u64) -> usize {
    let core = &runtime.job().core;
    let before = core.rests.load(SeqCst);
    let yields = || async move {
        let end = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < end {
            yield_now().await;
        }
    };
    let tasks = [runtime.spawn(yields()), runtime.spawn(yields())];
    tasks.into_iter().for_each(|task| task.get().unwrap());
    core.rests.load(SeqCst) - before
}

/// A pipe that is never written to is waited for.
#[test]
fn a_thread_in_the_poller_rests_for_as_long_as_workers_look() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    let reader = Async::new(reader).unwrap();
    let waits = runtime.spawn(async move { reader.readable().await.map(drop) });
    // At the latest when the worker's thread is not preempted.
    assert!((0..100).any(|_| rests_beside_yields(&runtime, 20) <= 5));
    waits.abort();
}

/// Relief is then for that thread to see. (The end of its rest was put off by looks that looked for nothing, and the
/// rounds of a fair schedule never ended.)
#[test]
fn a_thread_in_the_poller_rests_for_a_period_if_workers_have_nothing_to_look_for() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    // A tenth of what it is alone: beside three processes that compute, a thread that rests wakes up after 5 ms.
    assert!((0..20).any(|_| rests_beside_yields(&runtime, 100) >= 10));
}

crate::levels! { Order: First > Second }

#[test]
fn a_thread_that_is_in_the_way_leaves_a_revoked_worker_to_a_spare_thread() {
    let runtime = Runtime::builder().workers(2).levels::<Order>();
    let runtime = runtime.build().unwrap();
    let job = runtime.job();
    if !job.has_places() {
        // A quota leaves less than a processor for each.
        return;
    }
    let core = &job.core;
    // Two of them may go into the poller.
    for _ in 0..4 {
        // Chaos refuses threads.
        while core.prepare_thread().is_err() {}
    }
    let [worker, other] = [(); 2].map(|()| {
        loop {
            if let Some(worker) = job.claim(Want::Any) {
                break worker;
            }
        }
    });
    let task = runtime.spawn(async { 42 });
    let (visit, next) = (core.places.visit(0), core.places.visit(0));
    assert!(!core.goes_to_another(&visit, worker), "it is not revoked");
    worker.begin_turn(1, Runs::Long);
    let limit = Instant::now() + Duration::from_secs(20);
    while !core.goes_to_another(&visit, worker) {
        assert!(Instant::now() < limit, "no spare thread waits");
        if cfg!(urgency_chaos) && core.threads.alive() < 4 {
            // It ends threads, too: all that were not in the poller, in one run of thirty.
            let _ = core.prepare_thread();
        }
        thread::yield_now();
    }
    assert_eq!(task.get().unwrap(), 42);
    drop((visit, next));
    job.release(other);
}

/// Until a worker has gone to another thread, since it is as if other threads of the poller were on each processor.
/// `event` is what comes out of the poller.
///
/// The loops come to a scheduling point now and then. A worker that was revoked from one need not be restored, and
/// under chaos often is not: then the loop gets one there. (Without, both workers were soon free for each event, and no
/// event revoked one again.)
fn preempts_another_of_the_poller<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    event: impl Fn() -> F,
) {
    let job = runtime.job();
    if !job.has_places() {
        return;
    }
    let visits: Vec<_> = (0..1024).map(|cpu| job.core.places.visit(cpu)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let loops = [(); 2].map(|()| {
        let stop = stop.clone();
        runtime.at(Base).spawn_fn(move || {
            while !stop.load(SeqCst) {
                let end = Instant::now() + Duration::from_millis(10);
                while !stop.load(SeqCst) && Instant::now() < end {
                    hint::spin_loop();
                }
                scheduling_point();
            }
        })
    });
    let limit = Instant::now() + Duration::from_secs(20);
    while runtime.stats().levels[1].total.hand_offs == 0 {
        assert!(Instant::now() < limit, "no worker went to another thread");
        runtime.at(Event).spawn(event()).get().unwrap();
    }
    stop.store(true, SeqCst);
    loops.into_iter().for_each(|done| done.get().unwrap());
    drop(visits);
}

crate::levels! { Three: Top > Event > Base }

#[test]
fn a_thread_that_preempts_another_one_of_the_poller_goes_back() {
    let runtime = Runtime::builder().workers(2).levels::<Three>();
    preempts_another_of_the_poller(&runtime.build().unwrap(), || {
        sleep(Duration::from_millis(1))
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_pinned_worker_that_such_a_thread_passes_on_stays_pinned() {
    let runtime = Runtime::builder().pin_workers().levels::<Three>();
    let event = || async {
        sleep(Duration::from_millis(1)).await;
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        assert_eq!(allowed.count(), 1);
    };
    preempts_another_of_the_poller(&runtime.build().unwrap(), event);
}

/// Otherwise the next thread that an event wakes preempts it no sooner than it would preempt an equal.
/// A fork that is held back is none yet (`forks/held_back.rs`). Chaos holds back one in four, so there it takes more.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_poll_that_came_from_the_poller_and_forks_has_no_short_slices_from_then_on() {
    use crate::{join, sys::thread::slice};
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let usual = slice();
    let forks = runtime.spawn(async move {
        let short = loop {
            sleep(Duration::from_millis(1)).await;
            // Another thread may have come by the worker.
            if slice() < usual {
                break slice();
            }
        };
        for _ in 0..if cfg!(urgency_chaos) { 20 } else { 1 } {
            let runs = AtomicBool::new(false);
            let is_stolen = || {
                while !runs.load(SeqCst) {
                    hint::spin_loop();
                }
            };
            join(is_stolen, || runs.store(true, SeqCst));
        }
        (short, slice())
    });
    let (short, then) = forks.get().unwrap();
    assert!(short < then, "{short:?} and {then:?}");
}

/// The other worker is idle. Where it got each event's stack, a thread that had just seen the event moved itself to
/// another processor and gave its worker away.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos takes workers from the stacks")]
fn a_thread_that_looks_for_events_and_finds_its_own_goes_on_with_its_worker() {
    let has_worker = || Stack::with_current(|me| me.unwrap().worker().id);
    let changes = |_| {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        *runtime.job().core.rests_for.lock() = Duration::from_secs(60);
        let (reader, mut writer) = std::io::pipe().unwrap();
        let reader = Async::new(reader).unwrap();
        runtime.block_on(async {
            let mut changes = 0;
            for _ in 0..200 {
                let before = has_worker();
                let read = reader.read_with(|mut pipe| pipe.read(&mut [0]));
                // It comes when the wait has begun, and before the thread looks for it.
                let write = async { writer.write_all(&[0]).unwrap() };
                assert_eq!(join!(biased; read, write).0.unwrap(), 1);
                changes += usize::from(has_worker() != before);
            }
            changes
        })
    };
    // In some runtimes the thread in the poller takes all events.
    let changes: Vec<usize> = (0..5).map(changes).collect();
    assert!(
        changes.iter().all(|changes| *changes < 20),
        "{changes:?} of 200 waits"
    );
}
