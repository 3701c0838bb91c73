//! The bitfield of levels with work (Prompt I-Cilk, section 4, "Supporting promptness").
//!
//! Bit `i` says that level `i` has ready work; level 0 is the most urgent. The word decides which
//! level a worker serves (the policy crate's `Prompt`) and whether a worker may sleep.
//!
//! # Protocol
//!
//! - Insertion: put the entry into the pool, then [`Ready::announce`].
//! - A thief that found a pool empty: [`Ready::clear`] with a second look at the pool. Looking and
//!   clearing are not one step, so an entry may slip in between; the second look, after the
//!   clearing, sees it and sets the bit again.
//!
//! *Named race, "insert under clear"*: the inserter sees the bit still set and leaves it alone while
//! the thief is about to clear it. Both sides have a sequentially consistent fence between their
//! own write and their look at the other's: either the inserter sees the bit cleared and sets it, or
//! the thief's second look sees the entry. (The OCaml port of the paper left the second look out.)

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, Ordering, fence},
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Ready(AtomicU64);

impl Ready {
    pub(crate) fn new() -> Self {
        Ready(AtomicU64::new(0))
    }

    /// The levels that have work, as far as this thread can see without ordering.
    #[inline]
    pub(crate) fn levels(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// The levels that have work, ordered after what this thread did before in sequentially consistent steps:
    /// showed its level, or took requests.
    #[inline]
    pub(crate) fn levels_in_order(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// The levels that have work, ordered after everything this thread wrote before.
    #[inline]
    pub(crate) fn levels_after_writes(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::SeqCst)
    }

    /// An entry was put into the pool of `level`. Ends with a full barrier, so that the caller's next
    /// look (for sleepers, for workers below) is ordered after the announcement. Whether the bit was not set before.
    #[inline]
    pub(crate) fn announce(&self, level: u8) -> bool {
        chaos::delay();
        fence(Ordering::SeqCst);
        self.announce_in_order(level)
    }

    /// As [`Ready::announce`], by a caller that has executed a full barrier after the entry was in.
    #[inline]
    pub(crate) fn announce_in_order(&self, level: u8) -> bool {
        let bit = 1 << level;
        let is_first = self.0.load(Ordering::SeqCst) & bit == 0;
        if is_first {
            self.0.fetch_or(bit, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
        chaos::delay();
        is_first
    }

    /// The pool of `level` was found empty; `is_empty` looks again after the bit is cleared. `false`: an entry had
    /// slipped in, and the bit is set again. A thread that looked at the bits meanwhile has not seen that entry: the
    /// caller sees to the wake-ups that may be missing.
    #[must_use]
    pub(crate) fn clear(&self, level: u8, is_empty: impl Fn() -> bool) -> bool {
        let bit = 1 << level;
        chaos::delay();
        self.0.fetch_and(!bit, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        chaos::delay();
        let empty = is_empty();
        if !empty {
            chaos::delay();
            self.0.fetch_or(bit, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
        empty
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::*},
        },
        thread,
    };

    #[test]
    fn no_entry_is_left_behind_a_cleared_bit() {
        loom::model(|| {
            let ready = Arc::new(Ready::new());
            let pool = Arc::new(AtomicUsize::new(0));
            ready.announce(3);
            let (their_ready, their_pool) = (ready.clone(), pool.clone());
            let inserter = thread::spawn(move || {
                their_pool.fetch_add(1, AcqRel);
                their_ready.announce(3);
            });
            let _ = ready.clear(3, || pool.load(Acquire) == 0);
            inserter.join().unwrap();
            assert_eq!(ready.levels() & 8, 8, "the entry is invisible");
        });
    }

    /// A poll's entry without a barrier of its own (`Job::inserted_lightly`): the poller's return to the
    /// scheduler is one, and then it looks at the bit.
    #[test]
    fn an_entry_made_lightly_is_announced_when_its_poll_ends() {
        loom::model(|| {
            let ready = Arc::new(Ready::new());
            let ring = Arc::new(AtomicUsize::new(0));
            let attention = AtomicUsize::new(0);
            ready.announce(3);
            let (their_ready, their_ring) = (ready.clone(), ring.clone());
            let clearer = thread::spawn(move || {
                let _ = their_ready.clear(3, || their_ring.load(Acquire) == 0);
            });
            ring.store(1, Release);
            if ready.levels() & 8 == 0 {
                ready.announce(3);
            }
            attention.swap(1, SeqCst);
            fence(SeqCst);
            if ready.levels() & 8 == 0 && ring.load(Acquire) != 0 {
                ready.announce(3);
            }
            clearer.join().unwrap();
            assert_eq!(ready.levels() & 8, 8, "the entry is invisible");
        });
    }
}
