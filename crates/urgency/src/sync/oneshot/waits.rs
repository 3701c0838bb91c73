//! How a side waits for the other: rules 3, 4 and 6 of the channel.

use super::{CLOSED, ENDED, Side, WAITING, WATCHED};
use crate::{
    sys::primitives::atomic::Ordering::{AcqRel, Acquire},
    tasks::{WakerSlot, contained},
};
use std::task::Waker;

/// What a side waits for.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    /// The bit that says that the slot of the side's waker is full.
    full: u8,
    /// With one of these bits it has happened. A slot that was full then is the other side's.
    happened: u8,
}

/// The receiver waits until the sender ends.
pub(super) const FOR_MESSAGE: Waits = Waits {
    full: WAITING,
    happened: ENDED,
};

/// The sender waits until the receiver closes.
pub(super) const FOR_END: Waits = Waits {
    full: WATCHED,
    happened: CLOSED,
};

impl<T> Side<T> {
    fn slot(&self, waits: Waits) -> &WakerSlot {
        match waits.full {
            WAITING => &self.channel().waker,
            _ => &self.channel().sender_waker,
        }
    }

    /// The side that waits leaves this waker, in the place of an earlier one. `false`: it has happened.
    pub(super) fn wait(&self, waits: Waits, waker: Waker) -> bool {
        let before = self.take_waker_back(waits);
        let unused = self.put_waker(waits, waker);
        let is_left = unused.is_none();
        // Dropping a waker is anybody's code.
        drop((before, unused));
        is_left
    }

    /// The side that waits takes its waker back, if there is one and it has not happened.
    pub(super) fn take_waker_back(&self, waits: Waits) -> Option<Waker> {
        let Waits { full, happened } = waits;
        let clear = |seen| (seen & (full | happened) == full).then_some(seen & !full);
        let state = &self.channel().state;
        let cleared = state.fetch_update(AcqRel, Acquire, clear).is_ok();
        // SAFETY: it was full, and the other side will not find it any more.
        cleared.then(|| unsafe { self.slot(waits).take() })
    }

    fn put_waker(&self, waits: Waits, waker: Waker) -> Option<Waker> {
        let Waits { full, happened } = waits;
        let state = &self.channel().state;
        if state.load(Acquire) & happened != 0 {
            return Some(waker);
        }
        // SAFETY: it had not happened when this side cleared the bit, so the slot is its own, and empty.
        unsafe { self.slot(waits).put(waker) };
        let set = |seen| (seen & happened == 0).then_some(seen | full);
        let is_missed = state.fetch_update(AcqRel, Acquire, set).is_err();
        // SAFETY: it has happened, and the other side has not found the bit.
        is_missed.then(|| unsafe { self.slot(waits).take() })
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
