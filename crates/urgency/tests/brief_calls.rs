//! Declared blocking calls that are over at once keep their worker, and behave as the others do.

mod common;

use common::ends;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc::channel,
    },
    thread,
    time::Duration,
};
use urgency::{
    Runtime, Shutdown, block_on, blocking, join, life::PanicPolicy, scheduling_point, scope, spawn,
    spawn_fn, yield_now,
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

/// As after a call that gave its worker away, the code checks in.
#[test]
fn more_urgent_work_that_is_there_after_a_brief_call_goes_first() {
    ends(|| {
        let builder = Runtime::builder().levels::<Two>().workers(1);
        let runtime = builder.build().unwrap();
        let its = runtime.clone();
        let calls = move || {
            let went_first = |_: &u32| {
                (0..600).for_each(|_| blocking(|| ()));
                let ran = Arc::new(AtomicBool::new(false));
                let runs = ran.clone();
                let urgent = async move { runs.store(true, Relaxed) };
                blocking(|| its.at(High).spawn(urgent).detach());
                ran.load(Relaxed)
            };
            (0..100).filter(went_first).count()
        };
        let first = runtime.at(Low).spawn_fn(calls).get().unwrap();
        assert!(first > 90 || cfg!(urgency_chaos), "{first} of 100");
    });
}

/// The first of them is a surprise.
#[test]
fn of_many_calls_that_begin_to_block_at_once_few_need_relief() {
    const CALLS: usize = 60;
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let few = (0..10).any(|_| {
            runtime.spawn_fn(many_brief_calls).get().unwrap();
            let before = runtime.stats().total().reliefs;
            let begun = Arc::new(AtomicUsize::new(0));
            let calls = (0..CALLS).map(|_| {
                let begun = begun.clone();
                let waits = move || {
                    begun.fetch_add(1, Relaxed);
                    while begun.load(Relaxed) < CALLS {
                        thread::sleep(Duration::from_millis(1));
                    }
                };
                runtime.spawn_fn(|| blocking(waits))
            });
            for call in calls.collect::<Vec<_>>() {
                call.get().unwrap();
            }
            runtime.stats().total().reliefs - before < CALLS as u64 / 4
        });
        assert!(few || cfg!(urgency_chaos), "relief ends the calls");
    });
}

#[test]
fn a_call_after_brief_ones_may_wait_for_the_children_of_a_scope_around_it() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let calls = || {
                for _ in 0..20 {
                    many_brief_calls();
                    let ran = AtomicUsize::new(0);
                    scope(|s| {
                        s.spawn(|| ran.fetch_add(1, Relaxed));
                        blocking(|| s.sync());
                        assert_eq!(ran.load(Relaxed), 1);
                    });
                }
            };
            runtime.spawn_fn(calls).get().unwrap();
            assert_eq!(runtime.shutdown(Shutdown::Drain).left, 0);
        }
    });
}

/// It has lost its worker to the other one, and needs none.
#[test]
fn a_call_after_brief_ones_may_wait_beside_more_urgent_code_that_goes_on_until_it_has() {
    ends(|| {
        let builder = Runtime::builder().levels::<Two>().workers(1);
        let runtime = builder.build().unwrap();
        let [(begun, begins), (urgent, is_urgent)] = [channel(), channel()];
        let waited = Arc::new(AtomicBool::new(false));
        let its = waited.clone();
        let low = runtime.at(Low).spawn_fn(move || {
            many_brief_calls();
            blocking(|| {
                begun.send(()).unwrap();
                is_urgent.recv().unwrap();
                block_on(yield_now());
                its.store(true, Relaxed);
            });
        });
        begins.recv().unwrap();
        let high = runtime.at(High).spawn_fn(move || {
            urgent.send(()).unwrap();
            while !waited.load(Relaxed) {
                thread::yield_now();
            }
        });
        high.get().unwrap();
        low.get().unwrap();
    });
}

#[test]
fn code_that_made_brief_calls_and_shuts_its_runtime_down_needs_no_relief() {
    ends(|| {
        let ends_without_relief = || {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let its = runtime.clone();
            let (send, receive) = channel();
            let ends = move || {
                many_brief_calls();
                spawn(std::future::pending::<()>()).detach();
                send.send(its.shutdown(Shutdown::Cancel)).unwrap();
            };
            runtime.spawn_fn(ends).detach();
            let report = receive.recv().unwrap();
            // The code itself is left.
            assert_eq!((report.cancelled, report.left), (1, 1));
            runtime.stats().total().reliefs == 0
        };
        let without = (0..20).any(|_| ends_without_relief());
        assert!(without || cfg!(urgency_chaos), "relief ends the wait");
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
