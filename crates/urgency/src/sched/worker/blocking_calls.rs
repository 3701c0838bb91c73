//! How long the declared blocking calls on a worker have lasted: whether the next one is worth giving the worker away.
//!
//! To give a worker away and to get one back is two thread switches, some 10 µs. A call that is over sooner, such as a
//! read of what the kernel has in memory, does better to keep it. Nobody knows that before the call. If it keeps the
//! worker and does block, relief frees the worker after a millisecond or two. So one wrong guess costs about as much
//! as [`RARE`] calls that give their worker away, and a call keeps its worker only if fewer than one of so many lasts.
//!
//! The word is a hint. The stack that holds the worker writes it; after a revoking two may.

use crate::sys::{
    clock,
    primitives::atomic::{AtomicU32, Ordering::Relaxed},
};

/// A call that takes longer, in nanoseconds, costs no more if its worker is given away.
const BRIEF: f64 = 10_000.0;

/// How many brief calls weigh as much as one that lasts.
const RARE: u32 = 256;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct BlockingCalls(AtomicU32);

impl BlockingCalls {
    /// Whether the next call is to keep the worker.
    #[inline]
    pub(crate) fn are_brief(&self) -> bool {
        self.0.load(Relaxed) >= RARE
    }

    /// A call took so many ticks.
    pub(crate) fn lasted(&self, ticks: u64) {
        let before = self.0.load(Relaxed);
        let now = if ticks <= clock::ticks(BRIEF) {
            (before + 1).min(2 * RARE - 1)
        } else {
            before.saturating_sub(RARE)
        };
        self.0.store(now, Relaxed);
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn calls_keep_the_worker_after_many_brief_ones_and_not_after_one_that_lasts() {
        let calls = BlockingCalls::default();
        let lasts = clock::ticks(2.0 * BRIEF);
        for _ in 0..3 {
            for _ in 0..RARE {
                assert!(!calls.are_brief());
                calls.lasted(0);
            }
            assert!(calls.are_brief());
            calls.lasted(lasts);
            assert!(!calls.are_brief());
            calls.lasted(lasts);
        }
    }

    /// The kernel lets a thread wait for its processor now and then.
    #[test]
    fn after_long_calls_that_are_rare_calls_keep_the_worker_again_soon() {
        let calls = BlockingCalls::default();
        (0..10 * RARE).for_each(|_| calls.lasted(0));
        calls.lasted(clock::ticks(2.0 * BRIEF));
        assert!(!calls.are_brief());
        calls.lasted(0);
        assert!(calls.are_brief());
    }
}
