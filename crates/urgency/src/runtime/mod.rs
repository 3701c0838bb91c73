//! The runtime as programs see it: [`Runtime`], whose clones keep it alive, and what builds, names and reads it.
//!
//! The free functions (`spawn`, `join`, `block_on`, ...) need no handle: they use the runtime of the
//! calling thread, if it is one of a runtime's stacks or has entered one (`enter.rs`), else the global runtime,
//! which starts when it is first used.

mod build_error;
pub(crate) mod builder;
pub(crate) mod context;
#[doc(hidden)]
pub mod coop;
mod enter;
mod handle;
mod metrics;
mod partitioning;
mod pinning;
mod shape;
mod sharing;
pub(crate) mod stats;
mod threads;
mod workers;
pub(crate) mod yield_now;

/// Only shown here, where programs look for them.
pub use crate::life::{LocalOptions, LocalRuntime, LocalRuntimeEnterGuard};
pub use crate::sched::cores::PartitionReport;
pub use build_error::BuildError;
pub use builder::{Builder, MAX_WORKERS};
pub(crate) use context::{
    as_stack, current, driver, is_leveled, lock_waited, others_run, own_name, own_task, rank_on,
    task_named, waiting_level,
};
pub use enter::{EnterGuard, TryCurrentError};
pub use handle::Handle;
pub use metrics::RuntimeMetrics;
pub use partitioning::PartitionError;
pub use pinning::PinError;
pub use shape::RuntimeFlavor;

use self::stats::Stats;
use crate::{
    inherit::record::{Machine, Recording},
    reactor::driver::DriverShut,
    sched::{
        doors::shutdown::{Report, Shutdown},
        job::Job,
        poll_context,
    },
};
use std::{
    io,
    ops::Deref,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};
use urgency_policy::{
    cores::Demand,
    level::{Criterion, Schedule, ScheduleError},
};

/// Whether this is the error of what waits for a descriptor of a runtime that has ended.
///
/// ```
/// use std::task::{Context, Waker};
/// use urgency::{net::UnixStream, runtime::is_rt_shutdown_err};
///
/// let (one, _other) = UnixStream::pair()?;
/// let runtime = urgency::Runtime::new().map_err(std::io::Error::from)?;
/// runtime.block_on(async {
///     // It has waited there, so its events come there.
///     assert!(one.poll_read_ready(&mut Context::from_waker(Waker::noop())).is_pending());
/// });
/// drop(runtime);
/// let error = urgency::block_on(one.read(&mut [0; 8])).unwrap_err();
/// assert!(is_rt_shutdown_err(&error));
/// assert!(!is_rt_shutdown_err(&std::io::ErrorKind::BrokenPipe.into()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn is_rt_shutdown_err(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<DriverShut>())
}

/// A task runtime: workers, levels, an I/O driver.
///
/// Several can live side by side. Most programs need none of their own: the free functions of this crate
/// start a global one, with one level and a worker for each CPU that the process may use.
///
/// What a program does in a runtime (`run`, `spawn`, `block_on`, `at`, ...) are methods of its [`Handle`], to which a
/// `Runtime` dereferences.
///
/// # A handle that can be cloned
///
/// A `Runtime` is a handle; its clones are the same runtime, and each method can be called from any thread.
/// [`Runtime::current`] makes one wherever code runs. So a signal's task can [shut down](Runtime::shutdown) what a
/// handler of metrics looks at:
///
/// ```
/// use urgency::{Runtime, Shutdown};
///
/// let runtime = Runtime::builder().workers(2).build()?;
/// let threads = runtime.spawn(async { Runtime::current().stats().threads });
/// assert!(threads.get().unwrap() > 0);
/// let other = runtime.clone();
/// let report = std::thread::spawn(move || other.shutdown(Shutdown::Drain)).join().unwrap();
/// assert_eq!((report.spawned, runtime.stats().levels[0].queued), (1, 0));
/// # Ok::<(), urgency::BuildError>(())
/// ```
///
/// # The end
///
/// Dropping the last handle cancels what is alive and waits for nothing; [`Runtime::shutdown`] waits and
/// reports. A task that runs at that moment goes on to its next wait, and ends there: one that awaits something is
/// dropped; a closure that sleeps, or that the end of the runtime finds asleep, is unwound, and nothing is printed; a
/// closure that waits for a task of the runtime or for I/O gets an error. All of them count as cancelled, unless a
/// closure goes on to its end.
///
/// No other wait of a closure is ended: for a lock, a channel or anything else of [`sync`](crate::sync), for a task of
/// another runtime, or in the kernel. The closure goes on when its wait is over, for good if nothing ends the wait.
/// Until then the [`get`](crate::JoinHandle::get) of its handle waits, and it has the closure's own result.
///
/// A task that keeps a handle keeps its runtime: let it call [`Runtime::current`] when it needs one, or
/// end the runtime by a shutdown. The global runtime is never dropped, but can be shut down.
///
/// After a shutdown, by whichever handle:
///
/// - What was spawned and has not ended, and what is spawned later, reports
///   [`JoinErrorKind::ShutDown`](crate::JoinErrorKind) or [`Cancelled`](crate::JoinErrorKind) to all that wait. A
///   closure that goes on is the exception: see above.
/// - A plain thread that is in [`run`](Handle::run), `join` or `scope` goes on to the end of that call. A later such
///   call is a panic that says so.
/// - [`stats`](Runtime::stats) and [`recording`](Runtime::recording) answer as before. Another shutdown waits for
///   what the first waits for, and gives its report.
/// - Its threads end. Its descriptors are closed when nothing keeps the runtime: each [`Runtime`] and [`Handle`], each
///   [`JoinHandle`](crate::JoinHandle) and [`AbortHandle`](crate::task::AbortHandle) of a task, though that has ended,
///   and each socket or other descriptor that first waited there keeps them.
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
    handle: Handle,
}

static GLOBAL: OnceLock<Runtime> = OnceLock::new();

impl Clone for Runtime {
    fn clone(&self) -> Self {
        Runtime::of(self.handle.job.clone())
    }
}

impl Runtime {
    /// One more handle.
    fn of(job: Arc<Job>) -> Self {
        job.handles.fetch_add(1, Ordering::Relaxed);
        Runtime {
            handle: Handle { job },
        }
    }

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
    ///
    /// # Panics
    ///
    /// If the environment variable `RUST_MIN_STACK` asks for larger stacks than the system gives.
    ///
    /// ```
    /// let answer = urgency::Runtime::global().spawn(async { 6 * 7 });
    /// assert_eq!(answer.get().unwrap(), 42);
    /// ```
    pub fn global() -> &'static Runtime {
        GLOBAL.get_or_init(|| {
            let built = Runtime::builder().build();
            built.unwrap_or_else(|error| panic!("the global runtime cannot be built: {error}"))
        })
    }

    /// The global runtime, if anything has used it.
    pub(crate) fn global_if_any() -> Option<&'static Runtime> {
        GLOBAL.get()
    }

    /// The runtime of the calling code; on a plain thread the global one, which starts here if nothing used it yet.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(3).build()?;
    /// let workers = runtime.run(|| urgency::Runtime::current().stats().workers.len());
    /// assert_eq!(workers, 3);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn current() -> Runtime {
        Runtime::of(current())
    }

    /// A handle that does not keep the runtime alive.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(2).build()?;
    /// let handle = runtime.handle().clone();
    /// drop(runtime);
    /// assert!(handle.spawn(async {}).get().is_err());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// From the next round of each worker on, the levels have these shares; see [`Builder::fairness`]. A
    /// runtime with another schedule is fair from now on.
    ///
    /// # Errors
    ///
    /// If the criterion has not one share for each level of the runtime, and inside of a policy's method
    /// ([`ScheduleError::Deciding`]).
    pub fn set_fairness(&self, criterion: Criterion) -> Result<(), BuildError> {
        let schedule = Schedule::from(criterion.clone());
        self.check(&schedule)?;
        self.job.set_criterion(criterion);
        Ok(())
    }

    /// From now on the workers are shared in this way; see [`Builder::schedule`]. Workers whose level changes
    /// go there at their next scheduling point.
    ///
    /// # Errors
    ///
    /// If the schedule does not fit the levels and workers of the runtime, and inside of a policy's method
    /// ([`ScheduleError::Deciding`]).
    ///
    /// # Panics
    ///
    /// With the panic of a schedule of the program's own. The workers are prompt then.
    pub fn set_schedule(&self, schedule: impl Into<Schedule>) -> Result<(), BuildError> {
        let schedule = schedule.into();
        self.check(&schedule)?;
        self.job.set_schedule(schedule);
        Ok(())
    }

    fn check(&self, schedule: &Schedule) -> Result<(), BuildError> {
        if poll_context::decides() {
            return Err(ScheduleError::Deciding.into());
        }
        let (levels, workers) = (self.job.levels.len(), self.job.core.workers.len());
        Ok(schedule.check(levels, workers)?)
    }

    /// What the runtime asks for of the workers that it shares.
    pub fn demand(&self) -> Demand {
        self.job.demand()
    }

    /// From now on the runtime asks for this of the workers that it shares; see [`Builder::demand`]. It takes effect
    /// within some milliseconds.
    ///
    /// ```
    /// use urgency::{BuildError, Runtime, policy::cores::Demand};
    ///
    /// let runtime = Runtime::builder().workers(4).build()?;
    /// runtime.set_demand(Demand { max_cores: 2, ..runtime.demand() })?;
    /// let greedy = Demand { min_cores: 3, ..runtime.demand() };
    /// assert!(matches!(runtime.set_demand(greedy), Err(BuildError::Demand(_))));
    /// assert_eq!(runtime.demand().max_cores, 2);
    /// # Ok::<(), BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError::Demand`], as for [`Builder::demand`]. Then the old demand holds.
    pub fn set_demand(&self, demand: Demand) -> Result<(), BuildError> {
        self.job.set_demand(demand)?;
        self.job.core.demands_changed();
        Ok(())
    }

    /// What was recorded so far, if the runtime records; see [`Builder::record`].
    pub fn recording(&self) -> Option<Recording> {
        let recorder = self.handle.job.recorder.get();
        recorder.map(|recorder| recorder.recording(self.machine()))
    }

    fn machine(&self) -> Machine {
        let workers = &self.handle.job.core.workers;
        Machine {
            workers: workers.len(),
            prompt: !self.handle.job.seats.is_on(),
            scheduling: workers.iter().map(|w| w.counters.scheduling.get()).sum(),
            searching: workers.iter().map(|w| w.counters.searching.get()).sum(),
        }
    }

    /// What the runtime did so far: a snapshot of its accounting.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.handle.job)
    }

    /// Ends the runtime, for all its handles, and reports what became of every task; see [`Shutdown`]. Waits for as
    /// long as it takes. What the others find is said [above](Runtime#the-end).
    ///
    /// A task may shut down its own runtime. It cannot wait for itself, and is reported as left.
    ///
    /// # Panics
    ///
    /// In a waker that an event or a timer calls: the thread that calls it serves others. In a method of a policy as
    /// well, except for [`Shutdown::Cancel`].
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
    pub fn shutdown(&self, how: Shutdown) -> Report {
        self.handle.job.shut_down(how, None)
    }

    /// As [`Runtime::shutdown`], and gives up after `within` (and a tenth of a second for what is cancelled
    /// then): what still runs is reported as left.
    ///
    /// # Panics
    ///
    /// As [`Runtime::shutdown`].
    pub fn shutdown_within(&self, how: Shutdown, within: Duration) -> Report {
        self.handle.job.shut_down(how, Some(within))
    }

    /// Tokio's form of [`Runtime::shutdown_within`]: cancels all tasks, waits for `within` at most for what runs, and
    /// reports nothing.
    ///
    /// ```
    /// use std::{thread, time::Duration};
    ///
    /// let runtime = urgency::Runtime::new()?;
    /// runtime.spawn_blocking(|| thread::sleep(Duration::from_secs(60)));
    /// runtime.shutdown_timeout(Duration::from_millis(10));
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Runtime::shutdown`].
    pub fn shutdown_timeout(self, within: Duration) {
        self.shutdown_within(Shutdown::Cancel, within);
    }

    /// Tokio's form of dropping the last handle: cancels all tasks, also while there are other handles. It waits for
    /// what runs, a tenth of a second at most.
    ///
    /// ```
    /// let runtime = urgency::Runtime::new()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// let other = runtime.clone();
    /// runtime.shutdown_background();
    /// assert!(task.get().unwrap_err().is_cancelled());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Runtime::shutdown`].
    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }
}

impl Deref for Runtime {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let job = &self.handle.job;
        if job.handles.fetch_sub(1, Ordering::AcqRel) == 1 && job.core.process.is_this() {
            job.abandon_all();
        }
    }
}
