//! The last handle of a runtime is dropped in code that the runtime calls: the runtime ends, with one worker and with
//! two. And a result does anything when it is dropped.

mod common;

use common::{ends, fib, quiet, runtime, still_works, until};
use std::{
    panic::resume_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Wake, Waker},
    time::Duration,
};
use urgency::{
    Runtime, block_on, join,
    life::{Local, PanicPolicy},
    runtime::Handle,
    scope, spawn, spawn_fn, time, yield_now,
};

/// Where the last handle is until it is dropped.
type Slot = Arc<Mutex<Option<Runtime>>>;

/// `leave` sees to it that the last handle, in the slot, is dropped by code that the runtime calls.
fn the_runtime_ends(leave: impl Fn(Slot, &Handle) + Send + Clone + 'static) {
    quiet();
    for workers in [1, 2] {
        let leave = leave.clone();
        ends(move || {
            let slot = Slot::default();
            let its = slot.clone();
            let policy = PanicPolicy::call(move |_| drop(its.lock().unwrap().take()));
            let builder = Runtime::builder().workers(workers).on_panic(policy);
            let runtime = builder.build().unwrap();
            let waits = runtime.spawn(std::future::pending::<()>());
            let handle = runtime.handle().clone();
            *slot.lock().unwrap() = Some(runtime);
            leave(slot, &handle);
            assert!(waits.get().is_err());
            until(|| handle.spawn(async {}).get().is_err());
        });
    }
}

fn take(slot: &Slot) -> Runtime {
    slot.lock().unwrap().take().unwrap()
}

#[test]
fn when_the_call_at_a_panic_drops_it() {
    the_runtime_ends(|_, handle| handle.spawn(async { panic!("on purpose") }).detach());
    the_runtime_ends(|_, handle| handle.spawn_fn(|| panic!("on purpose")).detach());
}

#[test]
fn when_the_drop_of_a_cancelled_future_drops_it() {
    the_runtime_ends(|slot, handle| {
        let last = take(&slot);
        let task = handle.spawn(async move {
            let _last = last;
            std::future::pending::<()>().await;
        });
        task.abort();
        assert!(task.get().is_err());
    });
}

#[test]
fn when_a_result_or_a_panic_is_dropped_that_nothing_waits_for() {
    the_runtime_ends(|slot, handle| {
        let last = take(&slot);
        handle.spawn(async move { last }).detach();
    });
    the_runtime_ends(|slot, handle| {
        let last = take(&slot);
        handle.spawn_fn(move || last).detach();
    });
    the_runtime_ends(|slot, handle| {
        let last = take(&slot);
        handle
            .spawn_fn(move || {
                let last = last;
                resume_unwind(Box::new(last))
            })
            .detach();
    });
}

#[test]
fn when_a_fork_or_a_child_drops_it() {
    the_runtime_ends(|slot, handle| {
        let last = take(&slot);
        handle
            .spawn_fn(move || drop(join(|| (), move || last)))
            .detach();
    });
    the_runtime_ends(|slot, handle| {
        let last = take(&slot);
        let forks = move || {
            scope(|scope| {
                scope.spawn(move || drop(last));
            });
        };
        handle.spawn_fn(forks).detach();
    });
}

#[test]
fn when_a_local_is_dropped_that_has_it() {
    static KEPT: Local<Runtime> = Local::new();
    the_runtime_ends(|slot, handle| {
        let last = take(&slot);
        handle.spawn(KEPT.with(last, yield_now())).detach();
    });
}

/// A waker that takes the last handle, and drops it.
struct Takes(Slot);

impl Wake for Takes {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

/// Lets a future of the runtime that takes some time call the waker. It takes more if this thread waits too long for a
/// processor.
fn wait_with<F: Future<Output: Send> + Send>(
    handle: &Handle,
    waker: &Waker,
    future: impl Fn(Duration) -> F,
) {
    for doubled in 0.. {
        let mut future = Box::pin(future(Duration::from_millis(5 << doubled)));
        let polled = handle.run(|| future.as_mut().poll(&mut Context::from_waker(waker)));
        if polled.is_pending() {
            // Kept: a timer is there until it expires.
            return std::mem::forget(future);
        }
    }
}

#[test]
fn when_a_waker_drops_it_that_a_timer_calls() {
    the_runtime_ends(|slot, handle| {
        let waker = Waker::from(Arc::new(Takes(slot)));
        wait_with(handle, &waker, time::sleep);
    });
}

#[test]
fn when_a_waker_drops_it_that_the_end_of_a_task_calls() {
    the_runtime_ends(|slot, handle| {
        let waker = Waker::from(Arc::new(Takes(slot)));
        wait_with(handle, &waker, |time| handle.spawn(time::sleep(time)));
    });
}

/// Calls a function when it is dropped.
struct Does(fn(), Arc<AtomicUsize>);

impl Drop for Does {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
        (self.0)();
    }
}

#[test]
fn a_result_that_waits_forks_or_spawns_when_it_is_dropped_costs_nothing() {
    let all: [fn(); 5] = [
        || block_on(time::sleep(Duration::from_millis(1))),
        || spawn_fn(|| common::fib(5)).get().map(drop).unwrap(),
        || spawn(async {}).detach(),
        || assert_eq!(common::fib(10), 55),
        || block_on(async { spawn(yield_now()).await.unwrap() }),
    ];
    for workers in [1, 2] {
        ends(move || {
            let runtime = runtime(workers);
            let dropped = Arc::new(AtomicUsize::new(0));
            for what in all {
                let made = || Does(what, dropped.clone());
                let (one, other, kept) = (made(), made(), made());
                runtime.spawn(async move { one }).detach();
                runtime.spawn_fn(move || other).detach();
                let cancelled = runtime.spawn(async move {
                    let _kept = kept;
                    std::future::pending::<()>().await;
                });
                cancelled.abort();
                assert!(cancelled.get().is_err());
            }
            until(|| dropped.load(SeqCst) == 3 * all.len());
            still_works(&runtime);
        });
    }
}

/// The last reference to a runtime is a thread's that has nothing more to do.
#[test]
fn what_a_runtime_beside_another_keeps_may_start_the_others_work_when_it_is_dropped() {
    struct Starts(Handle, mpsc::Sender<()>);
    impl Drop for Starts {
        fn drop(&mut self) {
            let tell = self.1.clone();
            self.0.spawn(async move { tell.send(()).unwrap() }).detach();
        }
    }
    ends(|| {
        let stays = Runtime::builder().workers(2).build().unwrap();
        for _ in 0..300 {
            let (tell, told) = mpsc::channel();
            let kept = Starts(stays.handle().clone(), tell);
            let keeps = PanicPolicy::call(move |_| _ = &kept);
            let goes = Runtime::builder().share_workers_with(&stays);
            let goes = goes.on_panic(keeps).build().unwrap();
            // Both workers have something to do, and then nothing.
            let tasks = [(); 3].map(|()| goes.spawn_fn(|| fib(6)));
            drop(goes);
            drop(tasks);
            told.recv().unwrap();
        }
    });
}
