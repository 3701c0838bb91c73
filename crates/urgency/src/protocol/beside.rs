//! What a thread runs beside its job's workers, since a decision about cores gave its worker to another job in the
//! middle of a piece of work.
//!
//! The kernel goes on with the thread. So the job has that time beyond what its workers have, and the policy must know
//! it ([`Usage::beside`](urgency_policy::cores::Usage::beside)). Times are the thread's processor time, in nanoseconds.
//! What is longer than a piece of work can be is an endless loop: no more is charged for it, or all other work of its
//! job would wait as long as it runs.
//!
//! # Protocol
//!
//! One word says until when the thread's time is charged, or that the thread runs beside no workers.
//!
//! - A thread that is about to revoke the worker *begins*: it writes the last time that is charged, then the word.
//! - A thread that decides *takes* what has run meanwhile: it moves the word on by a compare-and-swap, after it has
//!   read the thread's processor time.
//! - The stack's own thread *ends* it at its next scheduling point, by a swap. So does a thread whose revoking failed.
//!
//! # Invariants
//!
//! 1. Each nanosecond is charged once: what moves the word on, or takes it away, charges from its old value.
//! 2. What is charged of a piece is its whole time, up to the most.
//!
//! # Race
//!
//! *A late take against the next piece.* A thread reads the word and waits. The piece ends, and the next one begins.
//! Its swap fails, unless both words are the same; then it has read a processor time of before, and charges nothing.
//! (There were two words, when a piece began and what was taken of it. The late thread charged up to the most once
//! more.)
//!
//! The model fails with a take that swaps whatever the word is, and with an end that loads and stores.

use crate::sys::{
    chaos,
    primitives::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Beside {
    /// The processor time of the thread up to which its time beside the workers is charged; [`NEVER`] if it has its
    /// worker, or lost it otherwise.
    charged: AtomicU64,
    /// The processor time beyond which nothing of the piece is charged. It is written before `charged`.
    last: AtomicU64,
    /// The processor time of the thread when it first lost a worker in this piece of work. A hint.
    begun: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Beside {
    pub(crate) fn new() -> Self {
        Beside {
            charged: AtomicU64::new(NEVER),
            last: AtomicU64::new(0),
            begun: AtomicU64::new(NEVER),
        }
    }

    /// The thread, which has run for `time`, is about to lose its worker. Of this piece of work `most` is charged at
    /// most. A time that began before goes on.
    pub(crate) fn begin(&self, time: u64, most: u64) {
        if !self.has_begun() {
            self.last.store(time.saturating_add(most), Relaxed);
            chaos::delay();
            let _ = self.begun.compare_exchange(NEVER, time, Relaxed, Relaxed);
            let _ = self.charged.compare_exchange(NEVER, time, Release, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.charged.load(Relaxed) != NEVER
    }

    /// The thread's processor time when it first lost a worker in this piece of work. By the stack's own thread at the
    /// end of the piece, once; `None` if it has lost none.
    pub(crate) fn take_begun(&self) -> Option<u64> {
        let begun = self.begun.swap(NEVER, Relaxed);
        (begun != NEVER).then_some(begun)
    }

    /// What the thread, which has run for `time`, ran beside the workers since this was last taken.
    pub(crate) fn take(&self, time: u64) -> u64 {
        let charged = self.charged.load(Acquire);
        let until = time.min(self.last.load(Relaxed));
        if until <= charged {
            // It is `NEVER`, or nothing has run.
            return 0;
        }
        chaos::delay();
        let moved = self
            .charged
            .compare_exchange(charged, until, AcqRel, Relaxed);
        moved.map_or(0, |charged| until - charged)
    }

    /// As [`Beside::take`], for the last time: the thread has come to a scheduling point.
    pub(crate) fn end(&self, time: u64) -> u64 {
        let charged = self.charged.swap(NEVER, AcqRel);
        let until = time.min(self.last.load(Relaxed));
        chaos::delay();
        until.saturating_sub(charged)
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_nanosecond_beside_the_workers_is_taken_once_and_no_more_than_the_most() {
        let beside = Beside::new();
        assert_eq!((beside.take(5), beside.end(9)), (0, 0));
        beside.begin(10, 100);
        assert_eq!((beside.take(15), beside.take(15)), (5, 0));
        beside.begin(20, 100);
        assert_eq!((beside.take(40), beside.end(50)), (25, 10));
        assert_eq!((beside.take(60), beside.end(70)), (0, 0));
        beside.begin(100, 100);
        assert_eq!((beside.take(190), beside.end(300)), (90, 10));
        assert_eq!((beside.take_begun(), beside.take_begun()), (Some(10), None));
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::*},
        },
        thread,
    };

    /// A piece ends, and the next one begins and ends, while a thread takes what ran of the first: each is charged once
    /// and in full, up to the most.
    fn two_pieces(time: u64, most: u64) {
        loom::model(move || {
            let beside = Arc::new(Beside::new());
            beside.begin(10, most);
            let decides = thread::spawn({
                let beside = beside.clone();
                move || beside.take(time)
            });
            let first = beside.end(20);
            beside.begin(30, most);
            let second = beside.end(40);
            let taken = decides.join().unwrap();
            assert_eq!(taken + first + second, 2 * most.min(10));
            assert!(!beside.has_begun());
        });
    }

    #[test]
    fn a_late_take_charges_no_piece_once_more() {
        two_pieces(15, 100);
    }

    #[test]
    fn of_each_piece_at_most_the_most_is_charged() {
        two_pieces(18, 4);
    }

    /// The stack's own thread comes back while the thread that revokes its worker begins and fails, and another one
    /// revokes it for the next piece.
    #[test]
    fn a_revoking_that_fails_charges_nothing_that_another_thread_charges() {
        loom::model(|| {
            let beside = Arc::new(Beside::new());
            let goes_on = Arc::new(AtomicBool::new(false));
            let own = thread::spawn({
                let (beside, goes_on) = (beside.clone(), goes_on.clone());
                move || {
                    let charged = beside.end(12);
                    goes_on.store(true, Release);
                    charged
                }
            });
            beside.begin(10, 100);
            let failed = beside.end(11);
            if goes_on.load(Acquire) {
                beside.begin(30, 100);
            }
            let next = beside.end(35);
            let charged = own.join().unwrap();
            assert!(failed + charged <= 2, "{failed} and {charged} of 2");
            assert!(next == 0 || next == 5, "{next}");
            assert!(!beside.has_begun());
        });
    }
}
