//! How long a worker without work keeps searching before it goes idle.
//!
//! Spinning pays if work comes within about the cost of a wake-up (30 to 50 µs here), and is waste
//! otherwise. So the runtime remembers whether recent idle spans were that short: a saturating
//! counter, as in a branch predictor. It is the ski-rental rule with a memory.
//!
//! Spinning also takes a processor that another thread may want, for instance the client that is to send the next
//! request. So a worker of a program that serves a crowd of peers does not spin at all (`reactor/crowd.rs`). And a
//! searcher that was preempted knows this, and then no searcher spins for the next [`IdleSpin::LOST`] short
//! spans.

use crate::sys::clock;
use crate::sys::primitives::atomic::{AtomicIsize, Ordering};

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct IdleSpin(AtomicIsize);

impl IdleSpin {
    /// An idle span shorter than this was worth waiting for, in nanoseconds.
    const WORTH: f64 = 60_000.0;
    /// How long to search if recent spans were short, in nanoseconds.
    const LONG: f64 = 40_000.0;
    /// How long to search if they were long.
    const SHORT: f64 = 3_000.0;
    const MOST: isize = 3;
    const LOST: isize = 64;

    /// An idle span of `ticks` ended.
    pub(crate) fn learn(&self, ticks: u64) {
        let short = ticks < clock::ticks(Self::WORTH);
        let old = self.0.load(Ordering::Relaxed);
        let new = match (short, old) {
            (true, _) => (old + 1).min(Self::MOST),
            (false, 1..) => old - 1,
            (false, _) => old,
        };
        if new != old {
            self.0.store(new, Ordering::Relaxed);
        }
    }

    /// Whether recent spans were short.
    pub(crate) fn are_short(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// A searcher was preempted.
    pub(crate) fn lose(&self) {
        self.0.store(-Self::LOST, Ordering::Relaxed);
    }

    /// How many ticks to search.
    pub(crate) fn ticks(&self) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            1.. => clock::ticks(Self::LONG),
            0 => clock::ticks(Self::SHORT),
            _ => 0,
        }
    }
}
