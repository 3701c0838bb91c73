//! A stack only ever runs its own computation: it never grows by unrelated work, and a join never waits for a fork of
//! unrelated code. (rayon#592, a lock held across a join, is in `fork_join.rs`.)

mod common;

use common::{ends, fib, in_child_where, is_child, runtime};
use std::{
    collections::HashMap,
    hint,
    panic::catch_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    thread::{self, ThreadId},
};
use urgency::{Runtime, block_on, join, scope, spawn, spawn_fn};

/// How far the stack of each thread reached down.
#[derive(Debug, Default)]
struct Depths(Mutex<HashMap<ThreadId, (usize, usize)>>);

impl Depths {
    #[inline(never)]
    fn note(&self) {
        let local = 0u8;
        let address = (&raw const local).addr();
        let mut depths = self.0.lock().unwrap();
        let range = depths
            .entry(thread::current().id())
            .or_insert((address, address));
        range.0 = range.0.min(address);
        range.1 = range.1.max(address);
    }

    /// The deepest stack, in bytes between the highest and the lowest note.
    fn deepest(&self) -> usize {
        let depths = self.0.lock().unwrap();
        depths.values().map(|(low, high)| high - low).max().unwrap()
    }
}

/// What one such piece of work may take, with everything that the runtime puts under it.
const FRAME: usize = 64 << 10;

/// rayon#854: each of many forks waits in a join; a pool that steals while it waits piles them up on one stack until
/// the stack overflows.
#[test]
fn many_jobs_that_wait_in_joins_do_not_pile_up_on_one_stack() {
    ends(|| {
        for workers in [1, 2, 4] {
            let runtime = runtime(workers);
            let depths = Depths::default();
            let slow = || {
                depths.note();
                join(|| fib(6), || fib(12));
                depths.note();
            };
            runtime.run(|| {
                scope(|s| {
                    for _ in 0..2000 {
                        s.spawn(slow);
                    }
                });
            });
            assert!(depths.deepest() < FRAME, "{} bytes", depths.deepest());
        }
    });
}

#[test]
fn a_closure_that_waits_in_get_runs_nothing_else_on_its_stack() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let depths = Arc::new(Depths::default());
            let handles: Vec<_> = (0..300)
                .map(|_| {
                    let depths = depths.clone();
                    runtime.spawn_fn(move || {
                        depths.note();
                        let inner = depths.clone();
                        spawn_fn(move || {
                            inner.note();
                            spawn(async move { inner.note() }).get().unwrap();
                        })
                        .get()
                        .unwrap();
                        depths.note();
                    })
                })
                .collect();
            for handle in handles {
                handle.get().unwrap();
            }
            assert!(depths.deepest() < FRAME, "{} bytes", depths.deepest());
        }
    });
}

/// Whether a stranger's code ever runs on a stack between two lines of a computation that waits there.
#[test]
fn no_stranger_runs_on_a_stack_that_waits() {
    thread_local! { static INSIDE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) } }
    ends(|| {
        for workers in [1, 2, 4] {
            let runtime = runtime(workers);
            let strangers = Arc::new(AtomicUsize::new(0));
            let handles: Vec<_> = (1..200u32)
                .map(|i| {
                    let strangers = strangers.clone();
                    runtime.spawn_fn(move || {
                        if INSIDE.replace(i) != 0 {
                            strangers.fetch_add(1, SeqCst);
                        }
                        spawn(async {}).get().unwrap();
                        join(
                            || fib(5),
                            || block_on(async { spawn_fn(|| fib(5)).await.unwrap() }),
                        );
                        urgency::blocking(thread::yield_now);
                        if INSIDE.replace(0) != i {
                            strangers.fetch_add(1, SeqCst);
                        }
                    })
                })
                .collect();
            for handle in handles {
                handle.get().unwrap();
            }
            assert_eq!(strangers.load(SeqCst), 0);
        }
    });
}

/// rayon#957: a join whose stolen half is short does not return after a long stranger that was ready, too.
/// The stranger ends only after the join has returned: were it run inside the join, this would hang.
#[test]
fn a_join_does_not_wait_for_a_long_stranger() {
    ends(|| {
        for workers in [1, 2, 3] {
            let runtime = runtime(workers);
            for _ in 0..5 {
                let returned = Arc::new(AtomicBool::new(false));
                // As many as may go on without a worker.
                let strangers: Vec<_> = (0..workers)
                    .map(|_| {
                        let returned = returned.clone();
                        runtime.spawn_fn(move || {
                            while !returned.load(SeqCst) {
                                hint::spin_loop();
                            }
                        })
                    })
                    .collect();
                let joined = runtime.spawn_fn(move || {
                    let (tell, told) = mpsc::channel();
                    let right = move || tell.send(()).unwrap();
                    // The left side ends only when the right one has run: it was stolen for sure, where
                    // another worker is; else it waits without one.
                    let left = move || urgency::blocking(|| told.recv().unwrap());
                    if workers > 1 {
                        join(left, right);
                    } else {
                        join(|| fib(10), || fib(10));
                    }
                });
                joined.get().unwrap();
                returned.store(true, SeqCst);
                for stranger in strangers {
                    stranger.get().unwrap();
                }
            }
        }
    });
}

/// A scope that waits runs its own children only, and no others.
#[test]
fn a_scope_runs_its_own_children_while_it_waits() {
    ends(|| {
        let runtime = runtime(2);
        let outer_children_on_top = AtomicUsize::new(0);
        runtime.run(|| {
            thread_local! { static WAITS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) } }
            scope(|outer| {
                for _ in 0..500 {
                    outer.spawn(|| {
                        if WAITS.get() {
                            outer_children_on_top.fetch_add(1, SeqCst);
                        }
                        fib(4);
                    });
                }
                WAITS.set(true);
                scope(|inner| {
                    for _ in 0..100 {
                        inner.spawn(|| fib(8));
                    }
                });
                WAITS.set(false);
            });
        });
        assert_eq!(outer_children_on_top.load(SeqCst), 0);
    });
}

#[test]
fn deep_recursion_of_spawns_takes_tasks_not_stack() {
    fn chain(n: u32) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            match n {
                0 => 0,
                _ => spawn(chain(n - 1)).await.unwrap() + 1,
            }
        })
    }
    ends(|| {
        let runtime = runtime(2);
        assert_eq!(runtime.block_on(chain(100_000)), 100_000);
    });
}

/// Takes so many bytes of stack, and some more.
fn take_stack(bytes: usize) -> usize {
    let used = hint::black_box([1u8; 4096]);
    let rest = bytes.checked_sub(used.len()).map_or(0, take_stack);
    rest + usize::from(used[9])
}

/// A task that is awaited may run on the stack of its waiter, and that was of a plain thread, which had less.
#[test]
fn an_awaited_task_has_the_stack_that_was_asked_for_also_if_a_plain_thread_waits() {
    ends(|| {
        let builder = Runtime::builder().workers(1);
        let runtime = builder.thread_stack_size(256 << 20).build().unwrap();
        let small = thread::Builder::new().stack_size(1 << 20);
        let waits = move || runtime.run(|| spawn_fn(|| take_stack(16 << 20)).get());
        let taken = small.spawn(waits).unwrap().join().unwrap();
        assert!(taken.unwrap() >= 4096);
    });
}

/// As of the threads of the standard library, and of Tokio and rayon, which use that.
#[test]
fn rust_min_stack_is_the_size_of_the_threads_stacks() {
    if !is_child() {
        return in_child_where(
            "RUST_MIN_STACK",
            "268435456",
            "rust_min_stack_is_the_size_of_the_threads_stacks",
        );
    }
    ends(|| {
        let runtime = runtime(1);
        let taken = runtime.spawn_fn(|| take_stack(16 << 20)).get();
        assert!(taken.unwrap() >= 4096);
    });
}

#[test]
fn a_rust_min_stack_that_the_system_does_not_give_is_named_where_the_global_runtime_starts() {
    if !is_child() {
        return in_child_where(
            "RUST_MIN_STACK",
            "100000000000000",
            "a_rust_min_stack_that_the_system_does_not_give_is_named_where_the_global_runtime_starts",
        );
    }
    let refused = catch_unwind(|| join(|| 1, || 2)).unwrap_err();
    let text = refused.downcast_ref::<String>().unwrap();
    for word in ["100000000000000 bytes", "RUST_MIN_STACK"] {
        assert!(text.contains(word), "{text}");
    }
}
