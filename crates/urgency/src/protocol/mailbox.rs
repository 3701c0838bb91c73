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
//! 3. What the giver wrote before `deliver` is visible after `receive`.

use super::own::Own;
use crate::sys::{
    chaos,
    primitives::{
        atomic::{AtomicPtr, Ordering},
        thread,
    },
};
use std::ptr;

/// See the module's text. `T` is what is handed over; the mailbox never dereferences it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    slot: AtomicPtr<T>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        Mailbox {
            slot: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Puts `item` (not null) into the mailbox and wakes its thread.
    pub(crate) fn deliver(&self, item: *const T, receiver: &thread::Thread) {
        chaos::delay();
        let old = self.slot.swap(item.cast_mut(), Ordering::AcqRel);
        chaos::delay();
        debug_assert!(old.is_null(), "two deliveries to one mailbox");
        receiver.unpark();
    }
}

impl<T> Own<'_, Mailbox<T>> {
    /// Parks the calling thread until something is there.
    pub(crate) fn receive(self) -> *const T {
        loop {
            if let Some(item) = self.try_receive() {
                return item;
            }
            thread::park();
        }
    }

    /// As [`Own::receive`], for this long at most. `None` may come early.
    #[cfg(not(urgency_loom))]
    pub(crate) fn receive_within(self, limit: std::time::Duration) -> Option<*const T> {
        self.try_receive().or_else(|| {
            thread::park_timeout(limit);
            self.try_receive()
        })
    }

    /// Takes what is there, without waiting.
    fn try_receive(self) -> Option<*const T> {
        let item = self.slot.swap(ptr::null_mut(), Ordering::AcqRel);
        (!item.is_null()).then_some(item.cast_const())
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
            let mailbox = Arc::new(Mailbox::<UnsafeCell<u32>>::new());
            let worker = Arc::new(UnsafeCell::new(0));
            let (theirs, item) = (mailbox.clone(), worker.clone());
            let receiver = thread::spawn(move || {
                let got = own_in_model(&*theirs).receive();
                assert_eq!(got, Arc::as_ptr(&item));
                // SAFETY: the giver has delivered, and touches it no more; loom checks it.
                item.with(|w| unsafe { assert_eq!(*w, 7) });
            });
            // SAFETY: not delivered yet, so nobody else touches it; loom checks it.
            worker.with_mut(|w| unsafe { *w = 7 });
            mailbox.deliver(Arc::as_ptr(&worker), receiver.thread());
            receiver.join().unwrap();
        });
    }
}
