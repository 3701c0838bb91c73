//! The wait queue under every primitive: one word for operations that need not wait, and a locked queue for the others.
//!
//! The word is the state of the primitive (permits, a lock's owner, a count of events) with one bit that belongs to the
//! queue: `QUEUED`. The queue ([`Lists`]) is behind a lock of its own that is held for a few dozen
//! instructions and never while a waker is woken or dropped.
//!
//! # Rules
//!
//! 1. While `QUEUED` is clear the queue is empty, and any thread changes the word by one compare-and-swap
//!    ([`update`](WaitQueue::update)): the fast path of acquiring and of releasing.
//! 2. While `QUEUED` is set, only the holder of the lock changes the word. So code that releases something comes to the
//!    queue and hands it over, and code that wants something enters behind the others: no newcomer barges in, and a
//!    hand-over is a decision under one lock.
//! 3. The first waiter sets `QUEUED` under the lock, in the same step that looks whether waiting is needed
//!    ([`Locked::claim`]). So the step sees a release that came before, and a release that comes after finds the bit:
//!    no wake-up is lost.
//! 4. `QUEUED` is cleared when the lock is released and the queue is empty.
//! 5. A primitive may allow changes in spite of rule 2, for words that say so (the mutex, raw.rs): they are made by
//!    [`change_any`](WaitQueue::change_any), and the lock's holder makes each change by a compare-and-swap in any case.
//!
//! # Named races
//!
//! - *Release against first waiter*: rule 3; both are a compare-and-swap on the same word.
//! - *Grant against drop*: the dropped waiter finds its slot granted, under the lock, and passes it on.
//! - *Grant against poll*: a waiter that is polled for another reason finds the grant, and its wake-up is stale.
//!
//! The models in `loom.rs` run the primitives that are built from this: each hand-over to a waiter that is
//! dropped at the same time, and each release against a first waiter.
//!
//! Rejected: the lock alone, without a word. An uncontended mutex would cost four locked instructions
//! instead of two, and could not be looked at. Rejected: waking without handing over, always. A woken waiter would
//! compete with newcomers, which is faster when many wait, and no longer FIFO. The mutex wakes without handing over
//! once for each waiter.

use super::lists::{Key, Lists};
use crate::sys::{
    mutex::{Mutex, MutexGuard},
    primitives::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};
use std::{
    ops::{Deref, DerefMut},
    task::Waker,
};

/// The queue is not empty: see the module's rules.
pub(super) const QUEUED: u64 = 1;

/// See the module's text. All that the lock's holder always reads and writes is on one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct WaitQueue<N, G = ()> {
    word: AtomicU64,
    lists: Mutex<Lists<N, G>>,
}

/// The queue under its lock: its [`Lists`], and what also changes the word.
pub(super) struct Locked<'a, N, G> {
    word: &'a AtomicU64,
    lists: MutexGuard<'a, Lists<N, G>>,
}

impl<N, G> WaitQueue<N, G> {
    super::const_fn! {
        /// Nobody waits; the word is `word`, whose bit `QUEUED` is clear.
        pub(super) fn new(word: u64) -> Self {
            WaitQueue {
                word: AtomicU64::new(word),
                lists: Mutex::new(Lists::new()),
            }
        }
    }

    /// The word as it is.
    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word.load(Acquire)
    }

    /// Rule 1: changes the word unless the queue has a waiter, or `change` refuses. Returns the word before, or the one
    /// that was refused.
    #[inline]
    pub(super) fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.change_any(|word| match word & QUEUED {
            0 => change(word),
            _ => None,
        })
    }

    /// Rule 5: changes the word, also while the queue has waiters, unless `change` refuses. Returns as
    /// [`update`](Self::update).
    #[inline]
    pub(super) fn change_any(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.word.fetch_update(AcqRel, Acquire, change)
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_, N, G> {
        Locked {
            word: &self.word,
            lists: self.lists.lock(),
        }
    }
}

impl<N, G> Locked<'_, N, G> {
    /// Rule 3: `Ok` if `change` was made, since nobody waits. Otherwise the word, which now is the lock holder's: the
    /// caller enters the queue, or drops the lock.
    pub(super) fn claim(&mut self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        let mut claimed = false;
        let word = self.word.fetch_update(AcqRel, Acquire, |word| {
            if word & QUEUED != 0 {
                return None;
            }
            let new = change(word);
            claimed = new.is_some();
            new.or(Some(word | QUEUED))
        })?;
        if claimed {
            Ok(word)
        } else {
            Err(word | QUEUED)
        }
    }

    /// Changes the word, also while the queue has waiters. Returns the word as it was before.
    pub(super) fn change(&mut self, change: impl Fn(u64) -> u64) -> u64 {
        let changed = self
            .word
            .fetch_update(AcqRel, Acquire, |word| Some(change(word)));
        changed.expect("it is always changed")
    }

    /// The word. It stays so while `QUEUED` is set, but for rule 5.
    pub(super) fn word(&self) -> u64 {
        self.word.load(Acquire)
    }

    /// Enters the queue. The caller has claimed the word.
    pub(super) fn enter(&mut self, level: u8, need: N, waker: Waker) -> Key {
        debug_assert!(self.word.load(Relaxed) & QUEUED != 0, "claim comes first");
        self.lists.enter(level, need, waker)
    }

    /// See [`Lists::revoke`]. The word is the lock holder's from then on.
    pub(super) fn revoke(&mut self, place: u32, need: N, waker: Waker) -> G {
        self.word.fetch_or(QUEUED, AcqRel);
        self.lists.revoke(place, need, waker)
    }
}

/// What concerns the waiters alone.
impl<N, G> Deref for Locked<'_, N, G> {
    type Target = Lists<N, G>;

    fn deref(&self) -> &Lists<N, G> {
        &self.lists
    }
}

impl<N, G> DerefMut for Locked<'_, N, G> {
    fn deref_mut(&mut self) -> &mut Lists<N, G> {
        &mut self.lists
    }
}

impl<N, G> Drop for Locked<'_, N, G> {
    /// Rule 4.
    #[inline]
    fn drop(&mut self) {
        if self.word.load(Relaxed) & QUEUED != 0 && self.lists.is_empty() {
            self.word.fetch_and(!QUEUED, AcqRel);
        }
    }
}
