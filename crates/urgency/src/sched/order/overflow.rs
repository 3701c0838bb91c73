//! A queue that all workers share, for what overflows or was yielded: behind a lock, or without one.
//!
//! First in, first out, for any number of threads. Which of the two a level has is the plan's choice
//! (`urgency_policy::pool::Overflow`); the papers compare them. The one without a lock is
//! `crossbeam_queue::SegQueue`, a linked list of blocks of 31 entries, in which a push and a pop are one locked
//! instruction each if no other thread is at it.
//!
//! # Invariants
//!
//! 1. The bit of a queue in `occupied` is set if it has an entry, but while a push or a pop is under way
//!    (`protocol/occupied.rs`). In a queue with a lock, bit and queue change under the lock.
//! 2. [`SharedQueue::oldest`] is at or before the time of the oldest entry: without a lock that entry cannot be looked
//!    at, and the time of the entry that was taken last stands for it.

use crate::{protocol::occupied::Occupied, sys::mutex::Mutex};
use crossbeam_queue::SegQueue;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
};

/// See the module's text.
#[derive(Debug)]
pub(super) enum SharedQueue<T> {
    Locked(Mutex<VecDeque<(u64, T)>>),
    LockFree {
        queue: Box<SegQueue<(u64, T)>>,
        /// When the last one that was taken had become ready, or the first one of an empty queue.
        since: AtomicU64,
    },
}

impl<T> SharedQueue<T> {
    pub(super) fn new(is_lock_free: bool) -> Self {
        if is_lock_free {
            SharedQueue::LockFree {
                queue: Box::default(),
                since: AtomicU64::new(u64::MAX),
            }
        } else {
            SharedQueue::Locked(Mutex::default())
        }
    }

    /// Puts an entry at the end, which became ready at this time; `bit` of `occupied` is this queue's.
    pub(super) fn push(&self, since: u64, entry: T, occupied: &Occupied, bit: u64) {
        match self {
            SharedQueue::Locked(entries) => {
                let mut entries = entries.lock();
                entries.push_back((since, entry));
                occupied.mark(bit);
            }
            SharedQueue::LockFree { queue, since: head } => {
                if queue.is_empty() {
                    head.store(since, Ordering::Relaxed);
                }
                queue.push((since, entry));
                occupied.mark(bit);
            }
        }
    }

    /// Takes the first entry.
    pub(super) fn pop(&self, occupied: &Occupied, bit: u64) -> Option<T> {
        match self {
            SharedQueue::Locked(entries) => {
                let mut entries = entries.lock();
                let taken = entries.pop_front();
                occupied.clear_if(bit, || entries.is_empty());
                taken.map(|(_, entry)| entry)
            }
            SharedQueue::LockFree { queue, since: head } => {
                let taken = queue.pop();
                occupied.clear_if(bit, || queue.is_empty());
                taken.map(|(since, entry)| {
                    head.store(since, Ordering::Relaxed);
                    entry
                })
            }
        }
    }

    /// When the oldest entry became ready, or before that; never, if there is none.
    pub(super) fn oldest(&self) -> u64 {
        match self {
            SharedQueue::Locked(entries) => {
                let entries = entries.lock();
                let times = entries.iter().map(|(since, _)| *since);
                times.min().unwrap_or(u64::MAX)
            }
            SharedQueue::LockFree { queue, .. } if queue.is_empty() => u64::MAX,
            SharedQueue::LockFree { since, .. } => since.load(Ordering::Relaxed),
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::{collections::HashSet, thread};

    #[test]
    fn entries_come_out_in_their_order_and_the_bit_says_whether_there_are_any() {
        for is_lock_free in [false, true] {
            let (queue, occupied) = (SharedQueue::new(is_lock_free), Occupied::new());
            assert_eq!(queue.oldest(), u64::MAX);
            for n in 10..14 {
                queue.push(n, n, &occupied, 4);
            }
            assert_eq!((occupied.which(), queue.oldest()), (4, 10));
            let taken: Vec<u64> = std::iter::from_fn(|| {
                let taken = queue.pop(&occupied, 4)?;
                assert!(queue.oldest() >= taken);
                Some(taken)
            })
            .collect();
            assert_eq!(taken, [10, 11, 12, 13]);
            assert_eq!(occupied.which(), 0);
        }
    }

    #[test]
    fn of_many_threads_each_entry_comes_out_once_and_the_bit_ends_clear() {
        for is_lock_free in [false, true] {
            let (queue, occupied) = (SharedQueue::new(is_lock_free), Occupied::new());
            let both = |first: u64| {
                let (queue, occupied) = (&queue, &occupied);
                move || {
                    let mut taken = Vec::new();
                    for n in first..first + 5000 {
                        queue.push(n, n, occupied, 1);
                        taken.extend(queue.pop(occupied, 1));
                    }
                    while occupied.which() != 0 {
                        taken.extend(queue.pop(occupied, 1));
                    }
                    taken
                }
            };
            let taken: Vec<u64> = thread::scope(|scope| {
                let threads = [0, 5000, 10_000].map(|first| scope.spawn(both(first)));
                threads.map(|t| t.join().unwrap()).concat()
            });
            assert_eq!(taken.len(), 15_000);
            assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 15_000);
            assert_eq!(occupied.which(), 0);
        }
    }
}
