//! How many cores a job can use, learnt from how it used the cores it had: A-GREEDY.

use super::{ParametersError, Usage};

/// The numbers of the feedback.
///
/// AMCilk's source has an interval of 4 ms, a bound of 0.95 (0.8 to 0.95 in its notes) and a factor of 2 (1.2 to 2).
/// The defaults are from the simulator (`urgency sim jobs`, 38 cores, the paper's costs). The paper's two jobs take
/// 1.82 s under [`Feedback`](super::Feedback) with 2 ms, 0.7 and 1.5, 1.95 s with 4 ms, and 1.84 s with 4 ms, 0.8 and
/// 2; the mean flow time under [`Shares`](super::Shares) at a load of 75 % is 67.8, 67.5 and 70.2 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackParameters {
    /// The time between two looks in nanoseconds; 2 ms by default.
    pub interval: u64,
    /// Which part of its time a core must work, above 0 and at most 1; 0.7 by default.
    pub utilisation: f64,
    /// By how much a desire grows and shrinks, above 1; 1.5 by default.
    pub growth: f64,
}

impl Default for FeedbackParameters {
    fn default() -> Self {
        FeedbackParameters {
            interval: 2_000_000,
            utilisation: 0.7,
            growth: 1.5,
        }
    }
}

impl FeedbackParameters {
    /// Whether they are in their ranges.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub fn check(&self) -> Result<(), ParametersError> {
        if self.interval == 0 {
            return Err(ParametersError::Interval);
        }
        if !(self.utilisation > 0.0 && self.utilisation <= 1.0) {
            return Err(ParametersError::Utilisation(self.utilisation));
        }
        if !(self.growth > 1.0 && self.growth.is_finite()) {
            return Err(ParametersError::Growth(self.growth));
        }
        Ok(())
    }
}

/// How many cores a job desires.
///
/// The AMCilk paper (section V-C) adapts cores to "an estimate of the job's dynamic parallelism" after Agrawal, He,
/// Hsu and Leiserson ("Adaptive scheduling with parallelism feedback", PPoPP 2006). A job has a *desire*. At the end
/// of each interval:
///
/// 1. **inefficient**: its cores worked for less than the utilisation bound of the time: the desire shrinks by the
///    growth factor;
/// 2. **efficient and satisfied**: the cores worked, and the job had all that it desired: the desire grows by the
///    factor;
/// 3. **efficient and deprived**: the cores worked, and the job had fewer than it desired: the desire stays.
///
/// # What AMCilk's source does otherwise, and why not here
///
/// - It sums the time of *all* cores of the machine, also of cores that the job does not have. They do not steal for
///   it, so they count as work, and a job with few cores is never found inefficient. Here the time is summed over
///   the job's own cores.
/// - It takes the allotment of the moment when the interval ends. A job that lost cores shortly before then counts as
///   deprived, and a job that got some counts as satisfied, by cores that it has not used: an unsatisfied job's desire
///   cannot rise although the job used all cores that it had. Here the allotment is the mean over the interval.
/// - It aborts if a job has more than it desires. Here that is usual, since spare cores go to some job: a job is judged
///   by the cores that it desired, so that spare cores make it neither inefficient nor satisfied.
///
/// ```
/// use urgency_policy::cores::{Desire, FeedbackParameters, Usage};
///
/// let parameters = FeedbackParameters::default();
/// let mut desire = Desire::new(8);
/// // Eight cores for 4 ms, of which three worked:
/// let usage = Usage { interval: 4_000_000, work: 12_000_000, waste: 20_000_000, ..Usage::default() };
/// desire.learn(usage, &parameters, 8);
/// assert_eq!(desire.cores(), 6, "8 / 1.5");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Desire {
    cores: f64,
}

impl Desire {
    /// A desire of so many cores, 1 at least.
    pub fn new(cores: usize) -> Self {
        Desire {
            cores: cores.max(1) as f64,
        }
    }

    /// The desire in whole cores, rounded up.
    pub fn cores(self) -> usize {
        let whole = self.cores as usize;
        whole + usize::from((whole as f64) < self.cores)
    }

    /// An interval is over. The desire stays between 1 and `most`.
    pub fn learn(&mut self, usage: Usage, parameters: &FeedbackParameters, most: usize) {
        let had = usage.cores();
        // Less than a core for an hundredth of the interval says nothing.
        if had < 0.01 {
            return;
        }
        let desired = self.cores() as f64;
        let judged = had.min(desired);
        let needed = parameters.utilisation * judged * usage.interval as f64;
        if (usage.work as f64) < needed {
            self.cores /= parameters.growth;
        } else if had > desired - 0.5 {
            self.cores *= parameters.growth;
        }
        self.cores = self.cores.clamp(1.0, most.max(1) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const DOUBLING: FeedbackParameters = FeedbackParameters {
        interval: 4_000_000,
        utilisation: 0.8,
        growth: 2.0,
    };

    /// An interval on `had` cores of a job that can use `parallelism`.
    fn interval(had: usize, parallelism: usize) -> Usage {
        let (length, work) = (4_000_000, had.min(parallelism) as u64);
        Usage {
            interval: length,
            work: work * length,
            waste: (had as u64 - work) * length,
            ..Usage::default()
        }
    }

    #[test]
    fn a_desire_follows_the_parallelism_up_and_down_in_steps_of_the_factor() {
        let (parameters, mut desire) = (DOUBLING, Desire::new(38));
        let mut steps = |parallelism| {
            (0..6)
                .map(|_| {
                    desire.learn(interval(desire.cores(), parallelism), &parameters, 38);
                    desire.cores()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(steps(5), [19, 10, 5, 10, 5, 10]);
        assert_eq!(steps(38), [19, 38, 38, 38, 38, 38]);
    }

    #[test]
    fn a_deprived_job_that_uses_what_it_has_keeps_its_desire() {
        let mut desire = Desire::new(16);
        desire.learn(interval(4, 20), &DOUBLING, 38);
        assert_eq!(desire.cores(), 16);
    }

    #[test]
    fn a_job_with_few_cores_on_a_large_machine_is_found_inefficient() {
        // AMCilk's source divides the waste by the time of all 38 cores: (38 - 3) / 38 is efficient.
        let mut desire = Desire::new(4);
        desire.learn(interval(4, 1), &DOUBLING, 38);
        assert_eq!(desire.cores(), 2);
    }

    #[test]
    fn spare_cores_that_stand_idle_do_not_lower_a_desire_and_cores_that_work_do_not_raise_it_beyond()
     {
        let parameters = DOUBLING;
        let mut desire = Desire::new(4);
        desire.learn(interval(38, 5), &parameters, 38);
        assert_eq!(desire.cores(), 8, "the four that it desired worked");
        desire.learn(interval(38, 5), &parameters, 38);
        assert_eq!(desire.cores(), 4, "of the eight three stood idle");
    }

    #[test]
    fn an_interval_without_cores_says_nothing() {
        let mut desire = Desire::new(7);
        desire.learn(interval(0, 5), &DOUBLING, 38);
        desire.learn(Usage::default(), &DOUBLING, 38);
        assert_eq!(desire.cores(), 7);
    }

    proptest! {
        #[test]
        fn a_desire_that_is_granted_ends_within_a_factor_of_the_parallelism(
            parallelism in 1usize..64,
            start in 1usize..64,
        ) {
            let (parameters, mut desire) = (DOUBLING, Desire::new(start));
            for _ in 0..20 {
                desire.learn(interval(desire.cores(), parallelism), &parameters, 64);
            }
            let (cores, p) = (desire.cores() as f64, parallelism as f64);
            prop_assert!(cores >= p / 2.0 && cores <= (p * 2.0 / 0.8 + 1.0).min(64.0), "{cores} for {p}");
        }
    }
}
