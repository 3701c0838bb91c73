//! The paper's pair of a job with data and one that streams, as a core policy.

use urgency_policy::cores::{CorePolicy, Cores, Decision, DecisionError, Event};

/// The cache ways of the job that started last.
pub const NEW_WAYS: u64 = 0x7f0;
/// The cache ways of the others.
pub const OLD_WAYS: u64 = 0x00f;

/// The job that started last has the upper ways and all cores but one. The oldest has that one. The others have the
/// lower ways and a tenth of the bandwidth. The newest job's bandwidth stays as it was told before.
pub struct NewestFirst;

impl CorePolicy for NewestFirst {
    fn decide(
        &mut self,
        _: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        let Some((newest, others)) = cores.jobs().split_last() else {
            return Ok(());
        };
        for core in cores.available() {
            let oldest = others.first().filter(|_| core == 0);
            decision.give(core, oldest.unwrap_or(newest).id())?;
        }
        decision.set_cache_ways(newest.id(), NEW_WAYS)?;
        others.iter().try_for_each(|job| {
            decision.set_cache_ways(job.id(), OLD_WAYS)?;
            decision.set_bandwidth(job.id(), 10)
        })
    }
}
