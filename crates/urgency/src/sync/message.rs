//! A value for several receivers, each of which owns a *portion* of it.
//!
//! An `Arc` counts each time it is handed on. Here all portions are counted when the value is made, and handing a
//! portion on is a move (`protocol/portions.rs`). A receiver clones the value in its turn, alone, so the value need not
//! be `Sync`; the last receiver gets the value itself. A receiver's whole cost is one locked instruction, and the last
//! one pays none.
//!
//! The receiver that empties the allocation gets it as a [`Spare`], for the next value. A sender that allocates what
//! another processor frees pays more for the allocation than for the rest (of the samples, 42 % were a sender's, and 10
//! % were in its `malloc`).

use crate::protocol::portions::{Portions, Use};
use std::{
    mem::{self, MaybeUninit},
    ptr::NonNull,
};

struct Shared<T> {
    portions: Portions,
    value: T,
}

/// Some portions of a value.
pub(super) struct Message<T> {
    of: NonNull<Shared<T>>,
    count: usize,
}

/// One portion of a value.
pub(super) struct MessageRef<T>(NonNull<Shared<T>>);

/// An allocation without a value.
pub(super) struct Spare<T>(Box<MaybeUninit<Shared<T>>>);

// SAFETY: the value is used by one thread at a time, in its turn, and moved to or dropped by any of them.
unsafe impl<T: Send> Send for Message<T> {}
// SAFETY: by reference there is only the count.
unsafe impl<T: Send> Sync for Message<T> {}
// SAFETY: as for a `Message`.
unsafe impl<T: Send> Send for MessageRef<T> {}
// SAFETY: there is nothing that a reference gives.
unsafe impl<T: Send> Sync for MessageRef<T> {}
// SAFETY: there is no value in it.
unsafe impl<T: Send> Sync for Spare<T> {}

/// Gives `count` portions back.
///
/// # Safety
/// The caller has them, and does not use them again.
unsafe fn give_back<T>(of: NonNull<Shared<T>>, count: usize) {
    // SAFETY: the portions keep it alive.
    let used = unsafe { of.as_ref().portions.begin(count) };
    match used {
        Use::Turn(turn) => drop(turn),
        Use::Last => {
            // SAFETY: no portion is left.
            let mut spare = unsafe { emptied(of) };
            // SAFETY: the value was written when the portions were made, and nobody has moved it out.
            unsafe { spare.0.assume_init_drop() };
        }
    }
}

/// The allocation, whose value is the caller's from now on.
///
/// # Safety
/// No portion is left but the caller's, which is not used again.
unsafe fn emptied<T>(of: NonNull<Shared<T>>) -> Spare<T> {
    // SAFETY: made from a box of the same layout, and only the caller has it.
    Spare(unsafe { Box::from_raw(of.as_ptr().cast()) })
}

impl<T> Message<T> {
    /// `value` in `count` portions, of which there must be one at least.
    pub(super) fn new(spare: Option<Spare<T>>, value: T, count: usize) -> Self {
        assert!(count > 0, "nobody would free it");
        let empty = spare.map_or_else(Box::new_uninit, |spare| spare.0);
        let portions = Portions::new(count);
        let shared = Box::write(empty, Shared { portions, value });
        Message {
            of: NonNull::from(Box::leak(shared)),
            count,
        }
    }

    /// How many are left here.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes one.
    pub(super) fn take(&mut self) -> MessageRef<T> {
        self.count = self.count.checked_sub(1).expect("a portion is left");
        MessageRef(self.of)
    }
}

impl<T> Drop for Message<T> {
    fn drop(&mut self) {
        if self.count > 0 {
            // SAFETY: they are here.
            unsafe { give_back(self.of, self.count) };
        }
    }
}

impl<T: Clone> MessageRef<T> {
    /// The value, or a clone if others have portions of it; with what is left of it, if this was the last.
    pub(super) fn into_value(self) -> (T, Option<Spare<T>>) {
        let of = self.0;
        mem::forget(self);
        // SAFETY: the portion is the one that `self` was, and keeps it alive.
        match unsafe { of.as_ref().portions.begin(1) } {
            Use::Turn(turn) => {
                // SAFETY: the turn keeps it alive, and no other thread reads it meanwhile. A panic ends the turn.
                let value = unsafe { of.as_ref() }.value.clone();
                drop(turn);
                (value, None)
            }
            // SAFETY: no other portion is left, and nobody reads the value again.
            Use::Last => unsafe { (std::ptr::read(&of.as_ref().value), Some(emptied(of))) },
        }
    }
}

impl<T> Drop for MessageRef<T> {
    fn drop(&mut self) {
        // SAFETY: the portion given back is the one that `self` is.
        unsafe { give_back(self.0, 1) };
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_value_is_freed_with_its_last_reference_wherever_that_is() {
        for order in 0..3 {
            let value = Arc::new(());
            let mut message = Message::new(None, value.clone(), 3);
            let mut parts = vec![Some(message.take()), Some(message.take())];
            assert_eq!(message.count(), 1);
            parts.rotate_left(order % 2);
            if order == 2 {
                drop(message);
                assert_eq!(Arc::strong_count(&value), 2);
                parts.clear();
            } else {
                let cloned = parts[0].take().unwrap().into_value().0;
                drop(parts);
                assert_eq!(Arc::strong_count(&value), 3);
                drop((cloned, message));
            }
            assert_eq!(Arc::strong_count(&value), 1);
        }
    }

    #[test]
    fn the_only_reference_to_a_message_gets_the_value_itself() {
        let value = Arc::new(());
        let mut message = Message::new(None, value.clone(), 2);
        let (first, last) = (message.take(), message.take());
        let (cloned, spare) = first.into_value();
        assert!(spare.is_none(), "somebody has the value still");
        assert_eq!(Arc::strong_count(&value), 3);
        let (moved, spare) = last.into_value();
        assert_eq!(Arc::strong_count(&value), 3);
        drop((cloned, moved));
        let again = Message::new(spare, value.clone(), 1);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(again);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
