//! The free functions that create tasks, and the bare scheduling point.

use crate::{
    LevelId,
    runtime::{current, level_on, rank_on, spawn_fn_on, spawn_on},
    sched::{run, stack::Stack},
    task::{Id, JoinHandle, TaskRef},
};
use std::future::Future;

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
    spawn_fn(move || crate::blocking(closure))
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

/// Declares a scheduling point in code that neither forks, spawns nor waits: a long loop that calls
/// this now and then is prompt, and needs no relief. It costs a load and a branch.
///
/// # Examples
///
/// ```
/// let mut sum = 0u64;
/// for i in 0..1_000_000 {
///     sum = sum.wrapping_add(i * i);
///     urgency::scheduling_point();
/// }
/// assert_eq!(sum, 333_332_833_333_500_000);
/// ```
#[inline]
pub fn scheduling_point() {
    Stack::with_current(|me| {
        if let Some(me) = me {
            run::check(me);
        }
    });
}

/// The level of the calling code. Outside any runtime: the least urgent level of the global one, which
/// is where [`spawn`] would put new work.
pub fn current_level() -> LevelId {
    crate::runtime::current_level()
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
