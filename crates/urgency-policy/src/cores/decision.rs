//! What a policy wants to change.
//!
//! The setters check what one call can show to be wrong: an unknown name, a second owner, a number that the machine
//! does not have. What only the whole shows, the bounds of the jobs, [`Cores::decide`] checks at the end, so that the
//! order of the calls does not matter.

use super::{BandwidthControl, CacheControl, Cores, DecisionError, Job, JobId};
use alloc::vec::Vec;

/// A core goes from one job to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// The core.
    pub core: usize,
    /// Whose it was; `None` if nobody's.
    pub from: Option<JobId>,
    /// Whose it is now; `None` if nobody's.
    pub to: Option<JobId>,
}

/// What a policy wants to change. [`Cores::decide`] makes it, and returns it with its list of moves.
///
/// ```
/// use urgency_policy::cores::{
///     BandwidthControl, CacheControl, CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId, Refusal,
/// };
///
/// /// The same number of cores, half of the cache and half of the bandwidth for each of at most two jobs.
/// struct Halves;
///
/// impl CorePolicy for Halves {
///     fn admit(&mut self, _: JobId, _: &Demand, cores: &Cores) -> Result<(), Refusal> {
///         match cores.jobs().len() {
///             0 | 1 => Ok(()),
///             _ => Err(Refusal::Cores { needed: 1, left: 0 }),
///         }
///     }
///
///     fn decide(&mut self, _: Event, cores: &Cores, decision: &mut Decision) -> Result<(), DecisionError> {
///         let jobs = cores.jobs();
///         let half = cores.available().count() / 2;
///         decision.give_counts(cores, &vec![half; jobs.len()])?;
///         decision.fit(cores)?; // within the bounds of each job's demand
///         for (job, ways) in jobs.iter().zip([0b0011, 0b1100]) {
///             if decision.cores_of(job.id()) < half
///                 && let Some(core) = decision.spare(cores, job.id(), |_| half)
///             {
///                 decision.give(core, job.id())?;
///             }
///             decision.set_cache_ways(job.id(), ways)?;
///             decision.set_bandwidth(job.id(), 50)?;
///         }
///         decision.set_timer(cores.now() + 1_000_000)
///     }
/// }
///
/// let cache = CacheControl { ways: 4, least: 1, sparse: false };
/// let bandwidth = BandwidthControl { least: 10, step: 10 };
/// let mut cores = Cores::new(5).with_controls(Some(cache), Some(bandwidth));
/// cores.set_available(4, false)?; // another program has it
/// for job in [JobId(1), JobId(2)] {
///     cores.start(&mut Halves, job, Demand::default())?;
///     let decision = cores.decide(&mut Halves, Event::Start(job))?;
///     assert_eq!(decision.moves().len(), 2);
/// }
/// assert!(cores.start(&mut Halves, JobId(3), Demand::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// By core: the place in `counts` of the owner after this decision.
    owners: Vec<Option<usize>>,
    /// By core: whether this decision has said something about it.
    given: Vec<bool>,
    available: Vec<bool>,
    /// By job, in the order of the table: its name, and how many cores it has after this decision.
    counts: Vec<(JobId, usize)>,
    now: u64,
    cache: Option<CacheControl>,
    bandwidth: Option<BandwidthControl>,
    moves: Vec<Move>,
    ways: Vec<(JobId, u64)>,
    percents: Vec<(JobId, u8)>,
    timer: Option<u64>,
    /// Cores that change hands in [`Decision::give_counts`].
    free: Vec<usize>,
}

impl Decision {
    /// The core goes to this job, or to nobody.
    ///
    /// # Errors
    ///
    /// If there is no such core or job, the core is not available, or this decision has given it to another one.
    pub fn give(&mut self, core: usize, to: impl Into<Option<JobId>>) -> Result<(), DecisionError> {
        let to = to.into();
        let cores = self.owners.len();
        if core >= cores {
            return Err(DecisionError::UnknownCore { core, cores });
        }
        if !self.available[core] {
            return Err(DecisionError::Unavailable { core });
        }
        if self.given[core] && self.owner(core) != to {
            return Err(DecisionError::TwoOwners {
                core,
                first: self.owner(core),
                second: to,
            });
        }
        let to = to.map(|job| self.index(job)).transpose()?;
        self.give_to(core, to);
        Ok(())
    }

    fn give_to(&mut self, core: usize, to: Option<usize>) {
        if let Some(owner) = core::mem::replace(&mut self.owners[core], to) {
            self.counts[owner].1 -= 1;
        }
        if let Some(owner) = to {
            self.counts[owner].1 += 1;
        }
        self.given[core] = true;
    }

    /// Each job gets its number of cores, in the order of [`Cores::jobs`], and as few cores as possible move: a job
    /// that shrinks gives its highest cores, and the jobs that grow are filled up one after the other.
    ///
    /// Cores that this decision has given to somebody before stay there.
    ///
    /// # Errors
    ///
    /// If there is not one number for each job, or they sum to more than there are.
    pub fn give_counts(&mut self, cores: &Cores, counts: &[usize]) -> Result<(), DecisionError> {
        if counts.len() != self.counts.len() {
            return Err(DecisionError::Counts {
                given: counts.len(),
                jobs: self.counts.len(),
            });
        }
        let available = cores.available().count();
        let asked = counts.iter().fold(0usize, |sum, &c| sum.saturating_add(c));
        if asked > available {
            return Err(DecisionError::TooMany { asked, available });
        }
        let mut free = core::mem::take(&mut self.free);
        free.clear();
        for core in (0..self.owners.len()).rev() {
            if self.given[core] || !self.available[core] {
                continue;
            }
            let Some(owner) = self.owners[core] else {
                free.push(core);
                continue;
            };
            if self.counts[owner].1 > counts[owner] {
                self.counts[owner].1 -= 1;
                self.owners[core] = None;
                free.push(core);
            }
        }
        for (index, &count) in counts.iter().enumerate() {
            while self.counts[index].1 < count
                && let Some(core) = free.pop()
            {
                self.give_to(core, Some(index));
            }
        }
        self.free = free;
        Ok(())
    }

    /// Brings every job into its bounds with few moves: takes the cores above its most, and fills it up to its least
    /// from free cores first, then from the jobs that have most above theirs. If there are too few for the least of all
    /// jobs, the more urgent ones have theirs. Cores that this decision has given to somebody before stay there.
    ///
    /// # Errors
    ///
    /// None in a decision about these cores; in one about others, if a job is not theirs.
    pub fn fit(&mut self, cores: &Cores) -> Result<(), DecisionError> {
        for job in cores.jobs() {
            let index = self.index(job.id())?;
            while self.counts[index].1 > job.demand().max_cores
                && let Some(core) = self.movable(index)
            {
                self.owners[core] = None;
                self.counts[index].1 -= 1;
            }
        }
        for index in cores.by_urgency() {
            let job = &cores.jobs()[index];
            let is_behind = |other: &Job| other.demand().priority > job.demand().priority;
            let least = |other: &Job| other.demand().min_cores;
            let keeps = |other: &Job| if is_behind(other) { 0 } else { least(other) };
            while self.cores_of(job.id()) < least(job) {
                let above_least = self.spare(cores, job.id(), least);
                let Some(core) = above_least.or_else(|| self.spare(cores, job.id(), keeps)) else {
                    break;
                };
                self.give(core, job.id())?;
            }
        }
        Ok(())
    }

    /// A core for the job `needs`: a free one, or else a core of the job that has most cores above its `keeps`; `None`
    /// if no job has any above it. The oldest job comes first if several have most.
    pub fn spare(
        &self,
        cores: &Cores,
        needs: JobId,
        keeps: impl Fn(&Job) -> usize,
    ) -> Option<usize> {
        if let Some(core) = self.free().next() {
            return Some(core);
        }
        let above = |job: &Job| self.cores_of(job.id()).saturating_sub(keeps(job));
        let others = cores.jobs().iter().rev().filter(|job| job.id() != needs);
        let richest = others.max_by_key(|job| above(job))?;
        if above(richest) == 0 {
            return None;
        }
        self.movable(self.index(richest.id()).ok()?)
    }

    /// The available cores that no job has after this decision, without the cores that the decision leaves free on
    /// purpose; lowest first.
    pub fn free(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.owners.len())
            .filter(|&core| self.available[core] && !self.given[core])
            .filter(|&core| self.owners[core].is_none())
    }

    /// The highest core of the job at this place that this decision has not spoken of.
    fn movable(&self, index: usize) -> Option<usize> {
        let owned = |&core: &usize| self.owners[core] == Some(index) && !self.given[core];
        (0..self.owners.len()).rev().find(owned)
    }

    /// The owner of the core after what the decision has said so far.
    pub fn owner(&self, core: usize) -> Option<JobId> {
        let owner = self.owners.get(core).copied().flatten();
        owner.map(|index| self.counts[index].0)
    }

    /// How many cores the job has after what the decision has said so far; 0 if there is no such job.
    pub fn cores_of(&self, job: JobId) -> usize {
        self.index(job).map_or(0, |index| self.counts[index].1)
    }

    /// The job may fill these ways of the last-level cache: bit i is way i.
    ///
    /// # Errors
    ///
    /// If the machine cannot do that ([`Cores::cache`]), or there is no such job.
    pub fn set_cache_ways(&mut self, job: JobId, ways: u64) -> Result<(), DecisionError> {
        self.index(job)?;
        let control = self.cache.ok_or(DecisionError::NoCacheControl)?;
        if !control.allows(ways) {
            return Err(DecisionError::CacheWays { job, ways, control });
        }
        self.ways.push((job, ways));
        Ok(())
    }

    /// The job may use this part of the memory bandwidth, in percent.
    ///
    /// # Errors
    ///
    /// If the machine cannot do that ([`Cores::bandwidth`]), or there is no such job.
    pub fn set_bandwidth(&mut self, job: JobId, percent: u8) -> Result<(), DecisionError> {
        self.index(job)?;
        let control = self.bandwidth.ok_or(DecisionError::NoBandwidthControl)?;
        if !control.allows(percent) {
            return Err(DecisionError::Bandwidth {
                job,
                percent,
                control,
            });
        }
        self.percents.push((job, percent));
        Ok(())
    }

    /// The policy is asked again at this time, in nanoseconds, with [`Event::Timer`](super::Event::Timer). The last
    /// time that any decision set is the one that counts.
    ///
    /// # Errors
    ///
    /// If the time is not in the future.
    pub fn set_timer(&mut self, at: u64) -> Result<(), DecisionError> {
        if at <= self.now {
            return Err(DecisionError::TimerPassed { at, now: self.now });
        }
        self.timer = Some(at);
        Ok(())
    }

    /// The cores that change hands, lowest first. Empty until the decision is made.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// The cache ways that jobs get, in the order in which the policy said so.
    pub fn cache_ways(&self) -> &[(JobId, u64)] {
        &self.ways
    }

    /// The bandwidths that jobs get, in percent, in the order in which the policy said so.
    pub fn bandwidths(&self) -> &[(JobId, u8)] {
        &self.percents
    }

    /// When the policy wants to be asked again, if this decision says anything about it.
    pub fn timer(&self) -> Option<u64> {
        self.timer
    }

    /// By core: the place in the table of the owner after a decision that has been made.
    pub(super) fn owners(&self) -> &[Option<usize>] {
        &self.owners
    }

    fn index(&self, job: JobId) -> Result<usize, DecisionError> {
        self.counts
            .binary_search_by_key(&job, |&(id, _)| id)
            .map_err(|_| DecisionError::UnknownJob { job })
    }

    /// How many cores each job has after a decision that has been made, in the order of the table.
    pub(super) fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.counts.iter().map(|&(_, count)| count)
    }

    /// Starts a decision about these cores.
    pub(super) fn begin(&mut self, cores: &Cores) {
        self.owners.clone_from(&cores.owners);
        self.available.clone_from(&cores.available);
        self.given.clear();
        self.given.resize(self.owners.len(), false);
        self.counts.clear();
        let counts = cores.jobs.iter().map(|job| (job.id, job.cores));
        self.counts.extend(counts);
        self.now = cores.now;
        self.cache = cores.cache;
        self.bandwidth = cores.bandwidth;
        self.moves.clear();
        self.ways.clear();
        self.percents.clear();
        self.timer = None;
    }

    /// Whether all jobs are in their bounds afterwards; lists the moves.
    pub(super) fn finish(&mut self, cores: &Cores) -> Result<(), DecisionError> {
        let jobs = self.counts.iter().map(|&(id, _)| id);
        // What the setters checked a timer, ways and bandwidths against.
        let checked_by = (self.now, self.cache, self.bandwidth);
        if !jobs.eq(cores.jobs.iter().map(|job| job.id))
            || self.available != cores.available
            || checked_by != (cores.now, cores.cache, cores.bandwidth)
        {
            return Err(DecisionError::Replaced);
        }
        // What the setters counted is of the policy's making, too: it may have told them of another table.
        self.counts.iter_mut().for_each(|(_, count)| *count = 0);
        for &owner in self.owners.iter().flatten() {
            self.counts[owner].1 += 1;
        }
        let promised: usize = cores.jobs.iter().map(|job| job.demand.min_cores).sum();
        let can_promise = promised <= self.available.iter().filter(|&&is| is).count();
        for (job, &(id, count)) in cores.jobs.iter().zip(&self.counts) {
            let (min, max) = (job.demand.min_cores, job.demand.max_cores);
            if count > job.cores && count > max {
                return Err(DecisionError::AboveMax {
                    job: id,
                    cores: count,
                    max,
                });
            }
            if can_promise && count < job.cores && count < min {
                return Err(DecisionError::BelowMin {
                    job: id,
                    cores: count,
                    min,
                });
            }
        }
        let owners = cores.owners.iter().zip(&self.owners).enumerate();
        let changed = owners.filter(|(_, (from, to))| from != to);
        let id = |&owner: &usize| self.counts[owner].0;
        let moves = changed.map(|(core, (from, to))| Move {
            core,
            from: from.as_ref().map(id),
            to: to.as_ref().map(id),
        });
        // One that was made on a copy of the table has its own.
        self.moves.clear();
        self.moves.extend(moves);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CorePolicy, Demand, Event, Shares};
    use super::*;
    use alloc::vec;

    /// Puts this decision in the place of the one that it is given.
    struct Puts(Decision);

    impl CorePolicy for Puts {
        fn decide(
            &mut self,
            _: Event,
            _: &Cores,
            decision: &mut Decision,
        ) -> Result<(), DecisionError> {
            *decision = self.0.clone();
            Ok(())
        }
    }

    /// One job on two cores, of which it has none yet.
    fn one_job(cores: Cores) -> Cores {
        let mut cores = cores;
        cores.enter(JobId(1), Demand::default()).unwrap();
        cores
    }

    fn made_of(mut cores: Cores) -> Decision {
        let event = Event::Start(JobId(1));
        cores.decide(&mut Shares::default(), event).unwrap().clone()
    }

    #[test]
    fn a_decision_that_was_made_on_a_copy_of_the_table_lists_each_move_once() {
        let mut cores = one_job(Cores::new(2));
        let mut puts = Puts(made_of(cores.clone()));
        let decision = cores.decide(&mut puts, Event::Start(JobId(1))).unwrap();
        let moved: Vec<_> = decision.moves().iter().map(|it| it.core).collect();
        assert_eq!(moved, vec![0, 1]);
    }

    #[test]
    fn a_decision_of_another_time_or_machine_is_no_answer() {
        let mut cores = one_job(Cores::new(2));
        cores.set_now(7);
        let earlier = made_of(one_job(Cores::new(2)));
        let cache = CacheControl {
            ways: 4,
            least: 1,
            sparse: false,
        };
        let mut with_cache = one_job(Cores::new(2).with_controls(Some(cache), None));
        with_cache.set_now(7);
        let mut other = Decision::default();
        other.begin(&with_cache);
        other.set_cache_ways(JobId(1), 0b1).unwrap();
        for decision in [earlier, other] {
            let made = cores.decide(&mut Puts(decision), Event::Timer);
            assert_eq!(made.unwrap_err(), DecisionError::Replaced);
        }
    }
}
