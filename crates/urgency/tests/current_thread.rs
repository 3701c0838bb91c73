//! A runtime of [`Builder::new_current_thread`]: a thread in `block_on` polls its tasks while the future waits.

mod common;

use common::ends;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, ThreadId},
};
use urgency::{
    Runtime, Shutdown, join,
    runtime::Builder,
    spawn, spawn_fn,
    sync::{Notify, mpsc, oneshot},
    time::{Duration, sleep},
    yield_now,
};

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// The thread that polls a task which it spawns.
async fn task_thread() -> ThreadId {
    spawn(async { thread::current().id() }).await.unwrap()
}

/// Chaos takes other paths, and other threads with them.
fn here(id: ThreadId) -> bool {
    id == thread::current().id() || cfg!(urgency_chaos)
}

#[test]
fn tasks_are_polled_on_the_thread_in_block_on_and_closures_elsewhere() {
    ends(|| {
        let runtime = current_thread();
        // A thread that gets no processor for long enough loses its worker.
        let polled_here = (0..100).filter(|_| here(runtime.block_on(task_thread())));
        assert!(polled_here.count() > 90);
        let closure = || spawn_fn(|| thread::current().id());
        let elsewhere = runtime.block_on(async { closure().await.unwrap() });
        assert_ne!(elsewhere, thread::current().id());
    });
}

#[test]
fn tasks_run_between_and_after_calls_of_block_on_too() {
    ends(|| {
        let runtime = current_thread();
        let (sender, mut receiver) = mpsc::channel(8);
        let count = runtime.spawn(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            sum
        });
        for n in 0..100 {
            runtime.block_on(async { sender.send(n).await.unwrap() });
            sender.blocking_send(n).unwrap();
        }
        drop(sender);
        assert_eq!(count.get().unwrap(), 2 * 4950);
    });
}

#[test]
fn with_other_workers_or_levels_tasks_run_on_threads_of_the_runtime() {
    urgency::levels! { Two: High > Low }
    ends(|| {
        let workers = Builder::new_current_thread().workers(2);
        let levels = Builder::new_current_thread().levels::<Two>();
        let usual = Runtime::builder().workers(1);
        for builder in [workers, levels, usual] {
            let runtime = builder.build().unwrap();
            assert_ne!(runtime.block_on(task_thread()), thread::current().id());
        }
    });
}

/// The future comes first, and yields to them.
#[test]
fn tasks_that_are_always_ready_and_the_future_have_turns() {
    ends(|| {
        let runtime = current_thread();
        let ended = Arc::new(AtomicBool::new(false));
        let steps = Arc::new(AtomicUsize::new(0));
        for _ in 0..8 {
            let (ended, steps) = (ended.clone(), steps.clone());
            runtime
                .spawn(async move {
                    while !ended.load(Relaxed) {
                        steps.fetch_add(1, Relaxed);
                        yield_now().await;
                    }
                })
                .detach();
        }
        runtime.block_on(async {
            for _ in 0..10 {
                sleep(Duration::from_millis(1)).await;
            }
            for _ in 0..100 {
                let before = steps.load(Relaxed);
                yield_now().await;
                assert!(steps.load(Relaxed) > before, "no task had a turn");
            }
        });
        ended.store(true, Relaxed);
        assert_eq!(runtime.shutdown(Shutdown::Cancel).left, 0);
    });
}

/// What a task on top waits for comes from others.
#[test]
fn a_task_may_wait_and_fork_on_the_thread_in_block_on() {
    ends(|| {
        let runtime = current_thread();
        let sum = runtime.block_on(async {
            let tasks = (0..50_u64).map(|n| {
                spawn(async move {
                    let from_closure = spawn_fn(move || n).get().unwrap();
                    let (send, receive) = oneshot::channel();
                    spawn(async move { send.send(n).unwrap() }).detach();
                    let (a, b) = join(|| common::fib(10), || receive.blocking_recv().unwrap());
                    sleep(Duration::from_micros(100)).await;
                    from_closure + a + b
                })
            });
            let mut sum = 0;
            for task in tasks.collect::<Vec<_>>() {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 2 * 1225 + 50 * common::fib(10));
    });
}

#[test]
fn several_threads_in_block_on_go_on_by_turns() {
    ends(|| {
        let runtime = current_thread();
        let (ping, mut pinged) = mpsc::channel(1);
        let (pong, mut ponged) = mpsc::channel(1);
        thread::scope(|threads| {
            threads.spawn(|| {
                runtime.block_on(async {
                    while let Some(n) = pinged.recv().await {
                        spawn(async move { n + 1 }).await.unwrap();
                        pong.send(n).await.unwrap();
                    }
                });
            });
            runtime.block_on(async {
                for n in 0..1000 {
                    ping.send(n).await.unwrap();
                    assert_eq!(ponged.recv().await, Some(n));
                }
                drop(ping);
            });
        });
    });
}

/// How often tasks that are always ready, and polled on a thread in `block_on`, are polled before the first task of a
/// runtime that comes to share their worker.
fn polls_before_another_runtime() -> usize {
    let runtime = current_thread();
    let steps = Arc::new(AtomicUsize::new(0));
    let (ended, go_on) = (Arc::new(AtomicBool::new(false)), Notify::new());
    thread::scope(|threads| {
        threads.spawn(|| {
            runtime.block_on(async {
                for _ in 0..4 {
                    let (ended, steps) = (ended.clone(), steps.clone());
                    spawn(async move {
                        while !ended.load(Relaxed) {
                            steps.fetch_add(1, Relaxed);
                            yield_now().await;
                        }
                    })
                    .detach();
                }
                go_on.notified().await;
            });
        });
        while steps.load(Relaxed) < 1000 {
            thread::yield_now();
        }
        let other = Runtime::builder().share_workers_with(&runtime);
        let other = other.build().unwrap();
        let (before, its) = (steps.load(Relaxed), steps.clone());
        let at = other.spawn(async move { its.load(Relaxed) }).get().unwrap();
        ended.store(true, Relaxed);
        go_on.notify_one();
        at - before
    })
}

#[test]
fn a_runtime_that_shares_the_worker_of_a_thread_in_block_on_has_its_turn() {
    ends(|| {
        // The kernel may let the thread that spawns wait for a processor.
        let polls: Vec<_> = (0..20).map(|_| polls_before_another_runtime()).collect();
        let soon = polls.iter().filter(|&&polls| polls < 500).count();
        assert!(soon > 10 || cfg!(urgency_chaos), "{polls:?}");
    });
}

#[test]
fn a_panic_of_the_future_leaves_the_runtime_as_it_was() {
    ends(|| {
        let runtime = current_thread();
        let panics = || runtime.block_on(async { panic!("as it is meant to") });
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let panics = runtime.block_on(async { spawn(async { panic!("a task, too") }).await });
        assert!(panics.unwrap_err().is_panic());
        let polled_here = (0..10).filter(|_| here(runtime.block_on(task_thread())));
        assert!(polled_here.count() > 8);
    });
}

#[test]
fn a_shutdown_ends_tasks_beside_a_thread_in_block_on() {
    ends(|| {
        for n in 0..50 {
            let runtime = current_thread();
            let go_on = Arc::new(Notify::new());
            let goes_on = go_on.clone();
            thread::scope(|threads| {
                let inside = threads.spawn(|| {
                    runtime.block_on(async {
                        for _ in 0..4 {
                            spawn(async {
                                loop {
                                    yield_now().await;
                                }
                            })
                            .detach();
                        }
                        goes_on.notified().await;
                    });
                });
                thread::sleep(Duration::from_micros(100 * (n % 5)));
                let report = runtime.shutdown(Shutdown::Cancel);
                go_on.notify_one();
                // Where the shutdown came first the thread was not let in.
                let was_in = inside.join().is_ok();
                assert!(report.left == 0, "{report:?}, inside: {was_in}");
            });
        }
    });
}

/// As in Tokio. A task spawns another one, and then wakes the body.
#[test]
fn what_is_ready_when_the_body_is_woken_runs_before_it() {
    ends(|| {
        let runtime = current_thread();
        let before_body = |_: &usize| {
            let ran = Arc::new(AtomicUsize::new(0));
            let spawns = |_| {
                let (send, receive) = oneshot::channel();
                let ran = ran.clone();
                let spawns = async move {
                    spawn(async move { ran.fetch_add(1, Relaxed) }).detach();
                    send.send(()).unwrap();
                };
                runtime.spawn(spawns).detach();
                receive
            };
            let before_body = runtime.block_on(async {
                let woken: Vec<_> = (0..3).map(spawns).collect();
                for woken in woken {
                    woken.await.unwrap();
                }
                ran.load(Relaxed)
            });
            before_body == 3
        };
        // A thread that gets no processor for long enough loses its worker.
        let all = (0..100).filter(before_body).count();
        assert!(all > 90 || cfg!(urgency_chaos), "{all} of 100");
    });
}

#[urgency::test(flavor = "current_thread")]
async fn a_test_of_this_flavor_polls_its_tasks_on_its_thread() {
    assert!(here(task_thread().await));
}

#[urgency::test]
async fn a_task_of_a_test_without_a_flavor_may_wait_in_a_blocking_form_for_the_test() {
    let (send, receive) = oneshot::channel();
    let waits = spawn(async { receive.blocking_recv().unwrap() });
    yield_now().await;
    send.send(42).unwrap();
    assert_eq!(waits.await.unwrap(), 42);
}

mod tokio {
    pub use urgency::*;
}

#[urgency::test(crate = "crate::tokio")]
async fn a_ported_test_polls_its_tasks_on_its_thread() {
    assert!(here(task_thread().await));
}
