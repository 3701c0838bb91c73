//! The table of jobs and cores: what a policy sees, and what its decisions change.

use super::{CorePolicy, Decision, DecisionError, Demand, Event, Job, JobId, Refusal, Usage};
use alloc::{vec, vec::Vec};

/// How a machine partitions its last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheControl {
    /// How many ways there are, up to 64.
    pub ways: u8,
    /// How many a job gets at least.
    pub least: u8,
    /// Whether the ways of a job may lie apart.
    pub sparse: bool,
}

impl CacheControl {
    /// Whether a job can get these ways.
    ///
    /// ```
    /// use urgency_policy::cores::CacheControl;
    ///
    /// let control = CacheControl { ways: 11, least: 2, sparse: false };
    /// assert!(control.allows(0b0110));
    /// assert!(!control.allows(0b0101), "they lie apart");
    /// assert!(!control.allows(0b1), "too few");
    /// assert!(!control.allows(0b11 << 10), "there is no way 11");
    /// ```
    pub fn allows(self, ways: u64) -> bool {
        let exist = ways.checked_shr(u32::from(self.ways)).unwrap_or(0) == 0;
        let many = ways.count_ones() >= u32::from(self.least.max(1));
        let lowest = ways.checked_shr(ways.trailing_zeros()).unwrap_or(0);
        exist && many && (self.sparse || lowest & lowest.wrapping_add(1) == 0)
    }
}

/// How a machine limits memory bandwidth, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandwidthControl {
    /// The least that a job can be limited to.
    pub least: u8,
    /// The limits are multiples of it.
    pub step: u8,
}

impl BandwidthControl {
    /// Whether a job can be limited to this.
    pub fn allows(self, percent: u8) -> bool {
        (self.least.max(1)..=100).contains(&percent) && percent.is_multiple_of(self.step.max(1))
    }
}

/// Jobs, cores and their owners. The mechanism keeps it, a policy reads it.
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, Event, JobId, Shares};
///
/// let (mut cores, mut shares) = (Cores::new(6), Shares::default());
/// for (job, weight) in [(JobId(1), 2), (JobId(2), 1)] {
///     cores.start(&mut shares, job, Demand { weight, ..Demand::default() })?;
///     cores.decide(&mut shares, Event::Start(job))?;
/// }
/// assert_eq!(cores.job(JobId(1)).unwrap().cores(), 4);
/// cores.exit(JobId(1))?;
/// let decision = cores.decide(&mut shares, Event::Exit(JobId(1)))?;
/// assert_eq!(decision.moves().len(), 4, "the other job gets all of them");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cores {
    /// By core: the place of its owner in `jobs`.
    pub(super) owners: Vec<Option<usize>>,
    pub(super) available: Vec<bool>,
    /// In the order of their names.
    pub(super) jobs: Vec<Job>,
    /// The first names of the jobs that rest.
    resting: Vec<JobId>,
    last: Option<JobId>,
    pub(super) now: u64,
    pub(super) cache: Option<CacheControl>,
    pub(super) bandwidth: Option<BandwidthControl>,
    /// The last decision; its memory is used again.
    decision: Decision,
}

impl Cores {
    /// So many cores, all available, without jobs.
    pub fn new(cores: usize) -> Self {
        Cores {
            owners: vec![None; cores],
            available: vec![true; cores],
            jobs: Vec::new(),
            resting: Vec::new(),
            last: None,
            now: 0,
            cache: None,
            bandwidth: None,
            decision: Decision::default(),
        }
    }

    /// The same on a machine that can do this with its cache and memory.
    #[must_use]
    pub fn with_controls(
        self,
        cache: Option<CacheControl>,
        bandwidth: Option<BandwidthControl>,
    ) -> Self {
        Cores {
            cache,
            bandwidth,
            ..self
        }
    }

    // What a policy reads.

    /// The time in nanoseconds, as the mechanism told it last.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How many cores there are, available or not. They are numbered from 0.
    pub fn count(&self) -> usize {
        self.owners.len()
    }

    /// The cores that are available, lowest first.
    pub fn available(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.owners.len()).filter(|&core| self.available[core])
    }

    /// The owner of a core; `None` for nobody, and for a core that does not exist.
    pub fn owner(&self, core: usize) -> Option<JobId> {
        let owner = self.owners.get(core).copied().flatten();
        owner.map(|index| self.jobs[index].id)
    }

    /// The jobs that run, in the order in which they entered.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// How many cores each job has, in their order.
    ///
    /// ```
    /// use urgency_policy::cores::{Cores, Demand, Event, JobId, Shares};
    ///
    /// let (mut cores, mut shares) = (Cores::new(4), Shares::default());
    /// cores.start(&mut shares, JobId(1), Demand::default())?;
    /// cores.decide(&mut shares, Event::Start(JobId(1)))?;
    /// assert_eq!(cores.counts(), [4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn counts(&self) -> Vec<usize> {
        self.jobs.iter().map(Job::cores).collect()
    }

    /// The job of this name, if it runs.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.index(id).map(|index| &self.jobs[index])
    }

    /// How the machine partitions its cache, if it can.
    pub fn cache(&self) -> Option<CacheControl> {
        self.cache
    }

    /// How the machine limits memory bandwidth, if it can.
    pub fn bandwidth(&self) -> Option<BandwidthControl> {
        self.bandwidth
    }

    // What the mechanism tells.

    /// The time, in nanoseconds by whatever clock the mechanism has.
    pub fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// A job wants to start. It is in the table afterwards, without a core; [`Event::Start`] comes next.
    ///
    /// # Errors
    ///
    /// If its demand is not valid or cannot be kept, its number is not larger than those before, or the policy
    /// refuses it.
    pub fn start<P: CorePolicy + ?Sized>(
        &mut self,
        policy: &mut P,
        id: JobId,
        demand: Demand,
    ) -> Result<(), Refusal> {
        self.admit(policy, id, &demand)?;
        self.enter(id, demand)
    }

    /// A job starts that has been promised this demand already, in another table: as [`start`](Self::start), but
    /// neither the policy nor the cores that are left are asked. So more may be promised than is available now.
    ///
    /// ```
    /// use urgency_policy::cores::{Cores, Demand, JobId};
    ///
    /// let mut cores = Cores::new(2);
    /// cores.set_available(1, false)?;
    /// for job in [JobId(1), JobId(2)] {
    ///     cores.enter(job, Demand { min_cores: 1, ..Demand::default() })?;
    /// }
    /// cores.promise(JobId(2), Demand { min_cores: 2, ..Demand::default() })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the demand is not valid, or the number is not larger than those before.
    pub fn enter(&mut self, id: JobId, demand: Demand) -> Result<(), Refusal> {
        demand.check()?;
        if let Some(last) = self.last.filter(|&last| last >= id) {
            return Err(Refusal::OldId { given: id, last });
        }
        self.last = Some(id);
        self.jobs.push(Job {
            id,
            first: id,
            demand,
            started: self.now,
            usage: Usage::default(),
            cores: 0,
        });
        Ok(())
    }

    /// A running job's demand changes; [`Request::Demand`](super::Request::Demand) comes next.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and if there is no such job. Then the old demand holds.
    pub fn change<P: CorePolicy + ?Sized>(
        &mut self,
        policy: &mut P,
        id: JobId,
        demand: Demand,
    ) -> Result<(), Refusal> {
        self.index(id).ok_or(Refusal::UnknownJob(id))?;
        self.admit(policy, id, &demand)?;
        self.promise(id, demand)
    }

    /// A running job's demand changes, which has been promised already: see [`enter`](Self::enter).
    ///
    /// # Errors
    ///
    /// If the demand is not valid, or there is no such job.
    pub fn promise(&mut self, id: JobId, demand: Demand) -> Result<(), Refusal> {
        demand.check()?;
        let index = self.index(id).ok_or(Refusal::UnknownJob(id))?;
        self.jobs[index].demand = demand;
        Ok(())
    }

    /// The places of the jobs in [`jobs`](Self::jobs), the more urgent ones first, and of equals the oldest: the order
    /// in which least cores are met while there are too few for all.
    pub(super) fn by_urgency(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_key(|&index| self.jobs[index].demand.priority);
        order
    }

    fn admit<P: CorePolicy + ?Sized>(
        &self,
        policy: &mut P,
        id: JobId,
        demand: &Demand,
    ) -> Result<(), Refusal> {
        demand.check()?;
        let others = self.jobs.iter().filter(|job| job.id != id);
        let promised: usize = others.map(|job| job.demand.min_cores).sum();
        let left = self.available().count().saturating_sub(promised);
        if demand.min_cores > left {
            return Err(Refusal::MinCores {
                asked: demand.min_cores,
                left,
            });
        }
        policy.admit(id, demand, self)
    }

    /// A job has ended. Its cores are free; [`Event::Exit`] comes next.
    ///
    /// # Errors
    ///
    /// If there is no such job.
    pub fn exit(&mut self, id: JobId) -> Result<(), DecisionError> {
        let index = self
            .index(id)
            .ok_or(DecisionError::UnknownJob { job: id })?;
        self.jobs.remove(index);
        for slot in &mut self.owners {
            slot.take_if(|owner| *owner == index);
            if let Some(later) = slot.as_mut().filter(|owner| **owner > index) {
                *later -= 1;
            }
        }
        Ok(())
    }

    /// A job has no work for now: as [`exit`](Self::exit), but it may come back, and each [`PerJob`](super::PerJob)
    /// keeps its value. [`Event::Exit`] comes next.
    ///
    /// ```
    /// use urgency_policy::cores::{Cores, Demand, JobId, PerJob};
    ///
    /// let (mut cores, mut tokens) = (Cores::new(2), PerJob::<u32>::default());
    /// cores.enter(JobId(1), Demand::default())?;
    /// tokens.keep_up(&cores, |_| 5);
    /// cores.rest(JobId(1)).unwrap();
    /// tokens.keep_up(&cores, |_| 5);
    /// assert_eq!((tokens.get(JobId(1)), cores.resting()), (None, &[JobId(1)][..]));
    ///
    /// cores.enter(JobId(2), Demand::default())?;
    /// cores.enter_again(JobId(3), JobId(1), Demand::default())?;
    /// tokens.keep_up(&cores, |_| 0);
    /// assert_eq!((tokens.get(JobId(2)), tokens.get(JobId(3))), (Some(&0), Some(&5)));
    ///
    /// cores.rest(JobId(3)).unwrap();
    /// cores.forget(JobId(1));
    /// assert_eq!(cores.resting(), []);
    /// # Ok::<(), urgency_policy::cores::Refusal>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no such job.
    pub fn rest(&mut self, id: JobId) -> Result<(), DecisionError> {
        let first = self.job(id).map(Job::first);
        self.exit(id)?;
        self.resting.extend(first);
        Ok(())
    }

    /// A job that rests has work again: as [`enter`](Self::enter), under a new name. Its [first](Job::first) one says
    /// which job it is. [`Event::Start`] comes next.
    ///
    /// # Errors
    ///
    /// As [`enter`](Self::enter), and if no job of that first name rests.
    pub fn enter_again(&mut self, id: JobId, first: JobId, demand: Demand) -> Result<(), Refusal> {
        let place = self.resting.iter().position(|&it| it == first);
        let place = place.ok_or(Refusal::UnknownJob(first))?;
        self.enter(id, demand)?;
        self.resting.swap_remove(place);
        let entered = self.jobs.last_mut();
        entered.expect("it has just entered").first = first;
        Ok(())
    }

    /// The job of this first name has ended while it rested, and does not come back.
    pub fn forget(&mut self, first: JobId) {
        self.resting.retain(|&it| it != first);
    }

    /// The first names of the jobs that rest.
    pub fn resting(&self) -> &[JobId] {
        &self.resting
    }

    /// What a job did in the interval that ends; before [`Event::Timer`].
    ///
    /// # Errors
    ///
    /// If there is no such job.
    pub fn measure(&mut self, id: JobId, usage: Usage) -> Result<(), DecisionError> {
        let index = self
            .index(id)
            .ok_or(DecisionError::UnknownJob { job: id })?;
        self.jobs[index].usage = usage;
        Ok(())
    }

    /// A core comes or goes, as the entitlement of the process says. The owner of one that goes loses it, whatever
    /// its least cores are. [`Request::Cores`](super::Request::Cores) comes next.
    ///
    /// # Errors
    ///
    /// If there is no such core.
    pub fn set_available(&mut self, core: usize, available: bool) -> Result<(), DecisionError> {
        let cores = self.owners.len();
        let slot = self.available.get_mut(core);
        *slot.ok_or(DecisionError::UnknownCore { core, cores })? = available;
        if !available && let Some(owner) = self.owners[core].take() {
            self.jobs[owner].cores -= 1;
        }
        Ok(())
    }

    /// Asks the policy, checks its answer, and enters it into the table.
    ///
    /// # Errors
    ///
    /// If the answer breaks a rule. Then the table is as before.
    pub fn decide<P: CorePolicy + ?Sized>(
        &mut self,
        policy: &mut P,
        event: Event,
    ) -> Result<&Decision, DecisionError> {
        let mut decision = core::mem::take(&mut self.decision);
        decision.begin(self);
        let made = policy
            .decide(event, self, &mut decision)
            .and_then(|()| decision.finish(self));
        if made.is_ok() {
            for (job, cores) in self.jobs.iter_mut().zip(decision.counts()) {
                job.cores = cores;
            }
            self.owners.copy_from_slice(decision.owners());
        }
        self.decision = decision;
        made.map(|()| &self.decision)
    }

    fn index(&self, id: JobId) -> Option<usize> {
        self.jobs.binary_search_by_key(&id, |job| job.id).ok()
    }
}
