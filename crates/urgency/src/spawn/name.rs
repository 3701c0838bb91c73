//! Of which task the calling code is.
//!
//! Code on a stack is of the task that the stack runs, in a blocking call as well. A task of a
//! [`LocalSet`](crate::life::LocalSet) is on no stack of its own: code of another task polls it, or code of none. So
//! the thread notes it, with the task around it. A stack that waits may run ready work on top of the poll; then the
//! task around it is another one, and the note does not count.

use crate::{
    sched::stack::Stack,
    tasks::{Id, TaskRef},
};
use std::cell::Cell;

thread_local! {
    /// The innermost local task that is polled or dropped here, and the task around it.
    static LOCAL: Cell<Option<(Id, Option<Id>)>> = const { Cell::new(None) };
}

/// The name of the task whose code calls this: what [`JoinHandle::id`](crate::JoinHandle::id) of its handle says.
///
/// # Panics
///
/// Outside of a task; [`try_id`] gives `None` there.
#[track_caller]
pub fn id() -> Id {
    match try_id() {
        Some(id) => id,
        None => {
            panic!("`task::id` was called outside of a task; `task::try_id` gives `None` there")
        }
    }
}

/// As [`id`]; `None` outside of a task.
///
/// ```
/// assert!(urgency::task::try_id().is_none());
/// ```
pub fn try_id() -> Option<Id> {
    let around = task_of_stack();
    match LOCAL.get() {
        Some((local, noted)) if noted == around => Some(local),
        _ => around,
    }
}

/// The task that the calling thread's stack runs; of a local task, the one around it.
pub(crate) fn task_of_stack() -> Option<Id> {
    Stack::with_own(|me| me.and_then(|me| me.with_task(|task| task.map(TaskRef::id))))
}

/// Runs `f` as code of this local task.
pub(crate) fn as_local<R>(task: Id, f: impl FnOnce() -> R) -> R {
    struct Before(Option<(Id, Option<Id>)>);
    impl Drop for Before {
        fn drop(&mut self) {
            LOCAL.set(self.0);
        }
    }
    let _before = Before(LOCAL.replace(Some((task, task_of_stack()))));
    f()
}
