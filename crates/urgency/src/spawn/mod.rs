//! The door of tasks: all code that creates a task comes by [`spawn_with`] or [`spawn_fn_with`].
//!
//! This file decides what a task inherits from the code that spawns it; the scheduler's side of the door is `admit`.
//! `at.rs` has the public ways that lead here, `name.rs` says of which task code is.

mod at;
pub(crate) mod carried;
mod name;

pub use at::{At, at};
pub(crate) use name::{as_local, task_of_stack};
pub use name::{id, try_id};

use crate::{
    inherit::{
        Inherited, inherited,
        record::{self, RecordedThread},
    },
    runtime::{Handle, context::levels_on},
    sched::job::Job,
    tasks::{self, JoinHandle, TaskRef},
};
use std::{future::Future, sync::Arc};

/// Creates the future of an `async` block at the current level and starts it.
///
/// The handle can be awaited, waited for in a closure ([`JoinHandle::get`]), sent, shared, cancelled; dropping
/// it detaches the task. This is `fut-create` of the papers (Prompt I-Cilk, section 2), and like there it
/// is a scheduling point.
///
/// A detached task that nothing can wake any more is dropped: nobody has its handle, and no waker of it is left. So
/// `std::future::pending` keeps no value alive in a detached task.
///
/// # Examples
///
/// ```
/// let handle = urgency::spawn(async { 6 * 7 });
/// assert_eq!(handle.get()?, 42);
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Handle::current().spawn(future)
}

/// Creates the future of a closure at the current level and starts it, on a stack of its own.
///
/// The closure may call [`join`](crate::join()), block in [`JoinHandle::get`], take locks: while it waits its
/// worker does something else.
///
/// # Examples
///
/// ```
/// let handle = urgency::spawn_fn(|| {
///     let inner = urgency::spawn(async { 20 });
///     inner.get().map(|n| n + 22)
/// });
/// assert_eq!(handle.get()??, 42);
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn spawn_fn<F, T>(closure: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Handle::current().spawn_fn(closure)
}

/// As [`spawn_fn`], and the whole closure is a [blocking call](crate::blocking()): it holds no worker, so any number of
/// them may block, up to [`Builder::thread_limit`](crate::Builder::thread_limit). What only computes belongs into
/// [`spawn_fn`], which takes its turn with the other work of its level.
///
/// ```
/// use urgency::task;
///
/// let text = task::spawn_blocking(|| std::fs::read_to_string("Cargo.toml"));
/// assert!(text.get()?.is_ok());
/// # Ok::<(), task::JoinError>(())
/// ```
pub fn spawn_blocking<F, T>(closure: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Handle::current().spawn_blocking(closure)
}

/// At which level new work starts, and as which it may wait.
///
/// Work that names its level has one. Work that does not has the two of the code that spawns it. These differ if that
/// code was boosted. What a boosted task spawns is as urgent as the task, and may wait for what the task may wait for.
/// If it could not, whether a program waits or has an error would depend on when the task is boosted.
///
/// A task that is raised by a lock that it holds is as urgent as its waiters for as long as it holds the lock. What it
/// spawns meanwhile may go on for longer, and is not raised. If the task waits for that work, the wait raises it.
#[derive(Clone, Copy)]
pub(crate) struct NewAt {
    pub(crate) level: u8,
    waits_as: u8,
}

impl From<u8> for NewAt {
    fn from(level: u8) -> Self {
        let waits_as = level;
        NewAt { level, waits_as }
    }
}

impl NewAt {
    /// The levels of the calling code on `job`.
    pub(crate) fn here(job: &Job) -> Self {
        let (level, waits_as) = levels_on(job);
        NewAt { level, waits_as }
    }
}

/// Makes a task of a future on `job`, and lets `note` do something with it before any worker can run it: the door by
/// which each future comes in.
pub(crate) fn spawn_with<F>(
    job: &Arc<Job>,
    at: impl Into<NewAt>,
    future: F,
    note: impl FnOnce(&TaskRef),
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let at = at.into();
    let make = |inherited: Option<Arc<Inherited>>| match inherited {
        None => tasks::new(future, job.clone(), at.waits_as),
        Some(inherited) => tasks::new(inherited.carry(future), job.clone(), at.waits_as),
    };
    start(job, at, make, note)
}

/// As [`spawn_with`], of a closure.
pub(crate) fn spawn_fn_with<F, T>(
    job: &Arc<Job>,
    at: impl Into<NewAt>,
    closure: F,
    note: impl FnOnce(&TaskRef),
) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let at = at.into();
    let make = |inherited: Option<Arc<Inherited>>| match inherited {
        None => tasks::new_fn(closure, job.clone(), at.waits_as),
        Some(inherited) => {
            tasks::new_run(inherited.carry_closure(closure), job.clone(), at.waits_as)
        }
    };
    start(job, at, make, note)
}

#[inline]
fn start<T>(
    job: &Arc<Job>,
    at: NewAt,
    make: impl FnOnce(Option<Arc<Inherited>>) -> (TaskRef, JoinHandle<T>),
    note: impl FnOnce(&TaskRef),
) -> JoinHandle<T> {
    job.core.process.must_be_this();
    let inherited = inherited_on(job, at.level);
    let recorded = inherited.as_ref().and_then(|it| it.recorded.clone());
    let (task, handle) = make(inherited);
    if at.level != at.waits_as {
        task.start_at(at.level);
    }
    record::named(recorded, &task);
    note(&task);
    job.admit(task);
    handle
}

/// What a task that is spawned here, on `job`, inherits: what the calling code has, but with a recorded thread of
/// its own, if that runtime records.
#[inline]
fn inherited_on(job: &Job, level: u8) -> Option<Arc<Inherited>> {
    let here = inherited();
    if record::is_on() {
        inherited_recording(here, job, level)
    } else {
        here
    }
}

#[cold]
fn inherited_recording(
    here: Option<Arc<Inherited>>,
    job: &Job,
    level: u8,
) -> Option<Arc<Inherited>> {
    let spawner = here.as_ref().and_then(|here| here.recorded.clone());
    let recorded = job
        .recorder
        .get()
        .and_then(|recorder| RecordedThread::new(recorder, spawner.as_deref(), level));
    if spawner.is_none() && recorded.is_none() {
        return here;
    }
    let mut inherited = here.map_or_else(Inherited::default, |here| Inherited::clone(&here));
    inherited.recorded = recorded;
    Some(Arc::new(inherited))
}
