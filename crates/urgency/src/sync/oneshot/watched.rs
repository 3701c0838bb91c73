//! How the sender waits for the end: rule 6 of the channel.

use super::{CLOSED, Side, WATCHED};
use crate::{
    sys::primitives::atomic::Ordering::{AcqRel, Acquire},
    tasks::contained,
};
use std::task::Waker;

impl<T> Side<T> {
    /// The sender takes the slot of its waker back, if it was full and the receiver has not closed.
    pub(super) fn take_sender_waker_back(&self) -> Option<Waker> {
        let clear = |seen| (seen & (WATCHED | CLOSED) == WATCHED).then_some(seen & !WATCHED);
        let cleared = self.channel().state.fetch_update(AcqRel, Acquire, clear);
        // SAFETY: it was full, and the receiver will not find it any more (rule 6).
        cleared
            .is_ok()
            .then(|| unsafe { self.channel().sender_waker.take() })
    }

    /// The sender leaves a waker, after it took back the one before. It comes back if the receiver has closed.
    pub(super) fn put_sender_waker(&self, waker: Waker) -> Option<Waker> {
        let state = &self.channel().state;
        if state.load(Acquire) & CLOSED != 0 {
            return Some(waker);
        }
        // SAFETY: the receiver has not closed and `WATCHED` is clear, so the slot is the sender's, and empty (rule 6).
        unsafe { self.channel().sender_waker.put(waker) };
        let watch = |seen| (seen & CLOSED == 0).then_some(seen | WATCHED);
        let watched = state.fetch_update(AcqRel, Acquire, watch);
        // SAFETY: the receiver has closed without finding the bit.
        watched
            .is_err()
            .then(|| unsafe { self.channel().sender_waker.take() })
    }

    /// The receiver, which has set `CLOSED` and found `seen`, wakes a sender that waits for that.
    pub(super) fn wake_sender(&self, seen: u8) {
        if seen & WATCHED == 0 || seen & CLOSED != 0 {
            return;
        }
        // SAFETY: the slot was full, and is the receiver's from now on (rule 6).
        let waker = unsafe { self.channel().sender_waker.take() };
        contained(|| waker.wake());
    }
}
