//! Parallelism feedback: each job has the cores that it can use, as far as they go, in equal parts.

use super::{
    Claim, CorePolicy, Cores, Decision, DecisionError, Desire, Event, FeedbackParameters, Job,
    ParametersError, Part, learnt::Learnt,
};
use alloc::{vec, vec::Vec};

/// Equal parts of measured desires.
///
/// The AMCilk paper, section V-C: A-GREEDY in each job ([`Desire`], with the source's defects and what is done about
/// them), and dynamic equi-partitioning between the jobs. A job that desires less than an equal part gets what it
/// desires; the others have equal parts of the rest. Cores that nobody desires have no owner: that is what makes the
/// waste of a job the bound that A-GREEDY promises, and what [`Shares`](super::Shares) trades for readiness. A job that
/// rests keeps its desire: its next work may be as little parallel as the last, and until the end of an interval nobody
/// else has what it does not use.
///
/// A-GREEDY's bounds (time O(T1/P' + T∞ + L lg P), waste O(T1) over trimmed availability P') are cited and not
/// checked; that desires come within a factor of the parallelism is.
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, Event, Feedback, JobId, Usage};
///
/// let (mut cores, mut feedback) = (Cores::new(38), Feedback::default());
/// for id in [JobId(1), JobId(2)] {
///     cores.start(&mut feedback, id, Demand::default())?;
///     cores.decide(&mut feedback, Event::Start(id))?;
/// }
/// // For 4 ms both have 19 cores; the first one keeps only four of them at work.
/// for (id, busy) in [(JobId(1), 4), (JobId(2), 19)] {
///     let interval = 4_000_000;
///     let usage = Usage { interval, work: busy * interval, waste: (19 - busy) * interval, ..Usage::default() };
///     cores.measure(id, usage)?;
/// }
/// cores.set_now(4_000_000);
/// cores.decide(&mut feedback, Event::Timer)?;
/// assert_eq!(feedback.desire(JobId(1)), Some(26), "38 / 1.5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Feedback {
    learnt: Learnt,
}

impl Feedback {
    /// With these numbers.
    ///
    /// # Errors
    ///
    /// If one is out of its range.
    pub fn new(parameters: FeedbackParameters) -> Result<Self, ParametersError> {
        let learnt = Learnt::new(parameters)?;
        Ok(Feedback { learnt })
    }

    /// How many cores this job desires; `None` before the first decision about it.
    pub fn desire(&self, id: super::JobId) -> Option<usize> {
        self.learnt.desires.get(id).map(|desire| desire.cores())
    }
}

impl CorePolicy for Feedback {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.learnt.learn(event, cores, true);
        let claim = |(job, desire): (&Job, &Desire)| {
            let (least, most) = (job.demand().min_cores, job.demand().max_cores);
            Claim {
                weight: 1,
                least,
                most: desire.cores().clamp(least, most),
            }
        };
        let desires = self.learnt.desires.values();
        let claims: Vec<Claim> = cores.jobs().iter().zip(desires).map(claim).collect();
        let order = cores.by_urgency();
        let ordered: Vec<Claim> = order.iter().map(|&index| claims[index]).collect();
        let mut parts = vec![Part::default(); claims.len()];
        for (part, index) in Part::of(cores.available().count(), &ordered)
            .into_iter()
            .zip(order)
        {
            parts[index] = part;
        }
        let counts = self.learnt.counts(event, &parts, cores);
        self.learnt.give(&counts, cores, decision, 1)
    }

    fn refuses(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Demand, JobId, Usage};
    use super::*;

    #[test]
    fn an_interval_that_is_longer_than_there_is_time_is_never_over() {
        let parameters = FeedbackParameters {
            interval: u64::MAX,
            ..FeedbackParameters::default()
        };
        let (mut cores, mut feedback) = (Cores::new(2), Feedback::new(parameters).unwrap());
        cores.set_now(7);
        cores
            .start(&mut feedback, JobId(0), Demand::default())
            .unwrap();
        let decision = cores.decide(&mut feedback, Event::Start(JobId(0))).unwrap();
        assert_eq!(decision.timer(), Some(u64::MAX));
    }

    #[test]
    fn two_jobs_whose_parallelism_changes_get_what_they_can_use_within_a_few_intervals() {
        let (mut cores, mut feedback) = (Cores::new(38), Feedback::default());
        for id in [0, 1] {
            cores
                .start(&mut feedback, JobId(id), Demand::default())
                .unwrap();
            cores
                .decide(&mut feedback, Event::Start(JobId(id)))
                .unwrap();
        }
        let mut time = 0;
        for phase in 0..4 {
            let mut late = [0; 2];
            for interval in 0..20 {
                time += 4_000_000;
                for id in [0u64, 1] {
                    let had = cores.job(JobId(id)).unwrap().cores() as u64;
                    let high = (phase + id) % 2 == 0;
                    let busy = had.min(if high { 100 } else { 5 });
                    let (work, waste) = (busy * 4_000_000, (had - busy) * 4_000_000);
                    let usage = Usage {
                        interval: 4_000_000,
                        work,
                        waste,
                        ..Usage::default()
                    };
                    cores.measure(JobId(id), usage).unwrap();
                    if interval >= 8 {
                        late[id as usize] += had;
                    }
                }
                cores.set_now(time);
                cores.decide(&mut feedback, Event::Timer).unwrap();
            }
            let [high, low] = [late[phase as usize % 2], late[(phase as usize + 1) % 2]];
            assert!(
                high > 26 * 12 && low <= 10 * 12,
                "phase {phase}: {high} and {low} of 12 intervals"
            );
        }
    }
}
