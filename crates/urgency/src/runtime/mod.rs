//! The runtime as programs see it, and the way from any thread to *its* runtime.
//!
//! The free functions (`spawn`, `join`, `block_on`, ...) need no handle: they use the runtime of the
//! calling thread if it is one of a runtime's stacks, else the global runtime, which starts when it is
//! first used.

mod builder;
mod context;
mod shape;

pub use builder::{BuildError, Builder, MAX_WORKERS};
pub(crate) use context::{
    as_stack, boost, check_order, current, current_level, driver, is_leveled, level_on, may_wait,
    others_run, own_name, own_task, rank_on, spawn_fn_noted_on, spawn_fn_on, spawn_noted_on,
    spawn_on, task_named, took, waited_for, waiting_for, waiting_level,
};

use crate::{
    LevelId,
    account::Stats,
    record::Recording,
    sched::{
        shared::Shared,
        shutdown::{Report, Shutdown},
    },
    scheduling_point,
    task::Handle,
};
use std::{
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};
use urgency_policy::level::{Criterion, Schedule};

/// A task runtime: workers, levels, an I/O driver.
///
/// Several can live side by side. Most programs need none of their own: the free functions of this crate
/// start a global one, with one level and a worker for each CPU that the process may use.
///
/// Dropping a runtime cancels what is alive and waits for nothing; [`Runtime::shutdown`] waits and
/// reports.
///
/// # Examples
///
/// ```
/// let runtime = urgency::Runtime::builder().workers(2).build()?;
/// let answer = runtime.block_on(async { urgency::spawn(async { 6 * 7 }).await });
/// assert_eq!(answer.unwrap(), 42);
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    shared: Arc<Shared>,
}

static GLOBAL: OnceLock<Runtime> = OnceLock::new();

impl Runtime {
    /// A runtime with the defaults: one level, and a worker for each CPU that the process may use.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new() -> Result<Runtime, BuildError> {
        Runtime::builder().build()
    }

    /// Starts to build a runtime.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The global runtime, which starts here if nothing used it yet.
    pub fn global() -> &'static Runtime {
        GLOBAL.get_or_init(|| {
            Runtime::builder()
                .build()
                .expect("the defaults are within their ranges")
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// As [`spawn`](crate::spawn), on this runtime; from outside at its least urgent level.
    pub fn spawn<F>(&self, future: F) -> Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = spawn_on(&self.shared, level_on(&self.shared), future);
        scheduling_point();
        handle
    }

    /// As [`spawn_at`](crate::spawn_at), on this runtime.
    #[track_caller]
    pub fn spawn_at<F>(&self, level: impl Into<LevelId>, future: F) -> Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = spawn_on(&self.shared, rank_on(&self.shared, level.into()), future);
        scheduling_point();
        handle
    }

    /// As [`spawn_fn`](crate::spawn_fn), on this runtime; from outside at its least urgent level.
    pub fn spawn_fn<F, T>(&self, closure: F) -> Handle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let handle = spawn_fn_on(&self.shared, level_on(&self.shared), closure);
        scheduling_point();
        handle
    }

    /// As [`spawn_fn_at`](crate::spawn_fn_at), on this runtime.
    #[track_caller]
    pub fn spawn_fn_at<F, T>(&self, level: impl Into<LevelId>, closure: F) -> Handle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let handle = spawn_fn_on(&self.shared, rank_on(&self.shared, level.into()), closure);
        scheduling_point();
        handle
    }

    /// Runs `closure` on the calling thread as a stack of this runtime, at its least urgent level:
    /// the thread gets one of the workers first, and what the closure calls (`join`, `spawn`,
    /// `block_on`, ...) belongs to this runtime.
    ///
    /// Inside another runtime the calling stack keeps its worker there meanwhile. Inside this one the
    /// closure is simply called.
    pub fn run<R>(&self, closure: impl FnOnce() -> R) -> R {
        context::as_guest_of(&self.shared, None, |_| closure())
    }

    /// As [`Runtime::run`], at a level.
    ///
    /// # Panics
    ///
    /// If the runtime has no such level, and if `closure` panics.
    #[track_caller]
    pub fn run_at<R>(&self, level: impl Into<LevelId>, closure: impl FnOnce() -> R) -> R {
        let level = rank_on(&self.shared, level.into());
        context::as_guest_of(&self.shared, Some(level), |_| closure())
    }

    /// Polls `future` on the calling thread, as a stack of this runtime, until it is ready.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.run(|| crate::block_on(future))
    }

    /// From the next round of each worker on, the levels have these shares; see [`Builder::fairness`]. A
    /// runtime with another schedule is fair from now on.
    ///
    /// # Errors
    ///
    /// If the criterion has not one share for each level of the runtime.
    pub fn set_fairness(&self, criterion: Criterion) -> Result<(), BuildError> {
        let schedule = Schedule::from(criterion.clone());
        schedule.check(self.shared.levels.len(), self.shared.workers.len())?;
        self.shared.set_criterion(criterion);
        Ok(())
    }

    /// From now on the workers are shared in this way; see [`Builder::schedule`]. Workers whose level changes
    /// go there at their next scheduling point.
    ///
    /// # Errors
    ///
    /// If the schedule does not fit the levels and workers of the runtime.
    pub fn set_schedule(&self, schedule: impl Into<Schedule>) -> Result<(), BuildError> {
        let schedule = schedule.into();
        schedule.check(self.shared.levels.len(), self.shared.workers.len())?;
        self.shared.set_schedule(schedule);
        Ok(())
    }

    /// What was recorded so far, if the runtime records; see [`Builder::record`].
    pub fn recording(&self) -> Option<Recording> {
        let recorder = self.shared.recorder.get();
        recorder.map(|recorder| recorder.recording(&self.shared))
    }

    /// What the runtime did so far: a snapshot of its accounting.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.shared)
    }

    /// Ends the runtime and reports what became of every task; see [`Shutdown`]. Waits for as long as it
    /// takes.
    ///
    /// # Examples
    ///
    /// ```
    /// use urgency::{Runtime, Shutdown};
    ///
    /// let runtime = Runtime::builder().workers(2).build()?;
    /// for _ in 0..10 {
    ///     runtime.spawn(async {}).detach();
    /// }
    /// let report = runtime.shutdown(Shutdown::Drain);
    /// assert_eq!((report.spawned, report.finished, report.left), (10, 10, 0));
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn shutdown(self, how: Shutdown) -> Report {
        self.shared.shut_down(how, None)
    }

    /// As [`Runtime::shutdown`], and gives up after `within` (and a tenth of a second for what is cancelled
    /// then): what still runs is reported as left.
    pub fn shutdown_within(self, how: Shutdown, within: Duration) -> Report {
        self.shared.shut_down(how, Some(within))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shared.abandon_all();
    }
}
