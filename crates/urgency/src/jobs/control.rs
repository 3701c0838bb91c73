//! `JobControl`: what can be asked and done about a job, without the right to its result.
//!
//! The handle is used up by the wait for the result. So the code that cancels, watches or changes a job meanwhile has a
//! control. A control keeps the job's record only: neither its result, its container nor its set.

use super::{
    JobId, JobState, JobTimes, Progress, SubmitError,
    record::{Record, current},
};
use crate::Stats;
use std::{sync::Arc, time::Duration};
use urgency_policy::cores::Demand;

/// A job, to be cancelled, watched and changed by any code, while other code waits for its result. Clones are of the
/// same job; none keeps its result, its container or its core set.
///
/// ```
/// use urgency::{jobs::CoreSet, policy::cores::Demand};
///
/// let cores = CoreSet::builder().cores(2).build()?;
/// let job = cores.spawn(std::future::pending::<u32>())?;
/// let control = job.control();
/// control.set_demand(Demand { max_cores: 1, ..control.demand() })?;
/// let waiter = urgency::spawn(async move { job.await });
/// control.cancel();
/// assert!(waiter.get()?.is_err());
/// assert!(control.is_over());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct JobControl {
    pub(super) record: Arc<Record>,
}

debug_struct!(JobControl, |it| id: it.id(), state: it.state());

impl JobControl {
    pub(super) fn of(record: Arc<Record>) -> Self {
        JobControl { record }
    }

    /// The control of the job whose code calls this: its root, its tasks and its forks, also the ones in another
    /// runtime. `None` outside of a job.
    ///
    /// ```
    /// use urgency::jobs::{CoreSet, JobControl};
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let job = cores.job().name("index").spawn_fn(|| {
    ///     let task = urgency::spawn(async { JobControl::current().map(|job| job.id()) });
    ///     let job = JobControl::current().expect("this is code of a job");
    ///     (job.name().map(String::from), Some(job.id()) == task.get().unwrap())
    /// })?;
    /// assert_eq!(job.get()?, (Some("index".to_string()), true));
    /// assert!(JobControl::current().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn current() -> Option<Self> {
        current().map(JobControl::of)
    }

    /// Asks the job to end. A queued job never starts. Of a running one, each task that waits is dropped, and each
    /// closure goes on to its end. If the closure waits for a task of the job, it has an error. Its other waits, for a
    /// lock, a message or a time, are not ended: a long closure asks [`is_cancelled`](super::is_cancelled), or waits in
    /// a task. A root that ends first keeps its result.
    pub fn cancel(&self) {
        // In a child of `fork` the job is the parent's.
        let set = self.record.set.upgrade();
        if set.is_none_or(|set| set.process().is_this()) {
            self.record.cancel();
        }
    }

    /// The name of the job, among all of the process.
    ///
    /// ```
    /// use urgency::jobs::{CoreSet, JobId};
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let (first, second) = (cores.spawn_fn(|| 1)?, cores.spawn_fn(|| 2)?);
    /// let (one, other): (JobId, JobId) = (first.id(), second.id());
    /// assert_ne!(one, other);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn id(&self) -> JobId {
        self.record.id
    }

    /// The name that [`JobBuilder::name`](super::JobBuilder::name) gave it.
    pub fn name(&self) -> Option<&str> {
        self.record.name.as_deref()
    }

    /// How far the job is in its life.
    ///
    /// ```
    /// use urgency::jobs::{CoreSet, JobState};
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let job = cores.spawn(std::future::pending::<()>())?;
    /// assert_eq!(job.state(), JobState::Running);
    /// let control = job.control();
    /// control.cancel();
    /// assert!(job.get().is_err());
    /// assert_eq!(control.state(), JobState::Over);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn state(&self) -> JobState {
        self.record.state()
    }

    /// Whether the job is over: nothing of it runs.
    pub fn is_over(&self) -> bool {
        self.state() == JobState::Over
    }

    /// When the job was submitted, when it started, and when it was over; so, how long it was queued.
    pub fn times(&self) -> JobTimes {
        self.record.times()
    }

    /// What the job last [reported](super::report) of its progress.
    pub fn progress(&self) -> Progress {
        self.record.progress()
    }

    /// What the job did so far, what it runs now included; `None` of a job that has not started. Of a job that is over
    /// nothing is queued, goes on or has a worker; what it did is kept.
    pub fn stats(&self) -> Option<Stats> {
        self.record.stats()
    }

    /// What the job asks for of the cores, as it was described or [changed](Self::set_demand) from outside. It may be
    /// more urgent than that while more urgent code waits for it. What its own code asks for by
    /// [`Runtime::set_demand`](crate::Runtime::set_demand) is not in it; a wait for the job replaces that priority.
    pub fn demand(&self) -> Demand {
        self.record.demand()
    }

    /// The period that the job's real-time task has to keep: see [`Handle::period`](crate::runtime::Handle::period).
    /// `None` while the job is queued, and when it is over.
    pub fn period(&self) -> Option<Duration> {
        self.record.period()
    }

    /// From now on the job asks for this of the cores. It takes effect within some milliseconds.
    ///
    /// # Errors
    ///
    /// The new demand cannot be had; then the old one holds. Of a job in the queue: it could not be had if the job were
    /// alone.
    pub fn set_demand(&self, demand: Demand) -> Result<(), SubmitError> {
        Ok(self.record.set_demand(demand)?)
    }
}
