//! A place for one waker, which a state word says to be full or empty, and whose it is.

use super::Guarded;
use std::{mem::MaybeUninit, task::Waker};

/// See the module's text. A waker that is left in a slot is not dropped with it.
pub(crate) struct WakerSlot(Guarded<MaybeUninit<Waker>>);

impl WakerSlot {
    pub(crate) fn new() -> Self {
        WakerSlot(Guarded::new(MaybeUninit::uninit()))
    }

    /// Fills the slot.
    ///
    /// # Safety
    /// The slot is empty, and the caller's.
    pub(crate) unsafe fn put(&self, waker: Waker) {
        // SAFETY: by the caller's promise no other thread looks at the slot.
        self.0.with_mut(|slot| unsafe {
            (*slot).write(waker);
        });
    }

    /// Empties the slot.
    ///
    /// # Safety
    /// The slot is full, and the caller's.
    pub(crate) unsafe fn take(&self) -> Waker {
        // SAFETY: by the caller's promise; reading the waker out moves it.
        self.0.with(|slot| unsafe { slot.read().assume_init() })
    }

    /// Whether the waker in the slot wakes the same task as `waker`.
    ///
    /// # Safety
    /// The slot was filled, and no thread fills it meanwhile. Its waker may be used up: only its pointers are compared.
    pub(crate) unsafe fn holds(&self, waker: &Waker) -> bool {
        // SAFETY: the caller's promise.
        let is_same =
            |slot: *const MaybeUninit<Waker>| unsafe { (*slot).assume_init_ref() }.will_wake(waker);
        self.0.with(is_same)
    }
}
