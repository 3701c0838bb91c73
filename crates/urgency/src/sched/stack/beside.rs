//! What a thread runs beside its job's workers, since a decision about cores gave its worker to another job in the
//! middle of a piece of work.
//!
//! The kernel goes on with the thread. So the job has that time beyond what its workers have, and the policy must know
//! it ([`Usage::beside`](urgency_policy::cores::Usage::beside)). Times are the thread's processor time, in nanoseconds.
//! What is longer than a piece of work can be is an endless loop: no more is charged for it, or all other work of its
//! job would wait as long as it runs.
//!
//! The decision begins and takes, and the stack's own thread ends it at its next scheduling point. Both may take at the
//! same moment: each gets what the other one has not.

use crate::sys::primitives::atomic::{AtomicU64, Ordering};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Beside {
    /// The processor time at which the thread lost its worker to another job; [`NEVER`] if it did not.
    began: AtomicU64,
    /// How much of the time since then was taken.
    taken: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Beside {
    pub(crate) fn new() -> Self {
        Beside {
            began: AtomicU64::new(NEVER),
            taken: AtomicU64::new(0),
        }
    }

    /// The thread, which has run for `time`, is about to lose its worker. A time that began before goes on.
    pub(crate) fn begin(&self, time: u64) {
        if !self.has_begun() {
            self.taken.store(0, Ordering::Relaxed);
            self.began.store(time, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.began.load(Ordering::Relaxed) != NEVER
    }

    /// What the thread, which has run for `time`, ran beside the workers since this was last taken; `most` in all.
    pub(crate) fn take(&self, time: u64, most: u64) -> u64 {
        self.take_since(self.began.load(Ordering::Relaxed), time, most)
    }

    /// As [`Beside::take`], for the last time: the thread has come to a scheduling point.
    pub(crate) fn end(&self, time: u64, most: u64) -> u64 {
        self.take_since(self.began.swap(NEVER, Ordering::Relaxed), time, most)
    }

    fn take_since(&self, began: u64, time: u64, most: u64) -> u64 {
        let all = time.saturating_sub(began).min(most);
        let taken = self.taken.fetch_max(all, Ordering::Relaxed);
        all.saturating_sub(taken)
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_nanosecond_beside_the_workers_is_taken_once_and_no_more_than_the_most() {
        let beside = Beside::new();
        assert_eq!((beside.take(5, 100), beside.end(9, 100)), (0, 0));
        beside.begin(10);
        assert_eq!((beside.take(15, 100), beside.take(15, 100)), (5, 0));
        beside.begin(20);
        assert_eq!((beside.take(40, 100), beside.end(50, 100)), (25, 10));
        assert_eq!((beside.take(60, 100), beside.end(70, 100)), (0, 0));
        beside.begin(100);
        assert_eq!((beside.take(190, 100), beside.end(300, 100)), (90, 10));
    }
}
