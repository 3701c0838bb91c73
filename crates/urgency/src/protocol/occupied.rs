//! Which of several queues have an entry: a word with a bit for each.
//!
//! # Rules
//!
//! 1. A thread that has put an entry in *then* [marks](Occupied::mark) the queue.
//! 2. A thread that found the queue empty [clears](Occupied::clear_if) the bit, *then* looks once more, and marks the
//!    queue again if it has an entry. A push that came in between marks it after the clearing, or the second look sees
//!    its entry.
//!
//! So a queue with an entry is marked, but while a push or a clearing is under way. Where the queue has a lock, and
//! both happen under it, it always is.

use crate::sys::primitives::atomic::{AtomicU64, Ordering::SeqCst};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Occupied(AtomicU64);

impl Occupied {
    pub(crate) fn new() -> Self {
        Occupied(AtomicU64::new(0))
    }

    /// The bits of the queues that are marked.
    #[inline]
    pub(crate) fn which(&self) -> u64 {
        self.0.load(SeqCst)
    }

    /// Rule 1.
    #[inline]
    pub(crate) fn mark(&self, bit: u64) {
        self.0.fetch_or(bit, SeqCst);
    }

    /// Clears the bit if the queue is empty: rule 2.
    #[inline]
    pub(crate) fn clear_if(&self, bit: u64, is_empty: impl Fn() -> bool) {
        if is_empty() {
            self.0.fetch_and(!bit, SeqCst);
            if !is_empty() {
                self.mark(bit);
            }
        }
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{Arc, Mutex},
        thread,
    };
    use std::collections::VecDeque;

    /// The queue is as one without a lock from outside: each call is one step.
    #[test]
    fn a_queue_with_an_entry_is_marked_when_pushes_and_takes_are_over() {
        loom::model(|| {
            let both = Arc::new((Occupied::new(), Mutex::new(VecDeque::from([0]))));
            both.0.mark(2);
            let takers = [(); 2].map(|()| {
                let both = both.clone();
                thread::spawn(move || {
                    let (occupied, queue) = &*both;
                    let taken = queue.lock().unwrap().pop_front();
                    occupied.clear_if(2, || queue.lock().unwrap().is_empty());
                    usize::from(taken.is_some())
                })
            });
            let (occupied, queue) = &*both;
            queue.lock().unwrap().push_back(1);
            occupied.mark(2);
            let taken = takers.into_iter().map(|it| it.join().unwrap());
            let is_left = taken.sum::<usize>() < 2;
            assert!(
                !is_left || occupied.which() == 2,
                "nobody looks for the entry"
            );
        });
    }
}
