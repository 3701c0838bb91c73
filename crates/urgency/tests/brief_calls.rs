//! Declared blocking calls that are over at once keep their worker, and behave as the others do.

mod common;

use common::ends;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::channel,
    },
};
use urgency::{
    Runtime, block_on, blocking, join, life::PanicPolicy, scheduling_point, spawn, spawn_fn,
    yield_now,
};

urgency::levels! { Two: High > Low }

/// After so many the next call keeps its worker, unless the kernel preempted several of them.
const MANY: usize = 2000;

fn many_brief_calls() {
    (0..MANY).for_each(|_| blocking(|| ()));
}

#[test]
fn brief_calls_beside_work_that_waits_seldom_hand_their_worker_over() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let yields = ended.clone();
        let waits = runtime.spawn(async move {
            while !yields.load(Relaxed) {
                yield_now().await;
            }
        });
        let hand_offs = || runtime.stats().total().hand_offs;
        // Others may preempt the calls for a while.
        let seldom = (0..50).any(|_| {
            let before = hand_offs();
            runtime.spawn_fn(many_brief_calls).get().unwrap();
            hand_offs() - before < MANY as u64 / 4
        });
        ended.store(true, Relaxed);
        waits.get().unwrap();
        assert!(
            seldom || cfg!(urgency_chaos),
            "each call hands its worker over"
        );
    });
}

/// A call that waits by means of the library gives its worker away.
#[test]
fn forks_and_waits_in_calls_after_brief_ones_need_no_relief() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let calls = || {
            many_brief_calls();
            for n in 0..100_u64 {
                assert_eq!(blocking(|| join(|| n, || n)), (n, n));
                assert_eq!(blocking(|| spawn(async move { n }).get().unwrap()), n);
                (0..300).for_each(|_| blocking(|| ()));
            }
        };
        let few = (0..10).any(|_| {
            let before = runtime.stats().total().reliefs;
            runtime.spawn_fn(calls).get().unwrap();
            runtime.stats().total().reliefs - before < 50
        });
        assert!(few || cfg!(urgency_chaos), "relief ends the waits");
    });
}

/// Relief frees the worker.
#[test]
fn a_call_that_blocks_after_brief_ones_may_wait_for_work_of_the_same_worker() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let waiters = (0..workers).map(|n| {
                runtime.spawn_fn(move || {
                    many_brief_calls();
                    let (send, receive) = channel();
                    spawn(async move { send.send(n).unwrap() }).detach();
                    blocking(|| receive.recv().unwrap())
                })
            });
            for (n, waiter) in waiters.collect::<Vec<_>>().into_iter().enumerate() {
                assert_eq!(waiter.get().unwrap(), n);
            }
        }
    });
}

#[test]
fn more_urgent_work_runs_beside_a_call_that_blocks_after_brief_ones() {
    ends(|| {
        let runtime = Runtime::builder().levels::<Two>().workers(1);
        let runtime = runtime.build().unwrap();
        let (begun, begins) = channel();
        let (send, receive) = channel();
        let waiter = runtime.at(Low).spawn_fn(move || {
            many_brief_calls();
            begun.send(()).unwrap();
            blocking(|| receive.recv().unwrap())
        });
        begins.recv().unwrap();
        runtime
            .at(High)
            .spawn(async move { send.send(42).unwrap() })
            .detach();
        assert_eq!(waiter.get().unwrap(), 42);
    });
}

#[test]
fn a_call_after_brief_ones_forks_waits_spawns_and_panics_as_any() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let calls = || {
                many_brief_calls();
                for n in 0..20_u64 {
                    let forks = || join(|| common::fib(10), || n);
                    assert_eq!(blocking(forks), (common::fib(10), n));
                    assert_eq!(blocking(|| spawn_fn(move || n).get().unwrap()), n);
                    assert_eq!(blocking(|| block_on(spawn(async move { n }))).unwrap(), n);
                    assert_eq!(blocking(|| blocking(|| n)), n);
                    let panics = || blocking(|| panic!("as it is meant to"));
                    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
                    scheduling_point();
                    assert_eq!(spawn(async move { n }).get().unwrap(), n);
                }
            };
            runtime.spawn_fn(calls).get().unwrap();
            let report = runtime.shutdown(urgency::Shutdown::Drain);
            assert_eq!(report.left, 0);
        }
    });
}

struct WaitsWhenDropped;

impl Drop for WaitsWhenDropped {
    fn drop(&mut self) {
        assert_eq!(join(|| 6, || 7), (6, 7));
        assert_eq!(spawn(async { 42 }).get().unwrap(), 42);
    }
}

/// The scheduler sets the stack aside there as well, and no worker is to be given away.
#[test]
fn a_destructor_that_waits_at_the_end_of_a_runtime_leaves_the_worker_to_the_code_that_ended_it() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let ends_another = || {
            let waits = WaitsWhenDropped;
            let policy = PanicPolicy::call(move |_| _ = &waits);
            drop(Runtime::builder().on_panic(policy).build().unwrap());
            many_brief_calls();
            join(|| 1, || 2)
        };
        assert_eq!(runtime.spawn_fn(ends_another).get().unwrap(), (1, 2));
    });
}
