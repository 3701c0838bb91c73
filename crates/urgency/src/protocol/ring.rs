//! The ring of a stack: the tasks that its own polls made ready.
//!
//! The pool of a level is one FIFO queue, and that is what makes aging exact. It is also two or three
//! cache lines that travel between the processors for every task that wakes another. So a task that
//! becomes ready *inside a poll* goes into a ring of the polling stack instead, and usually that stack runs it next,
//! from its own cache: the ring is FIFO, too, and every thread may take from its head.
//!
//! Ring and pool are merged by age: each slot keeps the time at which its task became ready, and the pool keeps the
//! time of the entry it gave last. A ring's head that is older than the pool's time goes first; otherwise the pool
//! does. So the merged order is off by an entry at most. Between the rings of different workers the order is looser: a
//! worker takes another ring's head if it is older than its own by [`crate::sched::order::aged::AGE_GAP`], and a worker
//! without work takes what it finds. A ring exists for the time in which its stack holds a worker: before the worker
//! goes elsewhere, what is left goes into the pool (`Job::flush_ring`).
//!
//! A ring's *only* entry is its owner's for a few microseconds (`Stack::offers_task`): the poll that woke the task is
//! about to end, and then the task runs where its data is. To take the entry earlier would make two tasks that wake
//! each other change the processor at every step. If the poll is long after all, a searcher takes the entry then; if no
//! worker searches by that time, relief sees to it.
//!
//! # Protocol
//!
//! One producer (the stack's own thread), any number of consumers. Positions only grow.
//!
//! 1. Push: write the slot, then move `tail` up (Release). A full ring refuses: the pool has room.
//! 2. Pop: read `head`, then `tail` (Acquire), then the slot, then move `head` up by compare-exchange.
//!    A slot that was overwritten meanwhile had its position consumed, so the exchange fails.
//!
//! *Named race, "push under take"*: a taker takes the worker and empties the ring while the stack still pushes. The
//! pusher looks at its attention word after the push, the taker empties the ring after it has set the word, and there
//! is a full barrier between the two steps of each: one of them sees the entry. In a runtime of one level a poll whose
//! worker is shown as brief has none, and the taker's `fence::heavy` is the one of both (`rescue/revoke.rs`).

use super::own::Own;
use crate::sys::{
    chaos,
    primitives::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};
use crossbeam_utils::CachePadded;
use std::ptr;

#[cfg(not(urgency_loom))]
const SLOTS: usize = 256;
#[cfg(urgency_loom)]
const SLOTS: usize = 2;

/// See the module's text. The ring never dereferences what it holds.
pub(crate) struct Ring<T> {
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    slots: Box<[Slot<T>]>,
}

#[derive(Debug)]
struct Slot<T> {
    entry: AtomicPtr<T>,
    /// When the entry became ready, in ticks.
    since: AtomicU64,
}

debug_struct!([T] Ring<T>, |it| len: it.len());

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        Ring {
            head: CachePadded::new(AtomicUsize::new(0)),
            tail: CachePadded::new(AtomicUsize::new(0)),
            slots: (0..SLOTS)
                .map(|_| Slot {
                    entry: AtomicPtr::new(ptr::null_mut()),
                    since: AtomicU64::new(0),
                })
                .collect(),
        }
    }

    /// Takes the oldest entry.
    #[inline]
    pub(crate) fn pop(&self) -> Option<*mut T> {
        let mut entry = ptr::null_mut();
        let take = |head: usize| {
            if head >= self.tail.load(Ordering::Acquire) {
                return None;
            }
            entry = self.slots[head % SLOTS].entry.load(Ordering::Relaxed);
            chaos::delay();
            Some(head + 1)
        };
        let taken = self
            .head
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        taken.is_ok().then_some(entry)
    }

    /// Whether there is nothing to take, as far as one can see without a barrier.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Acquire) >= self.tail.load(Ordering::Acquire)
    }

    /// When the oldest entry became ready, in ticks; never, if there is none. A hint.
    #[inline]
    pub(crate) fn oldest(&self) -> u64 {
        let head = self.head.load(Ordering::Acquire);
        if head >= self.tail.load(Ordering::Acquire) {
            return u64::MAX;
        }
        self.slots[head % SLOTS].since.load(Ordering::Relaxed)
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Acquire).saturating_sub(head)
    }
}

impl<T> Own<'_, Ring<T>> {
    /// Adds an entry that became ready at `since` at the tail. `false`: the ring is full.
    #[inline]
    #[must_use]
    pub(crate) fn push(self, entry: *mut T, since: u64) -> bool {
        let tail = self.tail.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Acquire);
        if tail - head == SLOTS {
            return false;
        }
        let slot = &self.slots[tail % SLOTS];
        slot.entry.store(entry, Ordering::Relaxed);
        slot.since.store(since, Ordering::Relaxed);
        chaos::delay();
        self.tail.store(tail + 1, Ordering::Release);
        true
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::{attention::Attention, own::own_in_model};
    use loom::{
        sync::{
            Arc,
            atomic::{Ordering::SeqCst, fence},
        },
        thread,
    };

    fn entry(tag: usize) -> *mut u8 {
        ptr::without_provenance_mut(tag)
    }

    #[test]
    fn every_entry_is_taken_once_and_each_taker_sees_them_in_order() {
        loom::model(|| {
            let ring = Arc::new(Ring::<u8>::new());
            assert!(own_in_model(&*ring).push(entry(1), 1));
            let theirs = ring.clone();
            let thief = thread::spawn(move || [theirs.pop(), theirs.pop()]);
            assert!(own_in_model(&*ring).push(entry(2), 2));
            let mine = ring.pop();
            let refilled = own_in_model(&*ring).push(entry(3), 3);
            let mut taken: Vec<_> = thief.join().unwrap().into_iter().flatten().collect();
            assert!(taken.is_sorted());
            taken.extend(mine);
            while let Some(left) = ring.pop() {
                taken.push(left);
            }
            taken.sort_unstable();
            let pushed = if refilled { 3 } else { 2 };
            assert_eq!(taken, (1..=pushed).map(entry).collect::<Vec<_>>());
        });
    }

    #[test]
    fn an_entry_pushed_under_a_take_is_seen_by_the_pusher_or_the_taker() {
        loom::model(|| {
            let ring = Arc::new(Ring::<u8>::new());
            let word = Arc::new(Attention::new_busy());
            own_in_model(&*word).leave(0, 8);
            let (their_ring, their_word) = (ring.clone(), word.clone());
            let taker = thread::spawn(move || {
                assert_eq!(their_word.revoke(None), Some(0));
                fence(SeqCst);
                their_ring.pop().is_some()
            });
            assert!(own_in_model(&*ring).push(entry(1), 1));
            fence(SeqCst);
            let seen = word.is_revoked() && ring.pop().is_some();
            let emptied = taker.join().unwrap();
            assert!(!(seen && emptied));
            assert!(seen || emptied || !ring.is_empty());
            if !seen && !emptied {
                panic!("the entry is left in a ring that nobody looks at");
            }
        });
    }
}
