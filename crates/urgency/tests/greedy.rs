//! Greedy: no worker sleeps while anything is ready.
//!
//! Each test can only end if a certain number of contexts run at the same time: they meet at a barrier
//! that has no scheduling point. Relief would let them meet, too, by giving a worker to each in turn, a
//! millisecond later. So of many meetings at a join, some must need none.

mod common;

use common::{ends, fib, runtime};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    time::Duration,
};
use urgency::{Runtime, join, scope, spawn, spawn_fn};

/// Where `expected` contexts meet, again and again, by spinning.
#[derive(Debug, Default)]
struct Meeting(AtomicUsize);

impl Meeting {
    fn meet(&self, expected: usize) {
        let me = self.0.fetch_add(1, SeqCst);
        let all = (me / expected + 1) * expected;
        while self.0.load(SeqCst) < all {
            hint::spin_loop();
            std::thread::yield_now();
        }
    }
}

fn all_workers_meet(workers: usize, start: impl FnOnce(&Runtime, Arc<Meeting>) -> bool) {
    let runtime = runtime(workers);
    let meeting = Arc::new(Meeting::default());
    assert!(start(&runtime, meeting));
}

#[test]
fn closures_spawned_from_outside_run_on_all_workers_at_once() {
    for workers in [1, 2, 4, 8] {
        ends(move || {
            all_workers_meet(workers, |runtime, meeting| {
                let closure = |_| {
                    let meeting = meeting.clone();
                    runtime.spawn_fn(move || meeting.meet(workers))
                };
                let handles: Vec<_> = (0..workers).map(closure).collect();
                handles.into_iter().all(|handle| handle.get().is_ok())
            });
        });
    }
}

#[test]
fn tasks_spawned_from_inside_a_task_run_on_all_workers_at_once() {
    for workers in [2, 4] {
        ends(move || {
            all_workers_meet(workers, |runtime, meeting| {
                let parent = runtime.spawn(async move {
                    let task = |_| {
                        let meeting = meeting.clone();
                        spawn(async move { meeting.meet(workers) })
                    };
                    let others: Vec<_> = (1..workers).map(task).collect();
                    // The parent's own poll does not end before all others run.
                    meeting.meet(workers);
                    for other in others {
                        other.await.unwrap();
                    }
                });
                parent.get().is_ok()
            });
        });
    }
}

#[test]
fn both_sides_of_a_join_run_at_once_if_a_worker_is_free() {
    ends(|| {
        let runtime = runtime(2);
        let meeting = Meeting::default();
        let without_relief = |_| {
            let before = runtime.stats().total().reliefs;
            runtime.run(|| {
                for _ in 0..10 {
                    join(|| meeting.meet(2), || meeting.meet(2));
                }
            });
            runtime.stats().total().reliefs == before
        };
        let some = (0..20).map(without_relief).filter(|without| *without);
        // Chaos relieves without need.
        assert!(some.count() > 0 || cfg!(urgency_chaos));
        assert!(runtime.stats().total().steals >= 200);
    });
}

#[test]
fn children_of_a_scope_run_on_all_workers_at_once() {
    ends(|| {
        for workers in [2, 3, 5] {
            let runtime = runtime(workers);
            let meeting = Meeting::default();
            runtime.run(|| {
                scope(|s| {
                    for _ in 1..workers {
                        s.spawn(|| meeting.meet(workers));
                    }
                    meeting.meet(workers);
                });
            });
        }
    });
}

#[test]
fn work_that_comes_after_a_long_idle_time_runs_on_all_workers_at_once() {
    ends(|| {
        let runtime = runtime(3);
        for pause in [0, 0, 1, 5, 20, 50] {
            std::thread::sleep(Duration::from_millis(pause));
            let meeting = Arc::new(Meeting::default());
            let closure = |_| {
                let meeting = meeting.clone();
                runtime.spawn_fn(move || meeting.meet(3))
            };
            let handles: Vec<_> = (0..3).map(closure).collect();
            for handle in handles {
                handle.get().unwrap();
            }
        }
    });
}

/// Chili's weakness: the left side never looks at anything, so the right side must be taken from it.
#[test]
fn a_private_fork_is_stolen_from_a_stack_in_a_long_leaf() {
    ends(|| {
        let runtime = runtime(2);
        for _ in 0..100 {
            let flag = AtomicBool::new(false);
            runtime.run(|| {
                join(
                    || {
                        while !flag.load(SeqCst) {
                            hint::spin_loop();
                        }
                    },
                    || flag.store(true, SeqCst),
                );
            });
        }
    });
}

#[test]
fn a_private_fork_is_stolen_by_a_worker_that_becomes_free_later() {
    ends(|| {
        let runtime = runtime(2);
        for round in 0..50 {
            let busy = Arc::new(AtomicBool::new(true));
            let theirs = busy.clone();
            // The other worker is busy when the forks are made, and asks no stack for forks.
            let other = runtime.spawn_fn(move || {
                while theirs.load(SeqCst) {
                    hint::spin_loop();
                }
            });
            let flag = AtomicBool::new(false);
            let depth = round % 5;
            runtime.run(|| deep(depth, &busy, &flag));
            other.get().unwrap();
        }
    });
}

/// Forks `depth + 1` closures, then lets the other worker go and waits in the innermost leaf for the oldest.
fn deep(depth: u32, busy: &AtomicBool, flag: &AtomicBool) {
    fn nest(depth: u32, leaf: &(impl Fn() + Sync)) {
        match depth {
            0 => leaf(),
            _ => drop(join(|| nest(depth - 1, leaf), || fib(2))),
        }
    }
    let leaf = || {
        busy.store(false, SeqCst);
        while !flag.load(SeqCst) {
            hint::spin_loop();
        }
    };
    join(|| nest(depth, &leaf), || flag.store(true, SeqCst));
}

#[test]
fn the_forks_of_a_stack_that_waits_in_get_are_stolen() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            for _ in 0..200 {
                runtime.run(|| {
                    let (tell, told) = std::sync::mpsc::channel();
                    join(
                        // Waits for a closure that waits for the right side.
                        || {
                            let told = move || urgency::blocking(|| told.recv().unwrap());
                            spawn_fn(told).get().unwrap();
                        },
                        || tell.send(()).unwrap(),
                    );
                });
            }
        }
    });
}

/// A long leaf with several private forks, and as many free workers: each worker gets one.
#[test]
fn all_private_forks_of_a_stack_in_a_long_leaf_are_stolen() {
    fn nest(depth: usize, meet: &(impl Fn() + Sync)) {
        match depth {
            0 => meet(),
            _ => drop(join(|| nest(depth - 1, meet), meet)),
        }
    }
    ends(|| {
        for workers in [2, 3, 4, 6] {
            let runtime = runtime(workers);
            for pause in 0..60 {
                // From no idle time to a long one: searching, or asleep.
                std::thread::sleep(Duration::from_micros(pause * 10));
                let meeting = Meeting::default();
                runtime.run(|| nest(workers - 1, &|| meeting.meet(workers)));
            }
        }
    });
}

/// Its worker went to other long work by relief; when that is done, the worker finds what the stack forked before.
#[test]
fn a_private_fork_is_stolen_from_a_stack_whose_worker_was_taken() {
    ends(|| {
        let runtime = runtime(1);
        for _ in 0..20 {
            let flag = Arc::new(AtomicBool::new(false));
            let forked = flag.clone();
            let (tell, told) = std::sync::mpsc::channel();
            let joined = runtime.spawn_fn(move || {
                let left = || {
                    tell.send(()).unwrap();
                    while !forked.load(SeqCst) {
                        hint::spin_loop();
                    }
                };
                join(left, || forked.store(true, SeqCst));
            });
            told.recv().unwrap();
            runtime.spawn_fn(|| ()).get().unwrap();
            joined.get().unwrap();
        }
    });
}
