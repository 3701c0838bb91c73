//! Misuse: an error or a propagated panic, never a hang, an abort, or a silent default.

mod common;

use common::{ends, fib, in_child, is_child, panics, runtime, still_works};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    time::Duration,
};
use urgency::{
    BuildError, JoinErrorKind, JoinHandle, MAX_WORKERS, Runtime, Shutdown, block_on, blocking,
    join, scope, spawn, spawn_fn, yield_now,
};

#[test]
fn zero_workers_are_an_error_that_says_what_is_allowed() {
    let error = Runtime::builder().workers(0).build().unwrap_err();
    assert_eq!(error, BuildError::Workers(0));
    let text = error.to_string();
    assert!(
        text.contains("0 workers") && text.contains(&MAX_WORKERS.to_string()),
        "{text}"
    );
}

#[test]
fn too_many_workers_are_an_error_and_the_most_are_not() {
    let error = Runtime::builder().workers(MAX_WORKERS + 1).build();
    assert_eq!(error.unwrap_err(), BuildError::Workers(MAX_WORKERS + 1));
    ends(|| {
        let runtime = Runtime::builder().workers(MAX_WORKERS).build().unwrap();
        assert_eq!(runtime.spawn(async { 5 }).get().unwrap(), 5);
    });
}

#[test]
fn a_thread_limit_below_what_the_workers_need_is_an_error_that_says_the_least() {
    let error = Runtime::builder()
        .workers(4)
        .thread_limit(5)
        .build()
        .unwrap_err();
    assert_eq!(error, BuildError::Threads { limit: 5, least: 6 });
    assert!(error.to_string().contains('6'));
    assert!(
        Runtime::builder()
            .workers(4)
            .thread_limit(6)
            .build()
            .is_ok()
    );
}

#[test]
fn a_stack_size_that_is_too_small_or_that_the_system_does_not_give_is_an_error_that_names_it() {
    for bytes in [0, 1, 32 << 10, 1 << 50, usize::MAX / 2, usize::MAX] {
        let built = Runtime::builder().thread_stack_size(bytes).build();
        let error = built.unwrap_err();
        assert_eq!(error, BuildError::StackSize(bytes));
        assert!(error.to_string().contains(&bytes.to_string()), "{error}");
    }
    for bytes in [64 << 10, 64 << 20] {
        let runtime = Runtime::builder().thread_stack_size(bytes).build().unwrap();
        assert_eq!(runtime.spawn_fn(|| 5).get().unwrap(), 5);
    }
}

#[test]
fn a_second_global_runtime_is_an_error() {
    if !is_child() {
        return in_child("a_second_global_runtime_is_an_error");
    }
    let global = Runtime::builder().workers(1).build_global().unwrap();
    assert_eq!(spawn(async { 3 }).get().unwrap(), 3);
    assert_eq!(global.stats().workers.len(), 1);
    let second = Runtime::builder().build_global();
    assert_eq!(second.unwrap_err(), BuildError::GlobalExists);
}

#[test]
fn a_level_that_the_runtime_does_not_have_is_a_panic_that_names_it() {
    let runtime = runtime(1);
    let level = urgency::LevelId::new(7).unwrap();
    let text = panics(|| runtime.at(level).spawn(async {}));
    assert!(text.contains("no level 7"), "{text}");
    still_works(&runtime);
}

#[test]
fn blocking_gets_on_a_single_worker_end() {
    ends(|| {
        let runtime = runtime(1);
        let sum = runtime.block_on(async {
            // An async task that blocks its poll, and closures that block one in the other.
            let inner = spawn(async {
                spawn_fn(|| spawn(async { 1 }).get().unwrap())
                    .get()
                    .unwrap()
            });
            let scoped = scope(|_| spawn(async { 2 }).get().unwrap());
            let (a, b) = join(
                || spawn(async { 3 }).get().unwrap(),
                || spawn_fn(|| 4).get().unwrap(),
            );
            inner.get().unwrap() + scoped + a + b
        });
        assert_eq!(sum, 10);
    });
}

/// Gives the closure its own handle, and returns what it found.
fn with_own_handle<T: Send + 'static>(
    start: impl FnOnce(mpsc::Receiver<JoinHandle<()>>, mpsc::Sender<T>) -> JoinHandle<()>,
) -> T {
    let (give, take) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    give.send(start(take, tell)).unwrap();
    told.recv().unwrap()
}

#[test]
fn waiting_for_oneself_is_an_error_in_a_closure_and_in_a_task() {
    ends(|| {
        let runtime = runtime(1);
        let kind = with_own_handle(|take, tell| {
            runtime.spawn_fn(move || {
                let me = blocking(|| take.recv().unwrap());
                tell.send(me.get().unwrap_err().kind()).unwrap();
            })
        });
        assert_eq!(kind, JoinErrorKind::WaitsForItself);
        let kind = with_own_handle(|take, tell| {
            runtime.spawn(async move {
                let me = blocking(|| take.recv().unwrap());
                tell.send(me.await.unwrap_err().kind()).unwrap();
            })
        });
        assert_eq!(kind, JoinErrorKind::WaitsForItself);
        let kind = with_own_handle(|take, tell| {
            runtime.spawn(async move {
                let me = blocking(|| take.recv().unwrap());
                // The blocking form, inside a poll.
                tell.send(me.get().unwrap_err().kind()).unwrap();
            })
        });
        assert_eq!(kind, JoinErrorKind::WaitsForItself);
        still_works(&runtime);
    });
}

#[test]
fn a_circle_of_waits_is_broken_by_cancelling() {
    ends(|| {
        let runtime = runtime(2);
        let slots: [Arc<Mutex<Option<JoinHandle<()>>>>; 2] = Default::default();
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let handles: Vec<_> = (0..2)
            .map(|i| {
                let (other, wait) = (slots[1 - i].clone(), wait.clone());
                runtime.spawn(async move {
                    blocking(|| wait.lock().unwrap().recv().unwrap());
                    let other = other.lock().unwrap().take().unwrap();
                    let _ = other.await;
                })
            })
            .collect();
        for (slot, handle) in slots.iter().zip(handles) {
            *slot.lock().unwrap() = Some(handle);
        }
        go.send(()).unwrap();
        go.send(()).unwrap();
        still_works(&runtime);
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
    });
}

#[test]
fn waiting_after_a_shutdown_is_an_error() {
    ends(|| {
        let runtime = runtime(2);
        let pending: Vec<_> = (0..10)
            .map(|_| runtime.spawn(std::future::pending::<()>()))
            .collect();
        let waits = runtime.spawn(std::future::pending::<()>());
        let waiter = runtime.spawn_fn(move || waits.get().unwrap_err().kind());
        let done = runtime.spawn(async { 5 });
        while !done.is_finished() {
            std::thread::yield_now();
        }
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
        for handle in pending {
            assert!(handle.get().is_err());
        }
        // The task was cancelled before it started, or saw the end of what it waited for.
        assert!(!matches!(waiter.get(), Ok(JoinErrorKind::WaitsForItself)));
        assert_eq!(done.get().unwrap(), 5, "a result that is there stays there");
    });
}

#[test]
fn spawning_after_a_shutdown_gives_a_handle_that_says_so() {
    ends(|| {
        let runtime = runtime(1);
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let (begin, begun) = mpsc::channel();
        runtime
            .spawn_fn(move || {
                begin.send(()).unwrap();
                blocking(|| wait.recv().unwrap());
                let kinds = (
                    spawn(async {}).get().unwrap_err().kind(),
                    spawn_fn(|| ()).get().unwrap_err().kind(),
                );
                let forked = fib(10);
                tell.send((kinds, forked)).unwrap();
            })
            .detach();
        begun.recv().unwrap();
        let report = runtime.shutdown_within(Shutdown::Cancel, Duration::from_millis(50));
        assert_eq!(report.left, 1);
        go.send(()).unwrap();
        let (kinds, forked) = told.recv().unwrap();
        assert_eq!(kinds, (JoinErrorKind::ShutDown, JoinErrorKind::ShutDown));
        assert_eq!(forked, 55, "join still works");
    });
}

#[test]
fn a_child_spawned_from_another_runtime_belongs_to_its_scope() {
    ends(|| {
        let (one, other) = (runtime(2), runtime(2));
        let count = AtomicUsize::new(0);
        for _ in 0..50 {
            one.run(|| {
                scope(|s| {
                    other.run(|| {
                        for _ in 0..10 {
                            s.spawn(|| count.fetch_add(1, SeqCst));
                        }
                    });
                    std::thread::scope(|threads| {
                        threads.spawn(|| s.spawn(|| count.fetch_add(1, SeqCst)));
                    });
                    blocking(|| s.spawn(|| count.fetch_add(1, SeqCst)));
                    block_on(async { s.spawn(|| count.fetch_add(1, SeqCst)) });
                });
            });
        }
        assert_eq!(count.load(SeqCst), 50 * 13);
    });
}

#[test]
fn a_child_spawned_under_a_panic_in_another_runtime_still_runs_before_its_scope_ends() {
    ends(|| {
        let (one, other) = (runtime(1), runtime(1));
        let count = AtomicUsize::new(0);
        let text = panics(|| {
            one.run(|| {
                scope(|s| {
                    other.run(|| {
                        s.spawn(|| count.fetch_add(1, SeqCst));
                        panic!("on purpose");
                    });
                });
            })
        });
        assert_eq!(text, "on purpose");
        assert_eq!(count.load(SeqCst), 1);
        still_works(&one);
        still_works(&other);
    });
}

#[test]
fn a_runtime_that_runs_in_itself_at_another_level_does_not_deadlock() {
    urgency::levels! { pub Two: High > Low }
    ends(|| {
        let runtime = Runtime::builder()
            .workers(1)
            .levels::<Two>()
            .build()
            .unwrap();
        let sum = runtime.at(Low).run(|| {
            runtime
                .at(High)
                .run(|| runtime.at(Low).run(|| fib(10)) + fib(10))
                + fib(10)
        });
        assert_eq!(sum, 165);
    });
}

#[test]
fn a_result_taken_twice_is_a_panic_that_says_so() {
    ends(|| {
        let runtime = runtime(1);
        let mut handle = runtime.spawn(async { 1 });
        let one = loop {
            if let Some(one) = handle.try_get() {
                break one.unwrap();
            }
        };
        assert_eq!(one, 1);
        assert!(panics(|| handle.try_get()).contains("once"));
        still_works(&runtime);
    });
}

#[test]
fn an_endless_recursion_of_spawns_is_cancelled_by_a_shutdown() {
    fn forever(
        count: Arc<AtomicUsize>,
        stop: Arc<AtomicBool>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            count.fetch_add(1, SeqCst);
            if !stop.load(SeqCst) {
                spawn(forever(count.clone(), stop.clone())).detach();
                yield_now().await;
            }
        })
    }
    ends(|| {
        let runtime = runtime(2);
        let count = Arc::new(AtomicUsize::new(0));
        runtime
            .spawn(forever(count.clone(), Arc::default()))
            .detach();
        while count.load(SeqCst) < 1000 {
            std::thread::yield_now();
        }
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
        let sum = report.finished + report.cancelled + report.panicked;
        assert_eq!(sum, report.spawned, "{report:?}");
    });
}
