//! `task_local!`: which code has the value of a scope, and which has not.

mod common;

use common::{ends, poll, runtime};
use std::{
    cell::Cell,
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::mpsc,
    task::Poll,
};
use urgency::{
    block_on,
    task::{AccessError, LocalKey, LocalSet, futures::TaskLocalFuture, spawn_local},
    yield_now,
};

urgency::task_local! {
    static NUMBER: u32;
    pub(crate) static STEPS: Cell<u32>
}

/// Tells the value of `NUMBER` when it is dropped.
struct Tell(mpsc::Sender<Result<u32, AccessError>>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.send(NUMBER.try_get()).unwrap();
    }
}

fn none() -> bool {
    NUMBER.try_get().is_err()
}

#[test]
fn a_value_is_there_after_each_wait_and_nothing_that_is_spawned_has_it() {
    ends(|| {
        let runtime = runtime(2);
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                runtime.spawn(NUMBER.scope(number, async move {
                    for _ in 0..20 {
                        yield_now().await;
                        assert_eq!(NUMBER.get(), number);
                    }
                    let task = urgency::spawn(async { none() }).await;
                    let closure = urgency::task::spawn_blocking(none).await;
                    task.unwrap() && closure.unwrap()
                }))
            })
            .collect();
        assert!(tasks.into_iter().all(|task| task.get().unwrap()));
        assert!(none());
    });
}

#[test]
fn an_inner_scope_hides_the_outer_one_until_its_end_also_if_it_panics() {
    NUMBER.sync_scope(1, || {
        assert_eq!(NUMBER.sync_scope(2, || NUMBER.get()), 2);
        let panicked = catch_unwind(|| NUMBER.sync_scope(3, || panic!("in a scope")));
        assert!(panicked.is_err());
        assert_eq!(NUMBER.get(), 1);
        assert_eq!(block_on(async { NUMBER.get() }), 1);
    });
    assert!(none());
    let with = catch_unwind(|| NUMBER.with(|number| *number)).unwrap_err();
    let text = with.downcast::<String>().unwrap();
    assert!(text.contains("`scope`"), "{text}");
}

#[test]
fn a_task_that_runs_on_top_of_a_wait_has_not_the_value_of_the_scope_around_the_wait() {
    ends(|| {
        let runtime = runtime(1);
        let inner = runtime.clone();
        // The only worker is this closure's: `get` runs the closure that it waits for on its own stack.
        let outer = runtime.spawn_fn(move || {
            NUMBER.sync_scope(1, || {
                NUMBER.with(|_| {
                    let child = inner.spawn_fn(|| (none(), NUMBER.sync_scope(2, || NUMBER.get())));
                    assert_eq!(child.get().unwrap(), (true, 2));
                });
                NUMBER.get()
            })
        });
        assert_eq!(outer.get().unwrap(), 1);
    });
}

#[test]
fn a_task_on_the_thread_of_block_on_has_not_the_value_of_the_code_that_waits_there() {
    ends(|| {
        let runtime = urgency::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let seen = NUMBER.sync_scope(1, || {
            runtime.block_on(async {
                let child = urgency::spawn(async { none() });
                (child.await.unwrap(), NUMBER.get())
            })
        });
        assert_eq!(seen, (true, 1));
    });
}

#[test]
fn local_tasks_have_the_value_of_the_scope_that_polls_them() {
    ends(|| {
        let set = LocalSet::new();
        let run = set.run_until(async { spawn_local(async { NUMBER.get() }).await.unwrap() });
        assert_eq!(block_on(NUMBER.scope(1, run)), 1);
    });
}

#[test]
fn a_future_has_its_value_when_it_is_dropped_before_its_end_and_at_its_end() {
    ends(|| {
        let (tell, told) = mpsc::channel();
        let runtime = runtime(1);
        let (left, ended, never) = (Tell(tell.clone()), Tell(tell.clone()), Tell(tell));

        let task = runtime.spawn(NUMBER.scope(1, async move {
            let _left = left;
            pending::<()>().await
        }));
        task.abort();
        assert!(task.get().unwrap_err().is_cancelled());
        assert_eq!(told.recv().unwrap(), Ok(1));

        let task = runtime.spawn(NUMBER.scope(2, async move { drop(ended) }));
        task.get().unwrap();
        assert_eq!(told.recv().unwrap(), Ok(2));

        drop(NUMBER.scope(3, async move { drop(never) }));
        assert_eq!(told.recv().unwrap(), Ok(3));
    });
}

#[test]
fn a_value_that_was_taken_is_gone_and_hides_the_outer_one() {
    let mut work = pin!(NUMBER.scope(1, async { none() }));
    assert_eq!(work.as_mut().take_value(), Some(1));
    assert_eq!(work.as_mut().take_value(), None);
    let inside = NUMBER.sync_scope(2, || poll(work));
    assert_eq!(inside, Poll::Ready(true));
}

#[test]
fn a_value_need_not_be_sync_and_its_key_can_be_passed_on() {
    fn count(key: &'static LocalKey<Cell<u32>>) {
        key.with(|steps| steps.set(steps.get() + 1));
    }
    let work: TaskLocalFuture<_, _> = STEPS.scope(Cell::new(0), async {
        count(&STEPS);
        yield_now().await;
        count(&STEPS);
        STEPS.with(Cell::get)
    });
    assert_eq!(runtime(1).spawn(work).get().unwrap(), 2);
    let outside = catch_unwind(AssertUnwindSafe(|| count(&STEPS)));
    assert!(outside.is_err());
}
