//! Scopes of tasks: none outlives its scope, whatever panics, is cancelled or dropped.

mod common;

use common::{Count, ends, quiet, runtime};
use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};
use urgency::{
    JoinErrorKind, block_on,
    life::{TaskScope, task_scope},
    sync::Notify,
    yield_now,
};

#[test]
fn a_scope_waits_for_its_tasks_and_for_the_tasks_that_they_spawn() {
    ends(|| {
        let runtime = runtime(2);
        let done = Count::default();
        let theirs = done.clone();
        runtime.block_on(task_scope(async move |scope| {
            for _ in 0..20 {
                let (again, done) = (scope.clone(), theirs.clone());
                scope.spawn(async move {
                    yield_now().await;
                    let inner = done.on_drop();
                    again.spawn_fn(move || drop(inner));
                    drop(done.on_drop());
                });
            }
        }));
        assert_eq!(done.get(), 40);
    });
}

#[test]
fn a_panic_in_a_scope_cancels_the_others_and_goes_on_when_they_are_over() {
    quiet();
    ends(|| {
        let runtime = runtime(2);
        for in_body in [true, false] {
            let over = Count::default();
            let theirs = over.clone();
            let task = runtime.spawn(task_scope(async move |scope| {
                for _ in 0..10 {
                    let kept = theirs.on_drop();
                    scope.spawn(async move {
                        let _kept = kept;
                        pending::<()>().await
                    });
                }
                if in_body {
                    panic!("on purpose");
                }
                scope.spawn(async { panic!("on purpose") });
            }));
            let panic = task.get().unwrap_err().into_panic();
            match in_body {
                true => assert_eq!(*panic.downcast::<&str>().unwrap(), "on purpose"),
                false => {
                    let text = *panic.downcast::<String>().unwrap();
                    assert_eq!(text, "a task of the scope panicked: on purpose");
                }
            }
            assert_eq!(over.get(), 10, "nobody outlives the scope");
        }
    });
}

#[test]
fn a_scope_whose_task_panics_does_not_wait_for_its_body() {
    ends(|| {
        let runtime = runtime(1);
        let task = runtime.spawn(task_scope(async |scope| {
            let panics = scope.spawn(async {
                yield_now().await;
                panic!("on purpose")
            });
            panics.detach();
            pending::<()>().await
        }));
        let panic = task.get().unwrap_err().into_panic();
        let text = *panic.downcast::<String>().unwrap();
        assert_eq!(text, "a task of the scope panicked: on purpose");
    });
}

#[test]
fn a_body_that_finds_a_sibling_cancelled_does_not_hide_the_panic_that_cancelled_it() {
    quiet();
    ends(|| {
        let runtime = runtime(1);
        for waits_in_a_poll in [false, true] {
            let task = runtime.spawn(task_scope(async move |scope| {
                let sibling = scope.spawn(pending::<()>());
                scope.spawn(async { panic!("on purpose") }).detach();
                let ended = match waits_in_a_poll {
                    true => sibling.get(),
                    false => sibling.await,
                };
                ended.unwrap();
            }));
            let panic = task.get().unwrap_err().into_panic();
            let text = panic.downcast_ref::<String>().unwrap();
            assert_eq!(text, "a task of the scope panicked: on purpose");
        }
    });
}

#[test]
fn a_task_that_is_cancelled_before_it_ran_is_in_its_scope_until_nothing_is_left_of_it() {
    /// Notes how many tasks are in the scope as it is dropped.
    struct Seen(TaskScope, Arc<Mutex<Vec<usize>>>);
    impl Drop for Seen {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0.live());
        }
    }
    ends(|| {
        let runtime = runtime(1);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let theirs = seen.clone();
        let scope = task_scope(async move |scope| {
            let (of_task, of_closure) = (
                Seen(scope.clone(), theirs.clone()),
                Seen(scope.clone(), theirs),
            );
            scope.spawn(async move {
                pending::<()>().await;
                drop(of_task)
            });
            scope.spawn_fn(move || drop(of_closure));
            scope.cancel();
        });
        runtime.spawn(scope).get().unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert!(seen == [1, 2] || seen == [2, 2], "{seen:?}");
    });
}

#[test]
fn a_scope_that_is_dropped_cancels_its_tasks() {
    ends(|| {
        let runtime = runtime(1);
        let (over, started) = (Count::default(), Arc::new(Notify::new()));
        let (theirs, told) = (over.clone(), started.clone());
        let task = runtime.spawn(task_scope(async move |scope| {
            for _ in 0..100 {
                let kept = theirs.on_drop();
                scope.spawn(async move {
                    let _kept = kept;
                    pending::<()>().await
                });
            }
            told.notify_one();
            pending::<()>().await
        }));
        started.blocking_wait();
        task.abort();
        assert!(task.get().is_err());
        while over.get() < 100 {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_panic_among_a_hundred_thousand_tasks_cancels_each_once() {
    quiet();
    // If each that ends cancelled all, this would take hours.
    ends(|| {
        let runtime = runtime(2);
        let task = runtime.spawn(task_scope(async |scope| {
            for _ in 0..100_000 {
                scope.spawn(pending::<()>());
            }
            scope.spawn(async { panic!("on purpose") });
        }));
        assert!(task.get().unwrap_err().is_panic());
    });
}

#[test]
fn what_is_spawned_into_a_scope_that_is_over_or_cancelled_never_runs() {
    ends(|| {
        let runtime = runtime(2);
        let over = block_on(task_scope(async |scope| scope));
        let ran = Count::default();
        let refused = |scope: &TaskScope| {
            let (task, closure) = (ran.on_drop(), ran.on_drop());
            let task = scope.spawn(async { std::mem::forget(task) });
            let closure = scope.spawn_fn(|| std::mem::forget(closure));
            let ended = [task.get(), closure.get()];
            assert!(ended.iter().all(
                |ended| matches!(ended, Err(error) if error.kind() == JoinErrorKind::Cancelled)
            ));
        };
        for _ in 0..100 {
            runtime.run(|| refused(&over));
            refused(&over);
        }
        runtime.block_on(task_scope(async |scope| {
            scope.cancel();
            refused(&scope);
        }));
        assert_eq!(ran.get(), 402, "the captures are dropped unseen");
    });
}

#[test]
fn a_scope_awaits_its_tasks_also_if_the_call_of_its_body_panics() {
    quiet();
    ends(|| {
        let runtime = runtime(1);
        let over = Count::default();
        let theirs = over.clone();
        let scope = task_scope(move |scope: TaskScope| {
            for _ in 0..100 {
                let kept = theirs.on_drop();
                scope.spawn(async move {
                    let _kept = kept;
                    pending::<()>().await
                });
            }
            if theirs.get() == 0 {
                panic!("on purpose");
            }
            async {}
        });
        assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(scope))).is_err());
        assert_eq!(over.get(), 100);
    });
}
