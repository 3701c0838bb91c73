//! No partition: every core serves every job.

use super::{CorePolicy, Cores, Decision, DecisionError, Event};

/// Nothing is decided.
///
/// The AMCilk paper's first baseline (section V-C): the jobs share the machine and nobody decides anything. Which job
/// a core runs next is the mechanism's affair; bounds and weights mean nothing.
///
/// ```
/// use urgency_policy::cores::{CorePolicy, Unpartitioned};
///
/// assert!(!Unpartitioned.is_partitioned());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpartitioned;

impl CorePolicy for Unpartitioned {
    fn decide(&mut self, _: Event, _: &Cores, _: &mut Decision) -> Result<(), DecisionError> {
        Ok(())
    }

    fn is_partitioned(&self) -> bool {
        false
    }

    fn refuses(&self) -> bool {
        false
    }
}
