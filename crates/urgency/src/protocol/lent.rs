//! A closure in the frame of a call that waits until another thread has run it.
//!
//! One thread runs the closure and leaves what it gave, or what it panicked with. *Then* it says that it has, by a
//! latch or a countdown beside it, and the call takes the result. Or the call has its closure back, and no thread runs
//! it.

use super::forked::Payload;
use std::{
    cell::UnsafeCell,
    mem::{ManuallyDrop, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind},
};

/// See the module's text. The closure is told that another thread runs it.
#[repr(C)]
pub(crate) struct Lent<F, R> {
    closure: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<Result<R, Payload>>>,
}

impl<F: FnOnce(bool) -> R, R> Lent<F, R> {
    #[inline(always)]
    pub(crate) fn new(closure: F) -> Self {
        Lent {
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The call has the closure back, to call it in place.
    ///
    /// # Safety
    /// No other thread runs it, and this is called once.
    #[inline(always)]
    pub(crate) unsafe fn take_back(&self) -> F {
        // SAFETY: by the caller's promise the closure is there and no other thread looks at it.
        unsafe { ManuallyDrop::take(&mut *self.closure.get()) }
    }

    /// Runs the closure. The caller says so afterwards.
    ///
    /// # Safety
    /// The call waits for this, and this is called once.
    pub(crate) unsafe fn run(&self) {
        // SAFETY: by the caller's promise the closure is there and no other thread looks at it.
        let closure = unsafe { self.take_back() };
        let result = catch_unwind(AssertUnwindSafe(|| closure(true)));
        // SAFETY: only this writes the result, and the call does not look before it is told.
        unsafe { (*self.result.get()).write(result) };
    }

    /// What the other thread left.
    ///
    /// # Safety
    /// That thread has said that it has run the closure, and this is called once.
    pub(crate) unsafe fn take_result(&self) -> Result<R, Payload> {
        // SAFETY: it was written before that was said.
        unsafe { (*self.result.get()).assume_init_read() }
    }
}
