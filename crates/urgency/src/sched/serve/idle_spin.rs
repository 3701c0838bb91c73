//! How long a worker without work keeps searching before it goes idle.
//!
//! Spinning pays if work comes within about the cost of a wake-up (30 to 50 µs here), and is waste
//! otherwise. So the runtime remembers whether recent idle spans were that short: a saturating
//! counter, as in a branch predictor. It is the ski-rental rule with a memory.
//!
//! Spinning also takes a processor that another thread may want, for instance the client that is to send the next
//! request. So a worker of a program that serves a crowd of peers does not spin at all (`reactor/crowd.rs`). And a spin
//! is *lost* if the searcher was preempted, or found nothing in all of its time. After a lost spin no searcher spins
//! for the next short span. If the next spin is lost as well, it is two spans, and so on, up to
//! [`IdleSpin::MOST_LOST`]: until a spin finds work. (It was 64 each time. But what preempts a searcher now and then is
//! also the runtime's own thread in the poller, and 64 wake-ups cost more than one lost spin.) What the first look
//! finds, or a look after a pause of the search, no spin has found: the thread that made it may have had this
//! processor.

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
    const MOST_LOST: isize = 512;

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

    /// A searcher found work after `ticks`; whether by spinning.
    pub(crate) fn found_after(&self, ticks: u64, by_spinning: bool) {
        if by_spinning && self.are_short() && self.lost.load(Ordering::Relaxed) != 0 {
            self.lost.store(0, Ordering::Relaxed);
        }
        self.learn(ticks);
    }

    /// Whether recent spans were short.
    pub(crate) fn are_short(&self) -> bool {
        self.recent.load(Ordering::Relaxed) > 0
    }

    /// A searcher has searched for as long as it may.
    pub(crate) fn found_nothing(&self) {
        if self.are_short() {
            self.lose();
        }
    }

    /// A spin was lost.
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

    /// How many of `spans` short ones are spent spinning, if each spin ends in this way.
    fn spins(spans: usize, end: impl Fn(&IdleSpin, usize)) -> usize {
        let spin = IdleSpin::default();
        let mut spins = 0;
        for _ in 0..spans {
            if spin.are_short() {
                spins += 1;
                end(&spin, spins);
            } else {
                spin.learn(1);
            }
        }
        spins
    }

    fn finds(spin: &IdleSpin) {
        spin.found_after(1, true);
    }

    #[test]
    fn a_spin_that_is_lost_now_and_then_stops_few_others() {
        let spins = spins(1000, |spin, spins| match spins % 10 {
            0 => spin.lose(),
            _ => finds(spin),
        });
        assert!(spins > 750, "{spins}");
    }

    #[test]
    fn spins_that_are_always_lost_end() {
        let spins = spins(1000, |spin, _| spin.lose());
        assert!(spins < 25, "{spins}");
    }

    /// The peer needs the processor of the searcher: in most of the spans the kernel gives it to the peer before the
    /// first look, in some it does not.
    #[test]
    fn spins_that_find_nothing_end_though_first_looks_find_something() {
        let spins = spins(1000, |spin, spins| match spins % 5 {
            0 => spin.found_nothing(),
            _ => spin.found_after(1, false),
        });
        assert!(spins < 100, "{spins}");
    }
}
