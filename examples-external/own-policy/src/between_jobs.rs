//! Between jobs: few jobs at a time, the newest first.
//!
//! The cores are shared equally by the jobs that started last, at most `width` of them. A job that was pushed out
//! comes back when newer ones have ended. Under load, old jobs starve for the sake of new ones: this is an example of
//! a policy, not of a good one.

use urgency_policy::cores::{Claim, CorePolicy, Cores, Decision, DecisionError, Event, divide};

/// Equal parts for the newest jobs.
#[derive(Clone)]
pub struct NewestFew {
    width: usize,
}

impl NewestFew {
    /// For so many jobs at a time.
    pub fn new(width: usize) -> Self {
        NewestFew {
            width: width.max(1),
        }
    }
}

impl CorePolicy for NewestFew {
    fn decide(
        &mut self,
        _: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        let old = cores.jobs().len().saturating_sub(self.width);
        let claims: Vec<Claim> = cores
            .jobs()
            .iter()
            .enumerate()
            .map(|(number, job)| {
                let least = job.demand().min_cores;
                let most = if number < old {
                    least
                } else {
                    job.demand().max_cores
                };
                Claim {
                    weight: job.demand().weight,
                    least,
                    most,
                }
            })
            .collect();
        decision.give_counts(cores, &divide(cores.available().count(), &claims))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urgency_policy::cores::{Demand, JobId};

    #[test]
    fn the_newest_jobs_share_all_cores_and_an_old_one_comes_back() {
        let (mut cores, mut policy) = (Cores::new(8), NewestFew::new(2));
        for id in 1..=3 {
            cores
                .start(&mut policy, JobId(id), Demand::default())
                .unwrap();
            cores.decide(&mut policy, Event::Start(JobId(id))).unwrap();
        }
        assert_eq!(cores.counts(), [0, 4, 4]);
        cores.exit(JobId(3)).unwrap();
        cores.decide(&mut policy, Event::Exit(JobId(3))).unwrap();
        assert_eq!(cores.counts(), [4, 4]);
    }
}
