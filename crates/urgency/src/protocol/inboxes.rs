//! Inboxes: what is for one certain worker waits in a queue of its own, and one word counts what waits in all of them.
//!
//! Nearly always nothing waits, and one load of the word says so.
//!
//! # Rules
//!
//! 1. An entry is counted, and counted out, under the lock of its inbox. So where no thread has a lock, the word is the
//!    number of entries, and an entry counts from the end of its push to its own removal.
//! 2. A sender puts the entry in, and then claims the entry's worker if that is idle. A thread that releases the worker
//!    ([`Idle::release`](super::idle::Idle::release), which ends with a full barrier) looks into the inbox after it.
//!    The word and the claim are sequentially consistent. So the sender finds the worker idle, or the other thread
//!    finds the entry.
//!
//! *Named race, "the count of another entry"*: the entry was counted after the lock was released. Before that moment a
//! thread took it, and counted out an entry of another inbox. The word was zero, and the other inbox not empty: its
//! worker went idle beside an entry.

use crate::sys::{
    mutex::Mutex,
    primitives::atomic::{AtomicUsize, Ordering::SeqCst},
};
use std::collections::VecDeque;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Inboxes<T> {
    inboxes: Box<[Mutex<VecDeque<T>>]>,
    waiting: AtomicUsize,
}

impl<T> Inboxes<T> {
    pub(crate) fn new(count: usize) -> Self {
        Inboxes {
            inboxes: (0..count).map(|_| Mutex::new(VecDeque::new())).collect(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Whether anything waits in any of them.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.waiting.load(SeqCst) != 0
    }

    /// Whether anything waits in this one.
    #[inline]
    pub(crate) fn has(&self, inbox: usize) -> bool {
        self.any() && !self.inboxes[inbox].lock().is_empty()
    }

    pub(crate) fn push(&self, inbox: usize, entry: T) {
        let mut entries = self.inboxes[inbox].lock();
        entries.push_back(entry);
        self.waiting.fetch_add(1, SeqCst);
    }

    /// The oldest of the entries whose level is the most urgent one in this inbox, if `admit` allows that level.
    pub(crate) fn pop(
        &self,
        inbox: usize,
        level: impl Fn(&T) -> u8,
        admit: impl FnOnce(u8) -> bool,
    ) -> Option<T> {
        if !self.any() {
            return None;
        }
        let mut entries = self.inboxes[inbox].lock();
        let first = (0..entries.len()).min_by_key(|&place| level(&entries[place]))?;
        if !admit(level(&entries[first])) {
            return None;
        }
        self.waiting.fetch_sub(1, SeqCst);
        entries.remove(first)
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::idle::Idle;
    use loom::{sync::Arc, thread};

    fn pop(inboxes: &Inboxes<u8>, inbox: usize) -> Option<u8> {
        inboxes.pop(inbox, |_| 0, |_| true)
    }

    #[test]
    fn what_is_in_an_inbox_is_seen_while_another_entry_comes_and_goes() {
        loom::model(|| {
            let inboxes = Arc::new(Inboxes::new(2));
            inboxes.push(0, 10);
            let sender = inboxes.clone();
            let sends = thread::spawn(move || sender.push(1, 11));
            let other = pop(&inboxes, 1);
            assert!(inboxes.has(0), "a worker goes idle beside an entry");
            sends.join().unwrap();
            assert_eq!(other.or_else(|| pop(&inboxes, 1)), Some(11));
            assert_eq!(pop(&inboxes, 0), Some(10));
            assert!(!inboxes.any());
        });
    }

    /// Rule 2.
    #[test]
    fn a_worker_does_not_stay_idle_beside_an_entry_of_its_own() {
        loom::model(|| {
            let (inboxes, idle) = (Arc::new(Inboxes::new(2)), Arc::new(Idle::new(2, 2)));
            let (into, claims) = (inboxes.clone(), idle.clone());
            let sends = thread::spawn(move || {
                into.push(1, 11);
                claims.claim_exactly(1)
            });
            idle.release(1);
            let found = inboxes.has(1) && idle.claim_exactly(1);
            let claimed = sends.join().unwrap();
            assert!(claimed != found, "nobody has the worker, or two have it");
        });
    }
}
