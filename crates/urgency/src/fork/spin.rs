//! How long a stack that waits for forks which others run spins before it suspends.
//!
//! To suspend costs a hand-off and a wake-up, and the wait is often shorter: what it waits for runs already. So the
//! stack spins for as long as the alternative costs, which is never more than twice the best (ski rental). If work as
//! urgent as its own waits for its worker, the alternative is a hand-off to that work, and costs less.

use crate::{sched::stack::Me, sys::clock};
use std::hint;

/// In nanoseconds: about what a wake-up costs.
const SPIN: f64 = 30_000.0;
/// The same if work as urgent as its own is waiting for its worker: about what a hand-off costs.
const SPIN_IF_WANTED: f64 = 3_000.0;

/// See the module's text.
pub(super) struct Spin {
    since: u64,
}

impl Spin {
    pub(super) fn new() -> Self {
        Spin {
            since: clock::now(),
        }
    }

    /// Spins for a moment. `false`: it has spun for long enough.
    #[inline]
    pub(super) fn goes_on(&mut self, me: Me<'_>) -> bool {
        let spun = clock::now().saturating_sub(self.since);
        let is_over = spun > clock::ticks(SPIN)
            || spun > clock::ticks(SPIN_IF_WANTED) && me.runtime().is_wanted_elsewhere(me);
        hint::spin_loop();
        !is_over
    }
}
