//! `At`: a runtime and a level, as one value; and the two verbs of a [`Handle`].
//!
//! Each public way to make a task asks at most four questions, and each answer has one place: *what* is the verb,
//! *where* is the [`Handle`], *at which level* is the [`At`], *owned by what* is the value with the verb (a scope, a
//! set, an admission). A form without a level takes it from the caller. All of them end in `spawn_with` and
//! `spawn_fn_with` of the module above.

use super::{NewAt, spawn_fn_with, spawn_with};
use crate::{
    rank::LevelId,
    runtime::{Handle, context::as_external_of, rank_on, yield_now::scheduling_point},
    sched::switch::block::blocking,
    tasks::{JoinHandle, TaskRef},
};
use std::future::Future;

/// A level of a runtime: where work can be started.
///
/// [`at`] names a level of the calling code's runtime, and [`Handle::at`] one of another. The value can be kept, cloned
/// and sent. It does not keep its runtime alive: what is spawned after the runtime's end reports an error.
///
/// None of the spawning methods needs a worker, so a plain thread never waits in one. [`run`](At::run) does.
///
/// ```
/// use urgency::{Runtime, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let runtime = Runtime::builder().levels::<App>().build()?;
/// let batch = runtime.at(Batch);
/// let sums: Vec<_> = (1..=3)
///     .map(|n| batch.spawn_fn(move || (0..=n).sum::<u32>()))
///     .collect();
/// let sums: Result<Vec<_>, _> = sums.into_iter().map(|sum| sum.get()).collect();
/// assert_eq!(sums?, [1, 3, 6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With levels as types the same is [`Level::on`](crate::level::Level::on).
#[derive(Clone)]
pub struct At {
    pub(crate) handle: Handle,
    pub(crate) new_at: NewAt,
}

/// A level of the calling code's runtime; on a plain thread of the global one.
///
/// ```
/// use urgency::{Runtime, at, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let runtime = Runtime::builder().levels::<App>().build()?;
/// let level = runtime.run(|| at(Batch).spawn(async { urgency::current_level() }));
/// assert_eq!(level.get().unwrap(), Batch.id());
/// # Ok::<(), urgency::BuildError>(())
/// ```
///
/// # Panics
///
/// If that runtime has no such level.
#[track_caller]
pub fn at(level: impl Into<LevelId>) -> At {
    At::new(Handle::current(), level.into())
}

impl At {
    #[track_caller]
    pub(crate) fn new(handle: Handle, level: LevelId) -> At {
        let new_at = rank_on(handle.job(), level).into();
        At { handle, new_at }
    }

    /// The levels of the calling code's work in its own runtime.
    pub(crate) fn here() -> At {
        let handle = Handle::current();
        let new_at = NewAt::here(handle.job());
        At { handle, new_at }
    }

    /// The level.
    pub fn level(&self) -> LevelId {
        self.handle.job().levels.named(self.new_at.level)
    }

    /// As [`spawn`](crate::spawn), here.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_noted(future, |_| ())
    }

    /// As [`spawn_fn`](crate::spawn_fn), here.
    pub fn spawn_fn<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_fn_noted(closure, |_| ())
    }

    /// As [`spawn_blocking`](crate::task::spawn_blocking), here.
    pub fn spawn_blocking<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_fn(move || blocking(closure))
    }

    /// As [`spawn`](Self::spawn), with something to do with the task before any worker can run it.
    pub(crate) fn spawn_noted<F>(
        &self,
        future: F,
        note: impl FnOnce(&TaskRef),
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        started(spawn_with(&self.handle.job, self.new_at, future, note))
    }

    /// As [`spawn_noted`](Self::spawn_noted), of a closure.
    pub(crate) fn spawn_fn_noted<F, T>(
        &self,
        closure: F,
        note: impl FnOnce(&TaskRef),
    ) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        started(spawn_fn_with(&self.handle.job, self.new_at, closure, note))
    }

    /// As [`Handle::run`], here: runs `closure` on the calling thread, now.
    ///
    /// ```
    /// use urgency::{Runtime, current_level, levels};
    ///
    /// levels! { App: Interactive > Batch }
    ///
    /// let runtime = Runtime::builder().levels::<App>().build()?;
    /// assert_eq!(runtime.at(Batch).run(current_level), Batch.id());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `closure` panics, and if the runtime was shut down.
    pub fn run<R>(&self, closure: impl FnOnce() -> R) -> R {
        as_external_of(&self.handle.job, Some(self.new_at.level), |_| closure())
    }
}

debug_struct!(At, |it| level: it.level());

/// The verbs that start work. A [`Runtime`](crate::Runtime) has them as well.
impl Handle {
    /// A level of this runtime.
    ///
    /// # Panics
    ///
    /// If the runtime has no such level.
    #[track_caller]
    pub fn at(&self, level: impl Into<LevelId>) -> At {
        At::new(self.clone(), level.into())
    }

    /// As [`spawn`](crate::spawn), on this runtime; from outside at its least urgent level.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let here = NewAt::here(&self.job);
        started(spawn_with(&self.job, here, future, |_| ()))
    }

    /// As [`spawn_fn`](crate::spawn_fn), on this runtime; from outside at its least urgent level.
    pub fn spawn_fn<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let here = NewAt::here(&self.job);
        started(spawn_fn_with(&self.job, here, closure, |_| ()))
    }

    /// As [`spawn_blocking`](crate::task::spawn_blocking), on this runtime.
    pub fn spawn_blocking<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_fn(move || blocking(closure))
    }
}

/// To start a task is a scheduling point.
fn started<T>(handle: JoinHandle<T>) -> JoinHandle<T> {
    scheduling_point();
    handle
}
