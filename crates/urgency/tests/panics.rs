//! Panics in every kind of context, and what is forgotten: the waiter is told, and the runtime goes on.

mod common;

use common::{ends, fib, in_child, is_child, one_shot, panics, runtime, still_works};
use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::*},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use urgency::{
    JoinHandle, Shutdown, block_on, blocking, join, scope, spawn, spawn_fn, time, yield_now,
};

/// Panics when it is dropped, unless a panic is under way.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, in a drop");
        }
    }
}

/// As [`PanicsInDrop`], also while a panic is under way, which ends the process.
struct EndsInUnwinding;

impl Drop for EndsInUnwinding {
    fn drop(&mut self) {
        panic!("on purpose, in a drop");
    }
}

/// The result of a task, whose panic goes on here.
fn joined<T>(handle: JoinHandle<T>) -> T {
    let ended = handle.get();
    ended.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

#[test]
fn a_panic_in_every_kind_of_context_reaches_its_waiter_and_the_runtime_goes_on() {
    type Case = fn();
    let cases: [(&str, Case); 14] = [
        ("join left", || {
            join(|| panic!("on purpose"), || fib(5));
        }),
        ("join right", || {
            join(|| fib(5), || panic!("on purpose"));
        }),
        ("join both", || {
            join(|| panic!("on purpose"), || panic!("the other, on purpose"));
        }),
        ("scope body", || {
            scope(|s| {
                s.spawn(|| fib(5));
                panic!("on purpose")
            })
        }),
        ("scope child", || {
            scope(|s| s.spawn(|| panic!("on purpose")))
        }),
        ("scope sync", || {
            scope(|s| {
                s.spawn(|| panic!("on purpose"));
                s.sync();
                unreachable!("sync resumes the panic of a child")
            })
        }),
        ("task", || joined(spawn(async { panic!("on purpose") }))),
        ("task later", || {
            joined(spawn(async {
                yield_now().await;
                panic!("on purpose")
            }))
        }),
        ("closure", || joined(spawn_fn(|| panic!("on purpose")))),
        ("blocking", || blocking(|| panic!("on purpose"))),
        ("block_on", || block_on(async { panic!("on purpose") })),
        ("shared", || {
            let shared = spawn_fn(|| -> u32 { panic!("on purpose") }).share();
            let other = shared.clone();
            for error in [shared.get(), other.get()].map(Result::unwrap_err) {
                assert!(error.is_panic() && error.to_string().ends_with("on purpose"));
            }
            resume_unwind(shared.get().unwrap_err().into_panic());
        }),
        ("in blocking in join in task", || {
            joined(spawn(async {
                join(|| blocking(|| fib(3)), || blocking(|| panic!("on purpose")));
            }))
        }),
        ("drop of a result", || {
            drop(joined(spawn(async { PanicsInDrop })));
        }),
    ];
    ends(move || {
        for workers in [1, 2, 3] {
            let runtime = runtime(workers);
            for (name, case) in cases {
                for _ in 0..10 {
                    let text = panics(|| runtime.run(case));
                    assert!(text.starts_with("on purpose"), "{name}: {text}");
                    let text = panics(|| joined(runtime.spawn_fn(case)));
                    assert!(text.starts_with("on purpose"), "{name}: {text}");
                    let text = panics(|| joined(runtime.spawn(async move { case() })));
                    assert!(text.starts_with("on purpose"), "{name}: {text}");
                }
            }
            still_works(&runtime);
            let report = runtime.shutdown(Shutdown::Drain);
            assert_eq!(report.left, 0, "{report:?}");
        }
    });
}

#[test]
fn a_panic_in_the_drop_of_a_future_or_of_its_result_stays_in_the_task() {
    ends(|| {
        let runtime = runtime(2);
        for i in 0..50 {
            // Dropped at its end, when cancelled, when detached, and with its result unwanted.
            let ends = runtime.spawn(async {
                let _bomb = PanicsInDrop;
                yield_now().await;
            });
            assert_eq!(panics(|| joined(ends)), "on purpose, in a drop");
            let cancelled = runtime.spawn(async {
                let _bomb = PanicsInDrop;
                std::future::pending::<()>().await;
            });
            if i % 2 == 0 {
                still_works(&runtime);
            }
            cancelled.abort();
            let _ = catch_unwind(AssertUnwindSafe(|| cancelled.get()));
            // The unwanted result is dropped by the task, or here if the task was faster.
            let unwanted = runtime.spawn(async { PanicsInDrop });
            let _ = catch_unwind(AssertUnwindSafe(|| unwanted.detach()));
            let unwanted = runtime.spawn_fn(|| PanicsInDrop);
            let _ = catch_unwind(AssertUnwindSafe(|| unwanted.detach()));
            let late = runtime.spawn(async { PanicsInDrop });
            while !late.is_finished() {
                std::thread::yield_now();
            }
            let _ = catch_unwind(AssertUnwindSafe(|| drop(late)));
        }
        still_works(&runtime);
        let pending = runtime.spawn(async {
            let _bomb = PanicsInDrop;
            std::future::pending::<()>().await;
        });
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
        let _ = catch_unwind(AssertUnwindSafe(|| pending.get()));
    });
}

/// A waker that panics, as anybody may write one.
struct PanicsInWake(AtomicUsize);

impl Wake for PanicsInWake {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        panic!("on purpose, in a waker");
    }
}

#[test]
fn a_panic_in_a_waker_costs_no_thread_and_no_other_wake_up() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let woken = Arc::new(PanicsInWake(AtomicUsize::new(0)));
            let waker = Waker::from(woken.clone());
            for round in 1..=10 {
                // By the end of a task.
                let (tell, told) = one_shot::<()>();
                let mut handle = runtime.spawn(told);
                let pending = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
                assert!(pending.is_pending());
                tell(());
                while woken.0.load(SeqCst) < 2 * round - 1 {
                    std::thread::yield_now();
                }
                handle.get().unwrap();
                // By a timer.
                let (waker, wakes) = (waker.clone(), woken.clone());
                let sleeping = runtime.spawn(async move {
                    let mut sleep = pin!(time::sleep(Duration::from_millis(1)));
                    let is_over = |sleep: Pin<&mut time::Sleep>| {
                        sleep.poll(&mut Context::from_waker(&waker)).is_ready()
                    };
                    while is_over(sleep.as_mut()) {
                        // The kernel has stopped this thread for so long.
                        sleep.set(time::sleep(Duration::from_millis(1)));
                    }
                    // The other timers expire with it, or after it.
                    let others: Vec<_> = (0..5)
                        .map(|_| spawn(time::sleep(Duration::from_millis(1))))
                        .collect();
                    for other in others {
                        other.await.unwrap();
                    }
                    // They may be over before their timers expire. What sleeps and is dropped wakes nothing.
                    while wakes.0.load(SeqCst) < 2 * round {
                        yield_now().await;
                    }
                });
                sleeping.get().unwrap();
            }
            still_works(&runtime);
            assert!(runtime.stats().threads >= 1);
        }
    });
}

#[test]
fn a_forgotten_handle_harms_nobody() {
    ends(|| {
        let runtime = runtime(2);
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let ran = ran.clone();
            std::mem::forget(runtime.spawn(async move {
                yield_now().await;
                ran.fetch_add(1, SeqCst)
            }));
        }
        std::mem::forget(runtime.spawn(std::future::pending::<()>()));
        while ran.load(SeqCst) < 100 {
            std::thread::yield_now();
        }
        let report = runtime.shutdown_within(Shutdown::Drain, Duration::from_millis(500));
        assert_eq!(
            (report.finished, report.cancelled, report.left),
            (100, 1, 0)
        );
        assert_eq!(ran.load(SeqCst), 100);
    });
}

/// A `block_on` whose future is forgotten half-way cannot leave anything that wakes a dead stack.
#[test]
fn a_waker_that_outlives_its_stack_and_its_runtime_is_harmless() {
    ends(|| {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let runtime = runtime(2);
        for _ in 0..20 {
            let keep = || {
                let kept = kept.clone();
                let mut polls = 0;
                poll_fn(move |cx| {
                    kept.lock().unwrap().push(cx.waker().clone());
                    polls += 1;
                    if polls == 3 {
                        return Poll::Ready(());
                    }
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
            };
            runtime.block_on(keep());
            let closure = keep();
            runtime.spawn_fn(move || block_on(closure)).get().unwrap();
            runtime.spawn(keep()).get().unwrap();
            // Stale wake-ups of stacks that do other things now.
            kept.lock().unwrap().iter().for_each(Waker::wake_by_ref);
            assert_eq!(runtime.run(|| fib(10)), 55);
        }
        drop(runtime);
        for waker in kept.lock().unwrap().drain(..) {
            waker.wake_by_ref();
            waker.wake();
        }
    });
}

#[test]
fn what_a_childs_panic_carries_is_gone_before_its_scope_unwinds() {
    if !is_child() {
        return in_child("what_a_childs_panic_carries_is_gone_before_its_scope_unwinds");
    }
    let text = panics(|| {
        scope(|s| {
            s.spawn(|| panic_any(EndsInUnwinding));
            panic!("on purpose, in the body")
        })
    });
    assert_eq!(text, "on purpose, in the body");
}
