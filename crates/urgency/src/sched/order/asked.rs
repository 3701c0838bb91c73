//! One worker's policy of an order within a level, as the queues ask it.
//!
//! A policy may be a user's. Its answers are made to fit the level's structures by `urgency_policy::pool::Fitted`, so
//! that the queues need no more checks. Here it cannot harm the code that asks:
//!
//! - a policy that panics is not asked again, and each of its answers is one that does not exist. The panic has been
//!   printed by then. It goes no further, whatever the drop of its payload does: the calling code is the scheduler's.
//!   Nor does the panic of a policy's own drop;
//! - a policy that waits or forks panics by that (`policy_code.rs`, rule 2).

use crate::{
    sched::policy_code::{as_policy, drop_policy},
    tasks::discard_payload,
};
use urgency_policy::pool::{Arrival, Chooser, Left, Place, PoolPolicy, Shed, Sight, Source};

/// See the module's text. `None`: it has panicked.
pub(super) struct Asked(Option<Box<dyn PoolPolicy + Send>>);

impl Asked {
    pub(super) fn new(policy: Box<dyn PoolPolicy + Send>) -> Self {
        Asked(Some(policy))
    }

    fn ask<T>(&mut self, question: impl FnOnce(&mut (dyn PoolPolicy + Send)) -> T) -> Option<T> {
        let policy = self.0.as_mut()?;
        let answer = as_policy(|| question(&mut **policy));
        let answer = answer.map_err(|payload| {
            // Broken off in the middle, it is not even dropped.
            std::mem::forget(self.0.take());
            discard_payload(payload);
        });
        answer.ok()
    }
}

impl PoolPolicy for Asked {
    fn place(&mut self, arrival: Arrival, own: usize) -> Place {
        let place = self.ask(|policy| policy.place(arrival, own));
        place.unwrap_or(Place::Dropped)
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        let source = self.ask(|policy| policy.take_from(sight));
        source.unwrap_or(Source::Nowhere)
    }

    fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        let nth = self.ask(|policy| policy.choose(deques, chooser));
        nth.unwrap_or(0)
    }

    fn after_steal(&mut self, left: Left) -> Place {
        let place = self.ask(|policy| policy.after_steal(left));
        place.unwrap_or(Place::Dropped)
    }

    fn shed(&mut self, own: usize) -> Shed {
        let shed = self.ask(|policy| policy.shed(own));
        shed.unwrap_or(Shed::Keep)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        drop_policy(self.0.take());
    }
}

debug_struct!(Asked, |it| has_panicked: it.0.is_none());
