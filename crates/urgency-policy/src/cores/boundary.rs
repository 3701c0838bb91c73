//! Where a core leaves the job that it was taken from.
//!
//! A decision is made at once; carrying it out needs the worker on the core to stop somewhere. Where is the mechanism's
//! work and the policy's choice, because the baselines of the AMCilk paper differ in nothing else.

use super::{CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId, Refusal};

/// Where a core leaves its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// At the next scheduling point; its work is left to the job's other cores (section III-D).
    #[default]
    Point,
    /// When it has run out of work of its own and would steal: the implementation of DREP by its authors.
    Steal,
    /// When the job, or the iteration of a real-time task, ends: the implementation of elastic scheduling by its
    /// authors.
    Job,
}

/// Decides as another policy, and lets cores leave at another boundary.
///
/// ```
/// use urgency_policy::cores::{AtBoundary, Boundary, CorePolicy, Drep};
///
/// let baseline = AtBoundary::new(Drep::new(1), Boundary::Steal);
/// assert_eq!(baseline.boundary(), Boundary::Steal);
/// ```
#[derive(Clone, Debug)]
pub struct AtBoundary<P> {
    policy: P,
    boundary: Boundary,
}

impl<P: CorePolicy> AtBoundary<P> {
    /// This policy at this boundary.
    pub fn new(policy: P, boundary: Boundary) -> Self {
        AtBoundary { policy, boundary }
    }

    /// The policy that decides.
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: CorePolicy> CorePolicy for AtBoundary<P> {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.policy.decide(event, cores, decision)
    }

    fn admit(&mut self, id: JobId, demand: &Demand, cores: &Cores) -> Result<(), Refusal> {
        self.policy.admit(id, demand, cores)
    }

    fn refuses(&self) -> bool {
        self.policy.refuses()
    }

    fn period(&self, job: JobId, cores: &Cores) -> Option<u64> {
        self.policy.period(job, cores)
    }

    fn boundary(&self) -> Boundary {
        self.boundary
    }

    fn is_partitioned(&self) -> bool {
        self.policy.is_partitioned()
    }

    fn is_work_conserving(&self) -> bool {
        self.policy.is_work_conserving()
    }
}
