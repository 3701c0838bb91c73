//! DREP: distributed random equi-partition.

use super::{CorePolicy, Cores, Decision, DecisionError, Event, Job};
use crate::dice::Dice;
use alloc::vec::Vec;

/// Cores by lot.
///
/// The AMCilk paper (section V-A) uses it to minimise the mean flow time of jobs of which nothing is known. It was
/// published by Agrawal, Lee, Li, Lu and Moseley ("Practically efficient scheduler for minimizing average flow time of
/// parallel jobs", IPDPS 2019). In expectation each of n jobs has an nth of the cores, and nobody counts anything:
///
/// 1. A job starts, as the nth that runs: each core draws a lot, and goes to it with probability 1/n. As many cores
///    as were drawn it gets, idle ones first (the source's rule: an idle core costs nobody anything).
/// 2. A job ends: each of its cores goes to a job drawn uniformly.
///
/// To that come, as in the source, one core that no lot takes from a running job; here also for a job that drew none.
/// So a job goes without a core only while there are more jobs than cores, and the cores that become free then go to
/// the jobs without, the oldest first: none starves while jobs end. Least and most cores are kept.
///
/// The bound that its authors prove, mean flow time within O(1/ε³) of the optimum at 1 + ε times the speed, is about
/// rules 1 and 2; it is cited and not checked.
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, Drep, Event, JobId};
///
/// let (mut cores, mut drep) = (Cores::new(38), Drep::new(1));
/// for id in [JobId(1), JobId(2)] {
///     cores.start(&mut drep, id, Demand::default())?;
///     cores.decide(&mut drep, Event::Start(id))?;
/// }
/// let second = cores.job(JobId(2)).unwrap().cores();
/// assert!((5..33).contains(&second), "half of 38 by lot, {second}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Drep {
    dice: Dice,
}

impl Drep {
    /// With lots from this seed.
    pub fn new(seed: u64) -> Self {
        Drep {
            dice: Dice::new(seed),
        }
    }
}

/// So many cores no lot takes from a job.
fn keeps(job: &Job) -> usize {
    job.demand().min_cores.max(1)
}

impl CorePolicy for Drep {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        if let Event::Start(new) = event
            && let Some(job) = cores.job(new)
        {
            let n = cores.jobs().len() as u64;
            let lots = cores.available().filter(|_| self.dice.below(n) == 0);
            let drawn: Vec<usize> = lots.collect();
            let wanted = drawn.len().min(job.demand().max_cores);
            let idle: Vec<usize> = decision.free().collect();
            for core in idle.into_iter().chain(drawn) {
                let owner = decision.owner(core).and_then(|owner| cores.job(owner));
                let leaves = owner.is_none_or(|job| decision.cores_of(job.id()) > keeps(job));
                if leaves && decision.cores_of(new) < wanted {
                    decision.give(core, new)?;
                }
            }
        }
        decision.fit(cores)?;
        for job in cores.jobs() {
            if decision.cores_of(job.id()) == 0
                && let Some(core) = decision.spare(cores, job.id(), keeps)
            {
                decision.give(core, job.id())?;
            }
        }
        for core in decision.free().collect::<Vec<_>>() {
            let may = |job: &&Job| decision.cores_of(job.id()) < job.demand().max_cores;
            let jobs: Vec<&Job> = cores.jobs().iter().filter(may).collect();
            if !jobs.is_empty() {
                decision.give(core, jobs[self.dice.below(jobs.len() as u64) as usize].id())?;
            }
        }
        Ok(())
    }

    fn is_work_conserving(&self) -> bool {
        true
    }

    fn refuses(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Demand, JobId};
    use super::*;
    use alloc::vec;

    fn start(cores: &mut Cores, drep: &mut Drep, id: u64) {
        cores.start(drep, JobId(id), Demand::default()).unwrap();
        cores.decide(drep, Event::Start(JobId(id))).unwrap();
    }

    #[test]
    fn in_the_mean_over_seeds_each_of_n_jobs_has_an_nth_of_the_cores() {
        let mut sums = vec![0; 4];
        for seed in 0..1000 {
            let (mut cores, mut drep) = (Cores::new(40), Drep::new(seed));
            (0..4).for_each(|id| start(&mut cores, &mut drep, id));
            for (sum, job) in sums.iter_mut().zip(cores.jobs()) {
                *sum += job.cores();
            }
        }
        assert!(
            sums.iter().all(|&sum| (9_500..10_500).contains(&sum)),
            "{sums:?}"
        );
    }

    /// Without lots at its return it had the one core that no lot takes.
    #[test]
    fn in_the_mean_a_job_that_rests_again_and_again_has_an_nth_of_the_cores_while_it_works() {
        let (mut cores, mut drep, mut sum) = (Cores::new(40), Drep::new(1), 0);
        (0..4).for_each(|id| start(&mut cores, &mut drep, id));
        for id in 4..1_004 {
            let last = if id == 4 { JobId(0) } else { JobId(id - 1) };
            cores.rest(last).unwrap();
            cores.decide(&mut drep, Event::Exit(last)).unwrap();
            let enters = cores.enter_again(JobId(id), JobId(0), Demand::default());
            enters.unwrap();
            cores.decide(&mut drep, Event::Start(JobId(id))).unwrap();
            sum += cores.job(JobId(id)).unwrap().cores();
        }
        assert!((9_500..10_500).contains(&sum), "{sum}");
    }

    /// So a job that comes back is the youngest: under its old name it would come before jobs that have waited.
    #[test]
    fn a_job_that_waits_for_a_core_is_not_overtaken_by_jobs_that_come_back() {
        let (mut cores, mut drep) = (Cores::new(1), Drep::new(1));
        (0..3).for_each(|id| start(&mut cores, &mut drep, id));
        cores.rest(JobId(0)).unwrap();
        cores.decide(&mut drep, Event::Exit(JobId(0))).unwrap();
        cores
            .enter_again(JobId(3), JobId(0), Demand::default())
            .unwrap();
        cores.decide(&mut drep, Event::Start(JobId(3))).unwrap();
        cores.exit(JobId(1)).unwrap();
        cores.decide(&mut drep, Event::Exit(JobId(1))).unwrap();
        assert_eq!(
            cores.counts(),
            [1, 0],
            "the one that has waited, then the other"
        );
    }

    #[test]
    fn the_cores_of_a_job_that_ends_go_to_the_others_and_no_other_core_moves() {
        let (mut cores, mut drep) = (Cores::new(40), Drep::new(3));
        (0..4).for_each(|id| start(&mut cores, &mut drep, id));
        let had: Vec<usize> = (0..40)
            .filter(|&core| cores.owner(core) == Some(JobId(1)))
            .collect();
        cores.exit(JobId(1)).unwrap();
        let decision = cores.decide(&mut drep, Event::Exit(JobId(1))).unwrap();
        let moved: Vec<usize> = decision.moves().iter().map(|change| change.core).collect();
        assert_eq!(moved, had);
        assert!(decision.moves().iter().all(|change| change.to.is_some()));
    }

    #[test]
    fn more_jobs_than_cores_get_their_first_core_in_the_order_of_their_start() {
        let (mut cores, mut drep) = (Cores::new(2), Drep::new(5));
        (0..6).for_each(|id| start(&mut cores, &mut drep, id));
        let running = |cores: &Cores| -> Vec<u64> {
            let running = cores.jobs().iter().filter(|job| job.cores() > 0);
            running.map(|job| job.id().0).collect()
        };
        assert_eq!(running(&cores), [0, 1]);
        for (ends, runs) in [(1, [0, 2]), (0, [2, 3]), (2, [3, 4])] {
            cores.exit(JobId(ends)).unwrap();
            cores.decide(&mut drep, Event::Exit(JobId(ends))).unwrap();
            assert_eq!(running(&cores), runs);
        }
    }
}
