//! Children of a scope that sleep in the kernel until siblings have run, without a word to the scheduler.
//!
//! With two workers or more they are late, and do not hang: `sched/rescue/hidden.rs`.

mod common;

use common::{all, ends, fib, joined, runtime, with_levels};
use std::{
    sync::{
        Arc, Barrier, Mutex as Foreign,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{self, TryRecvError},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{LevelId, Runtime, join, scope, sync::Mutex};

/// So many children of one scope meet at a barrier.
fn meet(children: usize) {
    let all = Barrier::new(children);
    scope(|s| {
        for _ in 0..children {
            s.spawn(|| {
                all.wait();
            });
        }
    });
}

fn on(workers: usize, body: impl Fn(&Runtime) + Send + 'static) {
    ends(move || body(&runtime(workers)));
}

#[test]
fn children_that_meet_at_a_barrier_all_begin_however_many_they_are() {
    for workers in [2, 8] {
        for children in [2, 3, 4, 6, 20] {
            on(workers, move |runtime| runtime.run(|| meet(children)));
        }
    }
}

#[test]
fn children_meet_long_after_the_last_fork_was_stolen() {
    for workers in [2, 8] {
        on(workers, |runtime| {
            runtime.run(|| {
                joined(64, &|| {
                    fib(24);
                });
                meet(5);
            });
        });
    }
}

#[test]
fn children_of_a_stolen_child_meet() {
    for workers in [2, 8] {
        on(workers, |runtime| {
            runtime.run(|| {
                let meet = || meet(7);
                join(meet, meet);
            });
        });
    }
}

#[test]
fn each_child_waits_for_a_message_of_the_next_one() {
    for workers in [2, 8] {
        on(workers, |runtime| {
            runtime.run(|| {
                let (first, mut receiver) = mpsc::channel();
                scope(|s| {
                    for _ in 0..10 {
                        let (sender, receives) = mpsc::channel();
                        let waits = std::mem::replace(&mut receiver, receives);
                        s.spawn(move || sender.send(waits.recv().unwrap() + 1).unwrap());
                    }
                    s.spawn(move || first.send(0).unwrap());
                    assert_eq!(receiver.recv().unwrap(), 10);
                });
            });
        });
    }
}

#[test]
fn children_that_meet_in_a_runtime_of_jobs_and_in_a_task() {
    on(2, |runtime| {
        runtime.spawn(async { meet(4) }).get().unwrap();
        let beside = Runtime::builder().share_workers_with(runtime).build();
        beside.unwrap().run(|| meet(4));
    });
}

/// The other worker computes, or polls, as the children are forked, and is free afterwards.
#[test]
fn children_meet_that_were_forked_while_no_other_worker_was_free() {
    for polls in [false, true] {
        on(2, move |runtime| {
            let (begin, begun) = mpsc::channel();
            let end = Arc::new(AtomicBool::new(false));
            let ends = end.clone();
            let busy = move || {
                begin.send(()).unwrap();
                while !ends.load(SeqCst) {
                    std::hint::spin_loop();
                }
            };
            let busy = match polls {
                true => runtime.spawn(async move { busy() }),
                false => runtime.spawn_fn(busy),
            };
            begun.recv().unwrap();
            let all = Barrier::new(3);
            let root = || {
                scope(|s| {
                    for child in 0..3 {
                        let (all, end) = (&all, &end);
                        s.spawn(move || {
                            if child == 2 {
                                end.store(true, SeqCst);
                            }
                            all.wait();
                        });
                    }
                });
            };
            runtime.run(root);
            busy.get().unwrap();
        });
    }
}

/// No worker is ever without work: no theft comes, and no question for forks. (They hung.)
#[test]
fn children_meet_though_all_other_workers_sleep_or_compute_until_they_have_met() {
    for workers in [2, 8] {
        for sleeps in [true, false] {
            on(workers, move |runtime| {
                let (begin, begun) = mpsc::channel();
                let (end, ended) = mpsc::channel::<()>();
                let ended = Arc::new(Foreign::new(ended));
                let others: Vec<_> = (1..workers)
                    .map(|_| {
                        let (begin, ended) = (begin.clone(), ended.clone());
                        runtime.spawn_fn(move || {
                            begin.send(()).unwrap();
                            if sleeps {
                                let _ = ended.lock().unwrap().recv();
                                return;
                            }
                            let has_ended = |it: &Foreign<mpsc::Receiver<()>>| {
                                it.lock().unwrap().try_recv() == Err(TryRecvError::Disconnected)
                            };
                            while !has_ended(&ended) {
                                std::hint::spin_loop();
                            }
                        })
                    })
                    .collect();
                (1..workers).for_each(|_| begun.recv().unwrap());
                runtime.run(|| meet(3));
                drop(end);
                all(others);
            });
        }
    }
}

urgency::levels! { App: High > Mid > Low }

/// A stranger's program: a batch keeps a lock across its forks, calls block at each level, urgent tasks want the lock,
/// and between the two levels children meet.
#[test]
fn children_meet_beside_a_batch_with_a_lock_and_calls_that_block_at_each_level() {
    for leaf in [Duration::from_micros(40), Duration::from_millis(40)] {
        ends(move || {
            let runtime = with_levels::<App>(2);
            let (lock, foreign) = (Arc::new(Mutex::new(0)), Arc::new(Foreign::new(0)));
            let end = Arc::new(AtomicBool::new(false));
            let (ends, its) = (end.clone(), lock.clone());
            let batch = runtime.at(Low).spawn_fn(move || {
                while !ends.load(SeqCst) {
                    joined(4, &|| during(leaf));
                    let mut held = its.blocking_lock();
                    joined(2, &|| during(Duration::from_micros(100)));
                    *held += 1;
                }
            });
            let blocks = |level: LevelId| {
                let (end, foreign) = (end.clone(), foreign.clone());
                runtime.at(level).spawn_fn(move || {
                    while !end.load(SeqCst) {
                        let mut held = foreign.lock().unwrap();
                        thread::sleep(Duration::from_millis(1));
                        *held += 1;
                        drop(held);
                        thread::sleep(Duration::from_millis(2));
                    }
                })
            };
            let blocked: Vec<_> = [High.id(), Mid.id(), Low.id()].map(blocks).into();
            for _ in 0..50 {
                let lock = lock.clone();
                let urgent = async move { *lock.lock().await += 1 };
                runtime.at(High).spawn(urgent).get().unwrap();
            }
            runtime.at(Mid).spawn_fn(|| meet(4)).get().unwrap();
            end.store(true, SeqCst);
            all(blocked);
            batch.get().unwrap();
            assert!(*lock.blocking_lock() >= 50);
        });
    }
}

/// Computes, without a scheduling point.
fn during(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}
