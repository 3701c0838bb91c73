//! What the primitives need of the floors above, in one place.
//!
//! - `level()`: the rank of the calling code, by which it queues. A plain thread queues as the most urgent level:
//!   nothing says how urgent it is, and it must not starve behind waiters that have a level.
//! - `check()`: a scheduling point. Each operation begins with one, so that a task whose channel never runs
//!   empty is prompt; and so that no lowered thread takes one of the short locks in here.
//! - `begin(..)`: what each poll of an operation that does not wait yet begins with: a scheduling point, and the
//!   budget. After [`BUDGET`](crate::sched::poll_context::BUDGET) operations that never waited the task suspends once,
//!   for the sake of other tasks of its own level.
//! - `own_name()`: the name of the task whose code is running, by which `task_named(..)` finds the task while it lives.
//!   Code of no task on a stack has the name of its stack's proxy (`sched/inherit/proxy.rs`) where there are several
//!   levels, and else 0. `own_task()`: the task, or the proxy, if its runtime has several levels, which `is_leveled()`
//!   says.
//! - `others_run()`: whether other code may run at the same time, and hold what the calling code wants.
//! - `ready_stamp()`: the time, in a poll when that began; for statistics. `lock_waited(since)`: the calling code
//!   leaves the queue of a lock, to which it came at that time.
//! - `lowered(task)`: the task gave back a level that it inherited. If it is the calling task, its stack gives way.
//!
//! In the models (`loom.rs`) a thread is code of a task while `as_task` runs; nothing else is needed there.

#[cfg(not(urgency_loom))]
pub(super) use crate::{
    runtime::{
        coop::poll_take as begin, is_leveled, lock_waited, others_run, own_name, own_task,
        task_named, waiting_level as level, yield_now::scheduling_point as check,
    },
    sched::{
        poll_context::{granting, ready_stamp},
        serve::run::lowered,
    },
};

#[cfg(urgency_loom)]
mod stand_in {
    use crate::tasks::TaskRef;
    use std::{
        cell::Cell,
        mem::ManuallyDrop,
        ptr::NonNull,
        task::{Context, Poll},
    };

    loom::thread_local! {
        static OWN: Cell<u64> = Cell::new(0);
    }

    #[cfg(test)]
    /// Runs `f` as code of `task`, whose runtime has several levels.
    pub(crate) fn as_task<R>(task: &TaskRef, f: impl FnOnce() -> R) -> R {
        let name = task.as_raw().as_ptr().expose_provenance() as u64;
        OWN.with(|own| own.set(name));
        let result = f();
        OWN.with(|own| own.set(0));
        result
    }

    pub(crate) fn level() -> u8 {
        own_task().map_or(0, |task| task.level())
    }

    pub(crate) fn check() {}

    pub(crate) fn begin(_cx: &Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    pub(crate) fn others_run() -> bool {
        false
    }

    pub(crate) fn is_leveled() -> bool {
        own_name() != 0
    }

    /// The task's address, which has fewer bits than a name.
    pub(crate) fn own_name() -> u64 {
        OWN.with(Cell::get)
    }

    pub(crate) fn own_task() -> Option<TaskRef> {
        task_named(own_name())
    }

    pub(crate) fn task_named(name: u64) -> Option<TaskRef> {
        let header = NonNull::new(std::ptr::with_exposed_provenance_mut(name as usize))?;
        // SAFETY: a model keeps its tasks until its threads have ended; this borrow is not dropped.
        let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(header) });
        Some(TaskRef::clone(&task))
    }

    pub(crate) fn granting(f: impl FnOnce()) {
        f();
    }

    pub(crate) fn ready_stamp() -> u64 {
        0
    }

    pub(crate) fn lock_waited(_since: u64) {}

    pub(crate) fn lowered(_task: &TaskRef) {}
}
#[cfg(urgency_loom)]
pub(super) use stand_in::{
    begin, check, granting, is_leveled, level, lock_waited, lowered, others_run, own_name,
    own_task, ready_stamp, task_named,
};

#[cfg(all(test, urgency_loom))]
pub(super) use stand_in::as_task;

use std::future::poll_fn;

/// [`begin`], for an operation that is an async function.
pub(super) fn begun() -> impl Future<Output = ()> {
    poll_fn(|cx| begin(cx))
}
