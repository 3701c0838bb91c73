//! How long a worker without work keeps searching before it goes idle.
//!
//! Spinning pays if work comes within about the cost of a wake-up (30 to 50 µs here), and is waste
//! otherwise. So the runtime remembers whether recent idle spans were that short: a saturating
//! counter, as in a branch predictor. It is the ski-rental rule with a memory.
//!
//! Spinning also takes a processor that another thread may want, for instance the client that is to send the next
//! request. So a worker of a program that serves a crowd of peers does not spin at all (`reactor/crowd.rs`). And after
//! a searcher was preempted, no searcher spins for the next short span. If the next spin is lost as well, it is two
//! spans, and so on, up to [`IdleSpin::MOST_LOST`]: until a spin finds work. (It was 64 each time. But what preempts a
//! searcher now and then is also the runtime's own thread in the poller, and 64 wake-ups cost more than one lost spin.)

use crate::sys::clock;
use crate::sys::primitives::atomic::{AtomicIsize, Ordering};

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct IdleSpin {
    /// Above 0: recent spans were short. Below 0: no searcher spins for so many short spans.
    recent: AtomicIsize,
    /// For how many spans the last lost spin stopped the others.
    lost: AtomicIsize,
}

impl IdleSpin {
    /// An idle span shorter than this was worth waiting for, in nanoseconds.
    const WORTH: f64 = 60_000.0;
    /// How long to search if recent spans were short, in nanoseconds.
    const LONG: f64 = 40_000.0;
    /// How long to search if they were long.
    const SHORT: f64 = 3_000.0;
    const MOST: isize = 3;
    const MOST_LOST: isize = 64;

    /// An idle span of `ticks` ended.
    pub(crate) fn learn(&self, ticks: u64) {
        let short = ticks < clock::ticks(Self::WORTH);
        let old = self.recent.load(Ordering::Relaxed);
        let new = match (short, old) {
            (true, _) => (old + 1).min(Self::MOST),
            (false, 1..) => old - 1,
            (false, _) => old,
        };
        if new != old {
            self.recent.store(new, Ordering::Relaxed);
        }
    }

    /// A searcher found work after `ticks`.
    pub(crate) fn found_after(&self, ticks: u64) {
        if self.are_short() && self.lost.load(Ordering::Relaxed) != 0 {
            self.lost.store(0, Ordering::Relaxed);
        }
        self.learn(ticks);
    }

    /// Whether recent spans were short.
    pub(crate) fn are_short(&self) -> bool {
        self.recent.load(Ordering::Relaxed) > 0
    }

    /// A searcher was preempted.
    pub(crate) fn lose(&self) {
        let lost = (self.lost.load(Ordering::Relaxed) * 2).clamp(1, Self::MOST_LOST);
        self.lost.store(lost, Ordering::Relaxed);
        self.recent.store(-lost, Ordering::Relaxed);
    }

    /// How many ticks to search.
    pub(crate) fn ticks(&self) -> u64 {
        match self.recent.load(Ordering::Relaxed) {
            1.. => clock::ticks(Self::LONG),
            0 => clock::ticks(Self::SHORT),
            _ => 0,
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    /// How many of `spans` short ones are spent spinning, where each `lost_every`th spin is lost.
    fn spins(spans: usize, lost_every: usize) -> usize {
        let spin = IdleSpin::default();
        let mut spins = 0;
        for _ in 0..spans {
            if !spin.are_short() {
                spin.learn(1);
                continue;
            }
            spins += 1;
            if spins % lost_every == 0 {
                spin.lose();
            } else {
                spin.found_after(1);
            }
        }
        spins
    }

    #[test]
    fn a_spin_that_is_lost_now_and_then_stops_few_others() {
        assert!(spins(1000, 10) > 750, "{}", spins(1000, 10));
    }

    #[test]
    fn spins_that_are_always_lost_end() {
        assert!(spins(1000, 1) < 25, "{}", spins(1000, 1));
    }
}
