//! What a policy with feedback keeps from one decision to the next: the jobs' desires, their credits, and when the
//! interval ends.

use super::{
    Claim, Cores, Decision, DecisionError, Desire, Event, FeedbackParameters, ParametersError,
    Part, PerJob, credit::Credits,
};
use alloc::vec::Vec;

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(super) struct Learnt {
    parameters: FeedbackParameters,
    pub(super) desires: PerJob<Desire>,
    credits: Credits,
    /// When the interval ends.
    due: u64,
}

impl Learnt {
    pub(super) fn new(parameters: FeedbackParameters) -> Result<Self, ParametersError> {
        parameters.check()?;
        Ok(Learnt {
            parameters,
            ..Learnt::default()
        })
    }

    /// A decision begins: credits are settled, and at the end of an interval the desires learn. A job that comes back
    /// `keeps` the desire that it had before it rested, or begins anew.
    pub(super) fn learn(&mut self, event: Event, cores: &Cores, keeps: bool) {
        let all = cores.count();
        self.desires.keep_up_with(cores, |_, kept| {
            let kept = kept.filter(|_| keeps);
            kept.unwrap_or(Desire::new(all))
        });
        self.credits.settle(cores);
        if event == Event::Timer {
            self.credits.charge(cores);
            for (desire, job) in self.desires.values_mut().zip(cores.jobs()) {
                desire.learn(job.usage(), &self.parameters, all);
            }
        }
    }

    /// Each job has its part, in turns where that is no whole number.
    pub(super) fn counts(&mut self, event: Event, parts: &[Part], cores: &Cores) -> Vec<usize> {
        let interval = self.parameters.interval;
        self.credits.round(event, parts, cores, interval)
    }

    /// Jobs that were quiet have more than their parts.
    pub(super) fn burst(&mut self, counts: &mut [usize], claims: &[Claim], cores: &Cores) {
        let left = self.due_after(cores.now()) - cores.now();
        self.credits.burst(counts, claims, cores, left);
    }

    /// It ends: each job has so many cores. The policy is asked again at the end of the interval if there are so many
    /// jobs.
    pub(super) fn give(
        &mut self,
        counts: &[usize],
        cores: &Cores,
        decision: &mut Decision,
        timed_from: usize,
    ) -> Result<(), DecisionError> {
        decision.give_counts(cores, counts)?;
        if cores.jobs().len() >= timed_from {
            self.due = self.due_after(cores.now());
            decision.set_timer(self.due)?;
        }
        Ok(())
    }

    /// When the interval ends that goes on at this time, or begins.
    fn due_after(&self, now: u64) -> u64 {
        match self.due > now {
            true => self.due,
            false => now.saturating_add(self.parameters.interval),
        }
    }
}
