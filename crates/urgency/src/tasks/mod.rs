//! Tasks: what is scheduled, run, waited for and cancelled. What programs see of them is `task.rs`.
//!
//! A *task* is one allocation that holds a future (or a closure, which is run once to its end), its
//! state word and level, and the future's result when it has ended. It knows its scheduler only through the trait
//! `Schedule`; queues, workers and levels are the scheduler's business.
//!
//! | file | what |
//! | --- | --- |
//! | `state.rs` | the state word: facts, rules 1 to 7, races. Read it first |
//! | `cell.rs` | the allocation, and all that knows the future's type |
//! | `run.rs` | `TaskRef`: the life of a task as a scheduler sees it |
//! | `waker.rs` | wakers |
//! | `handle.rs`, `shared.rs` | [`JoinHandle`], [`Shared`]: waiting for the result |
//! | `boost.rs` | raising a task and what it waits for |
//! | `guarded.rs`, `waker_slot.rs` | cells to which a state word gives access |
//! | `once_box.rs` | `OnceBox`: what few tasks have |
//! | `live.rs` | `LiveTasks`: finding the suspended ones at a shutdown |
//! | `join_error.rs` | [`JoinError`]: why there is no result, with the panic as a value |
//! | `abort_handle.rs` | [`AbortHandle`]: the right to cancel, for others |
//! | `panic_policy.rs` | what a runtime does when a task panics |
//! | `hooks.rs` | what the handles ask about the calling code |
//!
//! Rejected: the `async-task` crate. It has no second entry after a boost (an entry is unique, so
//! that a raised task cannot overtake), drops a cancelled future when it likes, and gives the handle no place to note
//! which task waits for which.

mod abort_handle;
mod boost;
mod cell;
mod guarded;
mod handle;
mod hooks;
mod join_error;
mod live;
#[cfg(all(test, urgency_loom))]
mod loom;
mod once_box;
#[cfg(not(urgency_loom))]
mod panic_policy;
mod run;
#[cfg(not(urgency_loom))]
mod shared;
mod state;
#[cfg(all(test, not(urgency_loom)))]
mod stress;
#[cfg(all(test, not(urgency_loom)))]
mod tests;
mod waker;
mod waker_slot;

pub use abort_handle::AbortHandle;
pub use handle::JoinHandle;
pub use join_error::{JoinError, JoinErrorKind};
#[cfg(not(urgency_loom))]
pub use shared::Shared;

pub(crate) use boost::{Loan, Lock};
pub(crate) use cell::{Header, Stopped, caught, contained, discard_payload};
pub(crate) use guarded::Guarded;
pub(crate) use hooks::{Caller, Nobody, tell_taken};
pub(crate) use join_error::message_of;
pub(crate) use live::LiveTasks;
#[cfg(not(urgency_loom))]
pub(crate) use panic_policy::Lost;
#[cfg(not(urgency_loom))]
pub use panic_policy::PanicPolicy;
pub(crate) use run::{Ran, TaskRef};
pub(crate) use state::Runner;
pub(crate) use waker_slot::WakerSlot;

use crate::sys::primitives::Arc;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Names a task among all that live: two tasks that live at the same time have different names. When all handles of a
/// task are gone, a later task may get its name.
///
/// ```
/// use urgency::task;
///
/// let handle = urgency::spawn(async { task::id() });
/// let name = handle.id();
/// assert_eq!(handle.get()?, name);
/// # Ok::<(), task::JoinError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(usize);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// What tasks need of their scheduler. All of it is called from any thread, also from within
/// itself, and never under a lock of this floor.
pub(crate) trait Schedule: Send + Sync + 'static {
    /// What its tasks' handles ask about the code that calls them.
    const CALLER: &'static dyn Caller = &Nobody;

    /// The task became ready: stamp it, and put it at the tail of its level's queue. Called exactly
    /// once for each time it becomes ready, on whatever thread woke or cancelled it. After a
    /// shutdown: `task.shut_down()`, or else a queue and its scheduler keep each other alive.
    fn schedule(&self, task: TaskRef);

    /// A ready task was raised: a second entry, for the queue of its new level. The first entry stays where it is;
    /// whichever is taken second is stale. The stamp is still the first entry's.
    fn promote(&self, task: TaskRef) {
        self.schedule(task);
    }

    /// A running task was raised, which this runner claimed. Of interest if it is a closure whose stack waits
    /// somewhere. The runner may have ended the task's run, and run another task since.
    fn raised(&self, _task: &TaskRef, _runner: Runner) {}

    /// The future is gone: returned, panicked, cancelled. Called exactly once for each task, before any waiter can see
    /// its result.
    fn released(&self, task: &TaskRef);

    /// The task panicked, in a poll or in the drop of its future after the last one. The report is the
    /// panic hook's, the waiter gets the payload; this is for counting. Called at most once, and never
    /// for a task that is counted as `Ran::Cancelled` or by `shut_down`.
    fn panicked(&self, _task: &TaskRef) {}

    /// The task ended by a panic, and its handle is gone: no code will see the panic. Called once for each such task,
    /// by the worker that ended it, or by the thread that drops the handle later.
    fn unheard(&self, _task: &TaskRef) {}

    /// What the program calls this level; empty if it has no name.
    fn name_of(&self, _level: u8) -> &'static str {
        ""
    }

    /// Whether the calling thread itself keeps this scheduler alive for a while, as its workers do.
    /// Saves two locked instructions each time a task is scheduled.
    fn is_kept_alive_here(&self) -> bool {
        false
    }
}

/// Makes a task of a future. It counts as ready: the entry belongs into a queue.
pub(crate) fn new<F, S>(future: F, scheduler: Arc<S>, level: u8) -> (TaskRef, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    make(future, scheduler, level, false)
}

/// Makes a task of a closure. Its one run lasts until the closure returns.
pub(crate) fn new_fn<F, T, S>(closure: F, scheduler: Arc<S>, level: u8) -> (TaskRef, JoinHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
    S: Schedule,
{
    make(RunOnce(Some(closure)), scheduler, level, true)
}

/// Makes a task of a future whose first poll is the run of a closure. After that poll the future is ready, or the task
/// was cancelled during it.
pub(crate) fn new_run<F, S>(
    run: F,
    scheduler: Arc<S>,
    level: u8,
) -> (TaskRef, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    make(run, scheduler, level, true)
}

/// Makes a task of a future that may be tied to the calling thread, and so may its output.
///
/// # Safety
/// The scheduler runs and shuts down the task on the calling thread, and on no other thread drops an entry of it while
/// it is unfinished.
#[cfg(not(urgency_loom))]
pub(crate) unsafe fn new_local<F, S>(
    future: F,
    scheduler: Arc<S>,
    level: u8,
) -> (TaskRef, JoinHandle<F::Output>)
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule,
{
    make(future, scheduler, level, false)
}

/// If the future or its output are not `Send`, the caller promises what [`new_local`] asks for.
fn make<F, S>(
    future: F,
    scheduler: Arc<S>,
    level: u8,
    is_closure: bool,
) -> (TaskRef, JoinHandle<F::Output>)
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule,
{
    let header = cell::Cell::allocate(future, scheduler, level, is_closure);
    // SAFETY: a new cell has two references, one of them for the handle, whose type is the output's.
    unsafe { (TaskRef::from_raw(header), JoinHandle::from_raw(header)) }
}

/// A closure as a future that is ready at its first poll.
struct RunOnce<F>(Option<F>);

impl<F> Unpin for RunOnce<F> {}

impl<F: FnOnce() -> T, T> Future for RunOnce<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<T> {
        let closure = self.0.take().expect("polled once: it is ready at once");
        Poll::Ready(closure())
    }
}
