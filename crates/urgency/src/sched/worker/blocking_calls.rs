//! How long the declared blocking calls on a worker last: whether the next one is worth giving the worker away.
//!
//! To give a worker away and to get one back is two thread switches, some 20 µs. A call that is over sooner, such as a
//! read of what the kernel has in memory, does better to keep it. Nobody knows that before the call. A call that keeps
//! the worker takes it from others for as long as it lasts, or until relief frees it after a millisecond or two. So a
//! call keeps its worker if the calls before it have cost less, on average, than the two switches.
//!
//! A call that has kept the worker moves the mean beyond that until it ends: of many that begin to block at once only
//! the first keeps the worker.
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
    /// Whether the call that begins is to keep the worker.
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        let (mean, switches) = (self.0.load(Relaxed), clock::ticks(SWITCHES));
        let keeps = mean != 0 && mean < switches;
        if keeps {
            self.0.store(mean + switches, Relaxed);
        }
        keeps
    }

    /// A call, which kept the worker or did not, took so many ticks.
    pub(crate) fn lasted(&self, kept: bool, ticks: u64) {
        let switches = clock::ticks(SWITCHES);
        let mean = match self.0.load(Relaxed) {
            0 => 2 * switches,
            mean if kept => mean.saturating_sub(switches),
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

    const BRIEF: f64 = 0.2 * SWITCHES;

    /// Whether a call of so many nanoseconds keeps its worker.
    fn keeps(calls: &BlockingCalls, length: f64) -> bool {
        let keeps = calls.begin();
        calls.lasted(keeps, clock::ticks(length));
        keeps
    }

    fn after_brief_ones() -> BlockingCalls {
        let calls = BlockingCalls::default();
        (0..10 * MANY).for_each(|_| _ = keeps(&calls, BRIEF));
        calls
    }

    #[test]
    fn calls_keep_the_worker_after_many_brief_ones_and_not_after_some_that_last() {
        let calls = BlockingCalls::default();
        for _ in 0..3 {
            let first = (0..10 * MANY).find(|_| keeps(&calls, BRIEF));
            assert!(first > Some(MANY / 3), "{first:?}");
            let last = (0..10).filter(|_| keeps(&calls, 2.0 * MOST));
            assert!((1..5).contains(&last.count()));
        }
    }

    /// The kernel lets a thread wait for its processor now and then.
    #[test]
    fn calls_keep_the_worker_where_few_last() {
        let calls = after_brief_ones();
        for _ in 0..10 {
            assert!(keeps(&calls, MOST));
            (0..2 * MANY).for_each(|_| assert!(keeps(&calls, BRIEF)));
        }
    }

    #[test]
    fn calls_that_take_longer_than_the_switches_give_the_worker_away() {
        let calls = BlockingCalls::default();
        assert!((0..10 * MANY).all(|_| !keeps(&calls, 1.1 * SWITCHES)));
    }

    #[test]
    fn no_call_keeps_the_worker_beside_one_that_kept_it_and_has_not_ended() {
        let calls = after_brief_ones();
        assert!(calls.begin());
        assert!((0..10).all(|_| !calls.begin()));
    }
}
