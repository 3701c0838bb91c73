//! The description of a job: name, weight, cores and priority, its level, and the runtime that it is to have.
//!
//! A description is submitted any number of times. Its clones share one *shape*, the builder of their runtimes: so a
//! container that one of them has left fits the next.

use super::{JobHandle, JobPermit, SubmitError, set::Set};
use crate::{Builder, LevelId, sys::clock};
use std::{future::Future, sync::Arc, time::Instant};
use urgency_policy::cores::{Demand, Group};

/// Describes a job, and submits it: see [`CoreSet::job`](super::CoreSet::job).
///
/// A description can be cloned, and submitted any number of times. The jobs of clones use the same containers, which
/// saves building one for each; so keep a description where many jobs are alike.
///
/// ```
/// use urgency::{jobs::CoreSet, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let cores = CoreSet::builder().cores(2).build()?;
/// let reports = cores
///     .job()
///     .name("report")
///     .weight(2)
///     .runtime(|builder| builder.levels::<App>())
///     .level(Batch);
/// let level = reports.clone().spawn_fn(urgency::current_level)?;
/// assert_eq!(level.get()?, Batch.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct JobBuilder {
    pub(super) set: Arc<Set>,
    /// Shared with all containers that were built by it.
    pub(super) shape: Arc<Builder>,
    pub(super) demand: Demand,
    pub(super) level: Option<LevelId>,
    pub(super) name: Option<Arc<str>>,
}

debug_struct!(JobBuilder, |it| name: it.name, demand: it.demand);

impl JobBuilder {
    pub(super) fn new(set: Arc<Set>, shape: Arc<Builder>) -> Self {
        JobBuilder {
            set,
            shape,
            demand: Demand::default(),
            level: None,
            name: None,
        }
    }

    /// A name for people: see [`JobControl::name`](super::JobControl::name).
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The job's share relative to the other jobs of its priority, or of its [`group`](Self::group), 1 or more. The
    /// default is 1. A job that was quiet has more than its share for some milliseconds, as far as it left some of it
    /// meanwhile ([`Shares`](crate::policy::cores::Shares)).
    pub fn weight(mut self, weight: u32) -> Self {
        self.demand.weight = weight;
        self
    }

    /// The group whose share the job has a part of: its tenant, for instance. The jobs of a group have together what
    /// the group's weight gives among the groups of their priority, however many they are, and divide it by their own
    /// weights. Without a group the job is one of its own, of its own weight.
    ///
    /// ```
    /// use urgency::{jobs::CoreSet, policy::cores::Group};
    ///
    /// let cores = CoreSet::builder().cores(2).build()?;
    /// let paying = Group::new(17).weight(4); // the number of the tenant
    /// let page = cores.job().group(paying).weight(2).spawn_fn(|| "a page")?;
    /// let index = cores.job().group(paying).spawn_fn(|| "an index")?;
    /// let trial = cores.job().group(Group::new(18)).spawn_fn(|| "a trial")?;
    /// assert_eq!(page.demand().group, Some(paying));
    /// for job in [page, index, trial] {
    ///     job.get()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn group(mut self, group: Group) -> Self {
        self.demand.group = Some(group);
        self
    }

    /// How many cores the job always has while it can use them: [`Demand::min_cores`]. The default is 0.
    pub fn min_cpus(mut self, cpus: usize) -> Self {
        self.demand.min_cores = cpus;
        self
    }

    /// How many cores the job has at most, 1 or more: [`Demand::max_cores`]. The default is all.
    pub fn max_cpus(mut self, cpus: usize) -> Self {
        self.demand.max_cores = cpus;
        self
    }

    /// The job's priority beside the other jobs: 0, the default, is the most urgent. Less urgent jobs get what the more
    /// urgent ones leave, and their `min_cpus`. (The levels *inside* of a job are not compared with other jobs.)
    pub fn priority(mut self, priority: u8) -> Self {
        self.demand.priority = priority;
        self
    }

    /// When the job should be done. It is for a core policy of the program's own, as *earliest deadline first* is; the
    /// built-in policies take no notice.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use urgency::{
    ///     jobs::CoreSet,
    ///     policy::cores::{CorePolicy, Cores, Decision, DecisionError, Event, Job},
    /// };
    ///
    /// /// The job with the earliest deadline has all cores.
    /// #[derive(Clone)]
    /// struct EarliestFirst;
    ///
    /// impl CorePolicy for EarliestFirst {
    ///     fn decide(&mut self, _: Event, cores: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
    ///         let deadline = |job: &&Job| job.demand().deadline.unwrap_or(u64::MAX);
    ///         let first = cores.jobs().iter().min_by_key(deadline).map(|job| job.id());
    ///         cores.available().try_for_each(|core| to.give(core, first))
    ///     }
    /// }
    ///
    /// let cores = CoreSet::builder().cores(2).core_policy(EarliestFirst).build()?;
    /// let soon = Instant::now() + Duration::from_millis(20);
    /// let report = cores.job().deadline(soon).spawn_fn(|| "report")?;
    /// assert_eq!(report.get()?, "report");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(mut self, at: Instant) -> Self {
        self.demand.deadline = Some(clock::nanoseconds_at(at));
        self
    }

    /// All that the job asks for of the cores, a deadline and a real-time task included.
    pub fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    /// The level of the root. The default is the least urgent of the job's levels. With one that the job does not have
    /// it is refused ([`BuildError::NoSuchLevel`](crate::BuildError::NoSuchLevel)).
    pub fn level(mut self, level: impl Into<LevelId>) -> Self {
        self.level = Some(level.into());
        self
    }

    /// The job's own levels, schedule, orders, limits, panic policy: what a [`Builder`] can say of a runtime but its
    /// workers and threads, which are the set's, and its demand, which is the job's ([`demand`](Self::demand)). With
    /// any of these the job is refused ([`BuildError::OfSharedWorkers`](crate::BuildError::OfSharedWorkers)).
    pub fn runtime(mut self, describe: impl FnOnce(Builder) -> Builder) -> Self {
        self.shape = Arc::new(describe(Builder::clone(&self.shape)));
        self
    }

    /// Submits a future as the root of a job. It needs no worker, so a plain thread does not wait here. If the set is
    /// full the future is lost: [`reserve`](Self::reserve) the place first, where that matters.
    ///
    /// # Errors
    ///
    /// As many jobs run and are queued as may, the job cannot be had as it was described, or the set is closed.
    pub fn spawn<F>(self, future: F) -> Result<JobHandle<F::Output>, SubmitError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.into_permit()?.spawn(future)
    }

    /// As [`spawn`](Self::spawn), of a closure.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_fn<F, T>(self, closure: F) -> Result<JobHandle<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.into_permit()?.spawn_fn(closure)
    }

    /// Waits until there is a place for one more job of this description. The place is the permit's, and a submission
    /// with it is never [`Full`](SubmitError::Full). Code that waits for places has them in order of arrival, code of
    /// more urgent levels first. While some waits, no other submission has a place.
    ///
    /// A job of the same set that waits here keeps its own place meanwhile: if all running jobs do, none ends.
    ///
    /// ```
    /// use urgency::jobs::CoreSet;
    ///
    /// let cores = CoreSet::builder().cores(2).most_running(2).most_queued(2).build()?;
    /// let thumbnails = cores.job().name("thumbnail");
    /// urgency::block_on(async {
    ///     // The reader of these names stops while four jobs run or are queued.
    ///     for name in ["cat.png", "dog.png", "sun.png", "sea.png", "sky.png", "ice.png"] {
    ///         let place = thumbnails.reserve().await?;
    ///         place.spawn_fn(move || println!("a small {name}"))?.detach();
    ///     }
    ///     Ok::<(), urgency::jobs::SubmitError>(())
    /// })?;
    /// cores.drain();
    /// assert_eq!(cores.stats().over, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The future's output is an error if no job could be had as it was described, without a wait; and if the set is
    /// [closed](super::CoreSet::close), before or during the wait.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the turn; a place that it had been handed goes to the next.
    pub fn reserve(&self) -> impl Future<Output = Result<JobPermit, SubmitError>> + Send + use<> {
        let job = self.clone();
        async move {
            job.set.process().must_be_this();
            job.set.could_have(&job)?;
            let place = job.set.place().await?;
            Ok(JobPermit::new(job, place))
        }
    }

    /// As [`reserve`](Self::reserve), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    pub fn blocking_reserve(&self) -> Result<JobPermit, SubmitError> {
        crate::block_on(self.reserve())
    }

    /// A place for one more job of this description, if one is free and nothing waits for it.
    ///
    /// ```
    /// use urgency::jobs::{CoreSet, SubmitError};
    ///
    /// let cores = CoreSet::builder().cores(1).most_running(1).most_queued(0).build()?;
    /// let job = cores.job();
    /// let place = job.try_reserve()?;
    /// let work = vec![1, 2, 3]; // kept, whatever the answer is
    /// let full = job.try_reserve().unwrap_err();
    /// assert_eq!(full, SubmitError::Full { running: 0, queued: 0, reserved: 1 });
    /// assert_eq!(place.spawn_fn(move || work.len())?.get()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is none, the job could not be had as it was described, or the set is closed.
    pub fn try_reserve(&self) -> Result<JobPermit, SubmitError> {
        self.clone().into_permit()
    }

    fn into_permit(self) -> Result<JobPermit, SubmitError> {
        self.set.process().must_be_this();
        self.set.could_have(&self)?;
        let place = self.set.try_place()?;
        Ok(JobPermit::new(self, place))
    }
}
