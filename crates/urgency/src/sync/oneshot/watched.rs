//! How the sender waits for the end: rule 6 of the channel.

use super::{CLOSED, Side, WATCHED};
use crate::{
    sys::primitives::atomic::Ordering::{AcqRel, Acquire},
    tasks::{caught, discard_payload},
};
use std::{mem::MaybeUninit, task::Waker};

impl<T> Side<T> {
    /// The sender takes the slot of its waker back, if it was full and the receiver has not closed.
    pub(super) fn take_sender_waker_back(&self) -> Option<Waker> {
        let state = &self.channel().state;
        let mut seen = state.load(Acquire);
        while seen & WATCHED != 0 && seen & CLOSED == 0 {
            match state.compare_exchange(seen, seen & !WATCHED, AcqRel, Acquire) {
                // SAFETY: it was full, and the receiver will not find it any more (rule 6).
                Ok(_) => return Some(unsafe { self.take_sender_waker() }),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// The sender leaves a waker, after it took back the one before. It comes back if the receiver has closed.
    pub(super) fn put_sender_waker(&self, waker: Waker) -> Option<Waker> {
        let state = &self.channel().state;
        let mut seen = state.load(Acquire);
        if seen & CLOSED != 0 {
            return Some(waker);
        }
        // SAFETY: the receiver has not closed and `WATCHED` is clear, so the slot is the sender's, and empty (rule 6).
        let put = |slot: *mut MaybeUninit<Waker>| unsafe {
            (*slot).write(waker);
        };
        self.channel().sender_waker.with_mut(put);
        while seen & CLOSED == 0 {
            match state.compare_exchange(seen, seen | WATCHED, AcqRel, Acquire) {
                Ok(_) => return None,
                Err(now) => seen = now,
            }
        }
        // SAFETY: the receiver has closed without finding the bit.
        Some(unsafe { self.take_sender_waker() })
    }

    /// The receiver, which has set `CLOSED` and found `seen`, wakes a sender that waits for that.
    pub(super) fn wake_sender(&self, seen: u8) {
        if seen & WATCHED == 0 || seen & CLOSED != 0 {
            return;
        }
        // SAFETY: the slot was full, and is the receiver's from now on (rule 6).
        let waker = unsafe { self.take_sender_waker() };
        if let Some(payload) = caught(|| waker.wake()) {
            discard_payload(payload);
        }
    }

    /// Takes the sender's waker out.
    ///
    /// # Safety
    /// The slot is full, and the caller's (rule 6). It is empty afterwards.
    unsafe fn take_sender_waker(&self) -> Waker {
        // SAFETY: by the caller's promise; reading it out moves it.
        let take = |slot: *const MaybeUninit<Waker>| unsafe { slot.read().assume_init() };
        self.channel().sender_waker.with(take)
    }
}
