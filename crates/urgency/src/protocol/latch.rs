//! The latch of a fork: from its thief to the stack that joins it.
//!
//! One word: null while the fork is pending and no stack waits, the address of the stack that waits, or 1: done.
//!
//! 1. The joiner registers itself with [`Latch::wait`] before it suspends; the answer `false` says that the fork is
//!    done already.
//! 2. The thief sets the latch when the result is written. From that moment the fork's memory, and the latch in it, may
//!    be gone: [`Latch::set`] takes a raw pointer, and only the swapped-out value is used afterwards.
//! 3. The joiner reads the result only after [`Latch::is_done`] or a refused `wait`.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicPtr, Ordering},
};
use std::ptr;

/// See the module's text. `S` is the stack; the latch never dereferences it.
#[derive(Debug)]
pub(crate) struct Latch<S>(AtomicPtr<S>);

fn done<S>() -> *mut S {
    ptr::without_provenance_mut(1)
}

impl<S> Latch<S> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Latch(AtomicPtr::new(ptr::null_mut()))
    }

    /// Whether the fork is done. What the thief wrote is visible then.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) == done()
    }

    /// Registers `stack` to be woken. `false`: done already. Registering again is harmless.
    pub(crate) fn wait(&self, stack: *const S) -> bool {
        chaos::delay();
        let stack = stack.cast_mut();
        match self
            .0
            .compare_exchange(ptr::null_mut(), stack, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => true,
            Err(now) => now != done(),
        }
    }

    /// Sets the latch and returns the stack to wake, if one waits.
    ///
    /// # Safety
    /// `this` is valid until the joiner can see the latch set.
    pub(crate) unsafe fn set(this: *const Self) -> Option<*const S> {
        chaos::delay();
        // SAFETY: valid until the swap, by the caller's promise; not touched after it.
        let old = unsafe { &*this }.0.swap(done(), Ordering::AcqRel);
        debug_assert_ne!(old, done(), "a job ran twice");
        (!old.is_null()).then_some(old.cast_const())
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::{own::own_in_model, suspension::Suspension};
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    struct Model {
        latch: Latch<Suspension>,
        result: UnsafeCell<u32>,
        joiner: Suspension,
    }

    #[test]
    fn the_joiner_sees_the_result_or_is_woken() {
        loom::model(|| {
            let model = Arc::new(Model {
                latch: Latch::new(),
                result: UnsafeCell::new(0),
                joiner: Suspension::new(),
            });
            let thief = model.clone();
            let thief = thread::spawn(move || {
                // SAFETY: only the thief touches the result before the latch is set; loom checks it.
                thief.result.with_mut(|r| unsafe { *r = 5 });
                // SAFETY: the model keeps the latch alive.
                let joiner = unsafe { Latch::set(&thief.latch) };
                // SAFETY: the model keeps the joiner alive.
                joiner.is_some_and(|joiner| unsafe { &*joiner }.wake())
            });
            let mut sleeps = false;
            if model.latch.wait(&model.joiner) {
                sleeps = own_in_model(&model.joiner).suspend();
            }
            if !sleeps {
                assert!(model.latch.is_done());
                // SAFETY: the latch is set, so the thief is done with the result; loom checks it.
                model.result.with(|r| unsafe { assert_eq!(*r, 5) });
            }
            assert_eq!(thief.join().unwrap(), sleeps, "lost or stray wake-up");
        });
    }
}
