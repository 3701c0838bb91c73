//! How long the declared blocking calls on a worker last: whether the next one is worth giving the worker away.
//!
//! To give a worker away and to get one back is two thread switches, some 20 µs. A call that is over sooner, such as a
//! read of what the kernel has in memory, does better to keep it. Nobody knows that before the call. A call that keeps
//! the worker takes it from others for as long as it lasts, or until relief frees it after a millisecond or two. So a
//! call keeps its worker if the calls before it have cost less, on average, than the two switches.
//!
//! The word is a hint. The stack that holds the worker writes it; after a revoking two may.

use crate::sys::{
    clock,
    primitives::atomic::{AtomicU64, Ordering::Relaxed},
};

/// What it costs to give a worker away and to get one back, in nanoseconds.
const SWITCHES: f64 = 20_000.0;

/// What a call costs at most that keeps its worker and does not end, in nanoseconds: then relief has freed the worker.
const MOST: f64 = 1_500_000.0;

/// The mean is of about so many calls.
const MANY: u64 = 256;

/// The mean of what the last calls took, in ticks; 0 stands for twice the cost of the switches. See the module's text.
#[derive(Debug, Default)]
pub(crate) struct BlockingCalls(AtomicU64);

impl BlockingCalls {
    /// Whether the next call is to keep the worker.
    #[inline]
    pub(crate) fn are_brief(&self) -> bool {
        let mean = self.0.load(Relaxed);
        mean != 0 && mean < clock::ticks(SWITCHES)
    }

    /// A call took so many ticks.
    pub(crate) fn lasted(&self, ticks: u64) {
        let mean = match self.0.load(Relaxed) {
            0 => clock::ticks(2.0 * SWITCHES),
            mean => mean,
        };
        let ticks = ticks.min(clock::ticks(MOST));
        let mean = mean - mean / MANY + ticks / MANY;
        self.0.store(mean.max(1), Relaxed);
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    fn brief() -> u64 {
        clock::ticks(0.2 * SWITCHES)
    }

    #[test]
    fn calls_keep_the_worker_after_many_brief_ones_and_not_after_some_that_last() {
        let calls = BlockingCalls::default();
        for _ in 0..3 {
            let first = (0..10 * MANY).position(|_| {
                calls.lasted(brief());
                calls.are_brief()
            });
            assert!(
                first.is_some_and(|first| first as u64 > MANY / 2),
                "{first:?}"
            );
            (0..3).for_each(|_| calls.lasted(u64::MAX));
            assert!(!calls.are_brief());
        }
    }

    /// The kernel lets a thread wait for its processor now and then.
    #[test]
    fn calls_keep_the_worker_where_few_last() {
        let calls = BlockingCalls::default();
        (0..10 * MANY).for_each(|_| calls.lasted(brief()));
        for _ in 0..10 {
            calls.lasted(clock::ticks(MOST));
            assert!(calls.are_brief());
            (0..2 * MANY).for_each(|_| calls.lasted(brief()));
        }
    }

    #[test]
    fn calls_of_the_length_of_a_switch_give_the_worker_away() {
        let calls = BlockingCalls::default();
        (0..10 * MANY).for_each(|_| calls.lasted(clock::ticks(1.1 * SWITCHES)));
        assert!(!calls.are_brief());
    }
}
