//! The mailbox of a thread: where a hand-off delivers a worker.
//!
//! A hand-off is one store and one futex wake. The receiver is a thread that parks in
//! [`Own::receive`]; the giver calls [`Mailbox::deliver`] and forgets the worker.
//!
//! # Rules
//!
//! 1. At most one delivery is outstanding: the right to deliver is claimed before (a stack by
//!    [`super::suspension::Suspension::claim`], a spare thread by popping it from the spare list).
//! 2. A delivery may come before its receiver parks, even before the receiver gave its own worker
//!    away. The token of `park`/`unpark` keeps it.
//! 3. What the giver wrote before `deliver` is visible after `receive`. Nothing goes the other way: what orders a
//!    delivery behind the one before is the claim of rule 1.

use super::own::Own;
use crate::sys::{
    chaos,
    primitives::{
        atomic::{AtomicUsize, Ordering},
        thread,
    },
};
use std::num::NonZero;

/// See the module's text. What is handed over has a number, so that nothing here has to be valid.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Zero if nothing is there.
    slot: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn new() -> Self {
        Mailbox {
            slot: AtomicUsize::new(0),
        }
    }

    /// Puts `item` into the mailbox and wakes its thread.
    pub(crate) fn deliver(&self, item: NonZero<usize>, receiver: &thread::Thread) {
        chaos::delay();
        let old = self.slot.swap(item.get(), Ordering::Release);
        chaos::delay();
        debug_assert_eq!(old, 0, "two deliveries to one mailbox");
        receiver.unpark();
    }
}

impl Own<'_, Mailbox> {
    /// Parks the calling thread until something is there.
    pub(crate) fn receive(self) -> NonZero<usize> {
        loop {
            if let Some(item) = self.try_receive() {
                return item;
            }
            thread::park();
        }
    }

    /// As [`Own::receive`], for this long at most. `None` may come early.
    #[cfg(not(urgency_loom))]
    pub(crate) fn receive_within(self, limit: std::time::Duration) -> Option<NonZero<usize>> {
        self.try_receive().or_else(|| {
            thread::park_timeout(limit);
            self.try_receive()
        })
    }

    /// Takes what is there, without waiting.
    fn try_receive(self) -> Option<NonZero<usize>> {
        NonZero::new(self.slot.swap(0, Ordering::Acquire))
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::own::own_in_model;
    use loom::{cell::UnsafeCell, sync::Arc};

    #[test]
    fn what_the_giver_wrote_arrives_with_the_delivery() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let number = NonZero::new(3).unwrap();
            let worker = Arc::new(UnsafeCell::new(0));
            let (theirs, item) = (mailbox.clone(), worker.clone());
            let receiver = thread::spawn(move || {
                let got = own_in_model(&*theirs).receive();
                assert_eq!(got, number);
                // SAFETY: the giver has delivered, and touches it no more; loom checks it.
                item.with(|w| unsafe { assert_eq!(*w, 7) });
            });
            // SAFETY: not delivered yet, so nobody else touches it; loom checks it.
            worker.with_mut(|w| unsafe { *w = 7 });
            mailbox.deliver(number, receiver.thread());
            receiver.join().unwrap();
        });
    }

    /// As above, by the slot alone: the receiver looks before the wake-up, which here goes to another thread. (In loom
    /// a wake-up hands over what was written before, whether its thread parks or not.)
    #[test]
    fn a_receiver_that_looks_before_the_wake_up_sees_what_the_giver_wrote() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let worker = Arc::new(UnsafeCell::new(0));
            let (theirs, item) = (mailbox.clone(), worker.clone());
            let receiver = thread::spawn(move || {
                if own_in_model(&*theirs).try_receive().is_some() {
                    // SAFETY: as above.
                    item.with(|w| unsafe { assert_eq!(*w, 7) });
                }
            });
            // SAFETY: as above.
            worker.with_mut(|w| unsafe { *w = 7 });
            mailbox.deliver(NonZero::new(3).unwrap(), &thread::current());
            receiver.join().unwrap();
        });
    }
}
