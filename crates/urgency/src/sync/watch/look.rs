//! `Ref`: a look at the value of a watch channel.

use super::Place;
use std::{fmt, ops::Deref, sync::Arc};

/// A snapshot of the value: it stays as it is while others are sent.
///
/// While it exists, [`send_modify`](super::Sender::send_modify) and its relatives wait; [`send`](super::Sender::send)
/// does not.
///
/// ```
/// use urgency::sync::watch::{self, Ref};
///
/// let (sender, receiver) = watch::channel(1);
/// let look: Ref<'_, i32> = receiver.borrow();
/// sender.send(2).unwrap();
/// assert_eq!((*look, *receiver.borrow()), (1, 2));
/// ```
pub struct Ref<'a, T> {
    /// Until it is dropped.
    pub(super) value: Option<Arc<T>>,
    /// The value's, without `ENDED`.
    pub(super) version: u64,
    pub(super) changed: bool,
    pub(super) place: &'a Place<T>,
}

impl<T> Ref<'_, T> {
    /// Whether the receiver that gave it had not seen this value before. Of a sender's it is false.
    pub fn has_changed(&self) -> bool {
        self.changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("there until it is dropped")
    }
}

impl<T> Drop for Ref<'_, T> {
    fn drop(&mut self) {
        drop(self.value.take());
        if self.place.modifying.returned() {
            self.place.returned.notify_waiters();
        }
    }
}

debug_struct!([T: fmt::Debug] Ref<'_, T>, |it| value: **it, changed: it.changed);
