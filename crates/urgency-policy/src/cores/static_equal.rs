//! A fixed number of equal parts: what static partitioning does.

use super::{
    CorePolicy, Cores, Decision, DecisionError, Demand, Event, Job, JobId, ParametersError, Refusal,
};
use alloc::vec::Vec;
use core::ops::Range;

/// Equal parts for good.
///
/// The AMCilk paper's second baseline (section V-C: two jobs, 19 cores each). The cores are cut into parts once. A job
/// that starts takes a part and keeps it; a job that finds none waits until one is free, the oldest first. What a
/// job does not use of its part nobody uses.
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, Event, JobId, StaticEqual};
///
/// let (mut cores, mut halves) = (Cores::new(38), StaticEqual::new(2)?);
/// for id in 1..=3 {
///     cores.start(&mut halves, JobId(id), Demand::default())?;
///     cores.decide(&mut halves, Event::Start(JobId(id)))?;
/// }
/// assert_eq!(cores.counts(), [19, 19, 0], "the third one waits");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StaticEqual {
    /// How many parts were asked for.
    count: usize,
    /// Whose each part is.
    holders: Vec<Option<JobId>>,
}

impl StaticEqual {
    /// So many parts.
    ///
    /// # Errors
    ///
    /// If it is 0.
    pub fn new(parts: usize) -> Result<Self, ParametersError> {
        match parts {
            0 => Err(ParametersError::Parts),
            count => Ok(StaticEqual {
                count,
                holders: Vec::new(),
            }),
        }
    }

    /// The cores of each part. There are no more parts than cores.
    fn ranges(&self, cores: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let parts = self.count.min(cores).max(1);
        (0..parts).map(move |part| part * cores / parts..(part + 1) * cores / parts)
    }
}

/// How many cores all jobs together lack of their least.
fn missing(cores: &Cores, decision: &Decision) -> usize {
    let missing = |job: &Job| {
        let least = job.demand().min_cores;
        least.saturating_sub(decision.cores_of(job.id()))
    };
    cores.jobs().iter().map(missing).sum()
}

impl CorePolicy for StaticEqual {
    fn admit(&mut self, _: JobId, demand: &Demand, cores: &Cores) -> Result<(), Refusal> {
        let sizes = self.ranges(cores.count()).map(|range| range.len());
        let left = sizes.min().unwrap_or(0);
        if demand.min_cores > left {
            let needed = demand.min_cores;
            return Err(Refusal::Cores { needed, left });
        }
        Ok(())
    }

    fn decide(
        &mut self,
        _: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        let available: Vec<usize> = cores.available().collect();
        let parts: Vec<_> = self
            .ranges(cores.count())
            .map(|range| (available.iter().any(|core| range.contains(core)), range))
            .collect();
        self.holders.resize(parts.len(), None);
        // Before any part is given away: the job of a part without cores waits for each of them.
        for (holder, (is_usable, _)) in self.holders.iter_mut().zip(&parts) {
            *holder = holder.filter(|id| *is_usable && cores.job(*id).is_some());
        }
        for (part, (is_usable, range)) in parts.into_iter().enumerate() {
            if self.holders[part].is_none() && is_usable {
                let waits = |id: &JobId| !self.holders.contains(&Some(*id));
                self.holders[part] = cores.jobs().iter().map(|job| job.id()).find(waits);
            }
            let Some(job) = self.holders[part].and_then(|id| cores.job(id)) else {
                continue;
            };
            for &core in available.iter().filter(|core| range.contains(core)) {
                let has = decision.cores_of(job.id());
                let may_have = has < job.demand().max_cores;
                // The least cores of all jobs come first.
                let is_left = has < job.demand().min_cores
                    || decision.free().count() > missing(cores, decision);
                if decision.owner(core).is_none() && may_have && is_left {
                    decision.give(core, job.id())?;
                }
            }
        }
        decision.fit(cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_core_of_a_running_job_moves_and_waiting_jobs_come_in_order() {
        let (mut cores, mut parts) = (Cores::new(9), StaticEqual::new(4).unwrap());
        for id in 0..7 {
            cores
                .start(&mut parts, JobId(id), Demand::default())
                .unwrap();
            cores.decide(&mut parts, Event::Start(JobId(id))).unwrap();
        }
        assert_eq!(cores.counts(), [2, 2, 2, 3, 0, 0, 0]);
        cores.exit(JobId(1)).unwrap();
        let moves = cores
            .decide(&mut parts, Event::Exit(JobId(1)))
            .unwrap()
            .moves();
        assert!(
            moves.iter().all(|change| change.to == Some(JobId(4))),
            "{moves:?}"
        );
        assert_eq!(cores.counts(), [2, 2, 3, 2, 0, 0]);
    }

    #[test]
    fn a_job_whose_part_has_no_cores_any_more_takes_a_part_that_becomes_free_at_once() {
        let (mut cores, mut parts) = (Cores::new(4), StaticEqual::new(3).unwrap());
        for id in 0..3 {
            cores
                .start(&mut parts, JobId(id), Demand::default())
                .unwrap();
            cores.decide(&mut parts, Event::Start(JobId(id))).unwrap();
        }
        assert_eq!(cores.counts(), [1, 1, 2]);
        for core in [2, 3] {
            cores.set_available(core, false).unwrap();
        }
        cores.exit(JobId(0)).unwrap();
        cores.decide(&mut parts, Event::Exit(JobId(0))).unwrap();
        assert_eq!(cores.counts(), [1, 1]);
    }

    #[test]
    fn of_more_parts_than_any_machine_has_cores_each_is_a_core() {
        let (mut cores, mut parts) = (Cores::new(3), StaticEqual::new(usize::MAX).unwrap());
        for id in 0..4 {
            cores
                .start(&mut parts, JobId(id), Demand::default())
                .unwrap();
            cores.decide(&mut parts, Event::Start(JobId(id))).unwrap();
        }
        assert_eq!(cores.counts(), [1, 1, 1, 0]);
    }

    #[test]
    fn a_job_that_needs_more_than_a_part_is_refused() {
        let (mut cores, mut parts) = (Cores::new(9), StaticEqual::new(4).unwrap());
        let demand = Demand {
            min_cores: 3,
            ..Demand::default()
        };
        let refused = cores.start(&mut parts, JobId(0), demand);
        assert_eq!(refused, Err(Refusal::Cores { needed: 3, left: 2 }));
        assert!(StaticEqual::new(0).is_err());
    }
}
