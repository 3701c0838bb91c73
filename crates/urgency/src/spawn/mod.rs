//! The door of tasks: all code that creates a task comes by [`spawn_on`] or [`spawn_fn_on`].
//!
//! This file decides what a task inherits from the code that spawns it; the scheduler's side of the door is `admit`.

pub(crate) mod carried;
mod handle;

use crate::{
    inherit::{
        Inherited, inherited,
        record::{self, RecordedThread},
    },
    rank::LevelId,
    runtime::{Runtime, current, level_on, rank_on, yield_now::scheduling_point},
    sched::{block::blocking, job::Job, run},
    tasks::{self, Id, JoinHandle, TaskRef},
};
use std::{future::Future, sync::Arc};

/// Creates the future of an `async` block at the current level and starts it.
///
/// The handle can be awaited, waited for in a closure ([`JoinHandle::get`]), sent, shared, cancelled; dropping
/// it detaches the task. This is `fut-create` of the papers (Prompt I-Cilk, section 2), and like there it
/// is a scheduling point.
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
    let shared = current();
    let handle = spawn_on(&shared, level_on(&shared), future);
    scheduling_point();
    handle
}

/// As [`spawn`], at a level.
///
/// # Panics
///
/// If the current runtime has no such level.
#[track_caller]
pub fn spawn_at<F>(level: impl Into<LevelId>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let shared = current();
    let handle = spawn_on(&shared, rank_on(&shared, level.into()), future);
    scheduling_point();
    handle
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
    let shared = current();
    let handle = spawn_fn_on(&shared, level_on(&shared), closure);
    scheduling_point();
    handle
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
    spawn_fn(move || blocking(closure))
}

/// As [`spawn_fn`], at a level.
///
/// # Panics
///
/// If the current runtime has no such level.
#[track_caller]
pub fn spawn_fn_at<F, T>(level: impl Into<LevelId>, closure: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let shared = current();
    let handle = spawn_fn_on(&shared, rank_on(&shared, level.into()), closure);
    scheduling_point();
    handle
}

/// The name of the task whose code calls this: what [`JoinHandle::id`] of its handle says.
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
    run::with_current_task(|task| task.map(TaskRef::id))
}

impl Runtime {
    /// As [`spawn`](crate::spawn), on this runtime; from outside at its least urgent level.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = spawn_on(self.shared(), level_on(self.shared()), future);
        scheduling_point();
        handle
    }

    /// As [`spawn_at`], on this runtime.
    #[track_caller]
    pub fn spawn_at<F>(&self, level: impl Into<LevelId>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = spawn_on(self.shared(), rank_on(self.shared(), level.into()), future);
        scheduling_point();
        handle
    }

    /// As [`spawn_fn`], on this runtime; from outside at its least urgent level.
    pub fn spawn_fn<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let handle = spawn_fn_on(self.shared(), level_on(self.shared()), closure);
        scheduling_point();
        handle
    }

    /// As [`spawn_fn_at`], on this runtime.
    #[track_caller]
    pub fn spawn_fn_at<F, T>(&self, level: impl Into<LevelId>, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let handle = spawn_fn_on(self.shared(), rank_on(self.shared(), level.into()), closure);
        scheduling_point();
        handle
    }
}

/// Makes a task of a future on `shared`: the door by which each future comes in.
pub(crate) fn spawn_on<F>(shared: &Arc<Job>, level: u8, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn_noted_on(shared, level, future, |_| ())
}

/// As [`spawn_on`], with something to do with the task before any worker can run it.
pub(crate) fn spawn_noted_on<F>(
    shared: &Arc<Job>,
    level: u8,
    future: F,
    note: impl FnOnce(&TaskRef),
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    shared.core.process.must_be_this();
    let (task, handle) = match inherited_on(shared, level) {
        None => tasks::new(future, shared.clone(), level),
        Some(inherited) => {
            let recorded = inherited.recorded.clone();
            let made = tasks::new(inherited.carry(future), shared.clone(), level);
            record::named(recorded, &made.0);
            made
        }
    };
    note(&task);
    shared.admit(task);
    handle
}

/// As [`spawn_on`], of a closure.
pub(crate) fn spawn_fn_on<F, T>(shared: &Arc<Job>, level: u8, closure: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_fn_noted_on(shared, level, closure, |_| ())
}

/// As [`spawn_fn_on`], with something to do with the task before any worker can run it.
pub(crate) fn spawn_fn_noted_on<F, T>(
    shared: &Arc<Job>,
    level: u8,
    closure: F,
    note: impl FnOnce(&TaskRef),
) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    shared.core.process.must_be_this();
    let (task, handle) = match inherited_on(shared, level) {
        None => tasks::new_fn(closure, shared.clone(), level),
        Some(inherited) => {
            let recorded = inherited.recorded.clone();
            let made = tasks::new_run(inherited.carry_closure(closure), shared.clone(), level);
            record::named(recorded, &made.0);
            made
        }
    };
    note(&task);
    shared.admit(task);
    handle
}

/// What a task that is spawned here, on `shared`, inherits: what the calling code has, but with a recorded thread of
/// its own, if that runtime records.
#[inline]
fn inherited_on(shared: &Job, level: u8) -> Option<Arc<Inherited>> {
    let here = inherited();
    if record::is_on() {
        inherited_recording(here, shared, level)
    } else {
        here
    }
}

#[cold]
fn inherited_recording(
    here: Option<Arc<Inherited>>,
    shared: &Job,
    level: u8,
) -> Option<Arc<Inherited>> {
    let spawner = here.as_ref().and_then(|here| here.recorded.clone());
    let recorded = shared
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
