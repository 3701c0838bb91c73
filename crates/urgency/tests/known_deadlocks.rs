//! Deadlocks and starvations that other runtimes are known for, each as a test with its name.
//!
//! | test | known from |
//! | --- | --- |
//! | `rayon_592_...` | rayon issue 592: a `join` under a lock steals a fork that wants the lock |
//! | `block_on_inside_a_blocking_pool_...` | all threads of a pool wait in `block_on` for what only the pool could run |
//! | `future_lock_...` | a lock is handed to a future that is not polled, while its task waits for that lock |
//! | `lifo_slot_ping_pong_...` | two tasks that wake each other in a LIFO slot keep all others out |

mod common;

use common::{ends, fib, runtime};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
};
use urgency::{
    Runtime, block_on, blocking, future, join, par, scope, spawn, spawn_fn,
    sync::{Mutex, Notify, self_deadlocks},
    yield_now,
};

/// Many forks take one lock and fork under it. A `join` that waits by running whatever it finds takes a fork that wants
/// the lock its own stack holds, and waits for itself.
#[test]
fn rayon_592_a_join_under_a_lock_runs_no_job_that_wants_the_lock() {
    for workers in [1, 2, 4] {
        let count = ends(move || {
            let (plain, ours) = (std::sync::Mutex::new(0), Mutex::new(0));
            runtime(workers).run(|| {
                scope(|s| {
                    for _ in 0..100 {
                        s.spawn(|| {
                            let mut held = plain.lock().unwrap();
                            *held += join(|| fib(10), || fib(9)).1;
                        });
                        s.spawn(|| {
                            let mut held = ours.blocking_lock();
                            *held += par::reduce(0..20u64, fib, u64::wrapping_add).unwrap();
                        });
                    }
                });
            });
            (plain.into_inner().unwrap(), ours.into_inner())
        });
        let sum: u64 = (0..20).map(fib).sum();
        assert_eq!(count, (100 * fib(9), 100 * sum));
    }
}

/// As in the issue: a lazily made value whose making is parallel, wanted by parallel work.
#[test]
fn rayon_592_a_value_that_is_made_once_in_parallel_is_there_for_all() {
    ends(|| {
        let value = std::sync::OnceLock::new();
        let made = AtomicUsize::new(0);
        let make = || {
            made.fetch_add(1, SeqCst);
            par::reduce(0..2_000u64, |n| fib(n % 10), u64::wrapping_add).unwrap()
        };
        runtime(4).run(|| par::for_each(0..200u32, |_| assert_ne!(*value.get_or_init(make), 0)));
        assert_eq!(made.into_inner(), 1);
    });
}

/// A chain: each closure blocks for the next one, deeper than any pool has threads to begin with.
fn depth(left: u32) -> u32 {
    if left == 0 {
        return 0;
    }
    block_on(async move { spawn_fn(move || depth(left - 1)).await.unwrap() }) + 1
}

#[test]
fn block_on_inside_a_blocking_pool_waits_without_a_worker() {
    for workers in [1, 2] {
        ends(move || {
            let runtime = runtime(workers);
            assert_eq!(runtime.spawn_fn(|| depth(300)).get().unwrap(), 300);
            // As many at once as there are closures, each in a declared blocking call.
            let all: Vec<_> = (0..100)
                .map(|n| runtime.spawn_fn(move || blocking(|| block_on(spawn(async move { n })))))
                .collect();
            for (n, one) in all.into_iter().enumerate() {
                assert_eq!(one.get().unwrap().unwrap(), n);
            }
        });
    }
}

/// As few threads as a runtime can have.
fn least() -> Runtime {
    let builder = Runtime::builder().workers(1).thread_limit(3);
    builder.build().unwrap()
}

/// Stacks that wait run other work on top of themselves.
#[test]
fn block_on_inside_a_blocking_pool_ends_with_the_least_number_of_threads() {
    ends(|| {
        let least = least();
        assert_eq!(least.spawn_fn(|| depth(50)).get().unwrap(), 50);
        assert_ne!(least.stats().threads_refused, 0);
    });
}

/// All threads that there can be wait, and only then comes the work that they wait for.
#[test]
fn block_on_inside_a_blocking_pool_ends_when_the_awaited_work_comes_last() {
    ends(|| {
        let least = least();
        let opened = Arc::new(Notify::new());
        let (waits, waiting) = mpsc::channel();
        let all: Vec<_> = (0..8)
            .map(|_| {
                let (opened, waits) = (opened.clone(), waits.clone());
                least.spawn_fn(move || {
                    waits.send(()).unwrap();
                    block_on(opened.notified());
                })
            })
            .collect();
        // Those beyond the threads run on top of others, so all of them come to their wait.
        for _ in 0..8 {
            waiting.recv().unwrap();
        }
        let opener = opened.clone();
        let last = least.spawn_fn(move || {
            for _ in 0..8 {
                opener.notify_one();
            }
        });
        last.get().unwrap();
        for one in all {
            one.get().unwrap();
        }
    });
}

/// The future that stands in the queue is not polled any more, gets the lock, and keeps it from its own task.
#[test]
fn future_lock_a_lock_handed_to_an_unpolled_branch_is_taken_over_by_its_task() {
    ends(|| {
        let lock = Arc::new(Mutex::new(0));
        let runtime = runtime(2);
        let held = lock.blocking_lock();
        let (lost, stands) = mpsc::channel();
        let theirs = lock.clone();
        let task = runtime.spawn(async move {
            let mut first = pin!(theirs.lock());
            // Polled once: it stands in the queue. The other branch wins.
            let won = future::race(&mut first, yield_now()).await;
            assert!(matches!(won, future::Either::Second(())));
            lost.send(()).unwrap();
            // `first` is still in its place, before this.
            *theirs.lock().await += 1;
        });
        stands.recv().unwrap();
        drop(held);
        task.get().unwrap();
        assert_eq!(*lock.blocking_lock(), 1);
    });
}

/// The unpolled branch holds the guard itself: nobody can take that, so it is named.
#[test]
fn future_lock_a_guard_held_by_an_unpolled_branch_is_detected_and_named() {
    ends(|| {
        let lock = Arc::new(Mutex::new(()));
        let before = self_deadlocks().suspected;
        let runtime = runtime(1);
        let theirs = lock.clone();
        let task = runtime.spawn(async move {
            let mut holder = pin!(async {
                let _held = theirs.lock().await;
                std::future::pending::<()>().await;
            });
            let won = future::race(&mut holder, yield_now()).await;
            assert!(matches!(won, future::Either::Second(())));
            drop(theirs.lock().await);
        });
        while self_deadlocks().suspected == before {
            std::thread::yield_now();
        }
        let named = self_deadlocks().last.expect("a place in the program");
        assert!(named.file().ends_with("known_deadlocks.rs"), "{named}");
        // It would wait for ever; cancelled, it gives all back.
        task.abort();
        assert!(task.get().is_err());
        drop(lock.blocking_lock());
    });
}

/// Two tasks wake each other all the time. Where the last one woken runs next, a third one never does.
#[test]
fn lifo_slot_ping_pong_two_tasks_that_wake_each_other_keep_nobody_out() {
    for workers in [1, 2] {
        ends(move || {
            let runtime = runtime(workers);
            let stop = Arc::new(AtomicBool::new(false));
            let turns = Arc::new(AtomicUsize::new(0));
            let pairs: Vec<_> = (0..2 * workers)
                .flat_map(|_| {
                    let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
                    [(ping.clone(), pong.clone(), true), (pong, ping, false)]
                })
                .map(|(mine, theirs, first)| {
                    let (stop, turns) = (stop.clone(), turns.clone());
                    runtime.spawn(async move {
                        if first {
                            theirs.notify_one();
                        }
                        while !stop.load(Relaxed) {
                            mine.notified().await;
                            turns.fetch_add(1, Relaxed);
                            theirs.notify_one();
                        }
                        theirs.notify_one();
                    })
                })
                .collect();
            // Spawned and woken beside them: tasks, and a closure.
            for n in 0..200 {
                let task = runtime.spawn(async move {
                    yield_now().await;
                    n
                });
                assert_eq!(task.get().unwrap(), n);
            }
            assert_eq!(runtime.spawn_fn(|| fib(10)).get().unwrap(), 55);
            assert_ne!(turns.load(Relaxed), 0);
            stop.store(true, Relaxed);
            for one in pairs {
                one.get().unwrap();
            }
        });
    }
}
