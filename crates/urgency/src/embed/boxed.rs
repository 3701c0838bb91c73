//! A closure in the heap as a fork: it runs once, and its run frees it.

use crate::{
    sched::{Forked, Kind, Taken},
    sys::abort::AbortOnPanic,
};

/// A closure that is a fork once it is a pointer, or taken.
#[repr(C)]
pub(super) struct Boxed<F> {
    header: Forked,
    closure: F,
}

impl<F: FnOnce() + Send> Boxed<F> {
    pub(super) fn new(closure: F) -> Box<Self> {
        Box::new(Boxed {
            header: Forked::new(&Self::KIND),
            closure,
        })
    }

    /// The fork, for a deque. It belongs to the stack that runs it.
    pub(super) fn into_forked(self: Box<Self>) -> *const Forked {
        Box::into_raw(self).cast::<Forked>().cast_const()
    }

    /// The fork, as if it had been stolen out of a deque.
    pub(super) fn into_taken(self: Box<Self>) -> Taken {
        // SAFETY: its run frees it, the closure is `Send`, and no other thread has it.
        unsafe { Taken::take(self.into_forked()) }
    }

    const KIND: Kind = Kind {
        execute: Self::execute,
        stolen: Self::stolen,
        name: std::any::type_name::<F>,
    };

    /// # Safety
    /// As [`Kind::execute`].
    unsafe fn execute(this: *const Forked) {
        // SAFETY: `this` heads a box that the stack that runs the fork owns now.
        let boxed = unsafe { Box::from_raw(this.cast_mut().cast::<Self>()) };
        AbortOnPanic::during("a job that nobody waits for has panicked", boxed.closure);
    }

    /// # Safety
    /// As [`Kind::stolen`].
    unsafe fn stolen(this: *const Forked) -> *const Forked {
        // SAFETY: the fork is alive until it has run, and no other thread looks at it now.
        unsafe { Forked::init_thief(this) };
        this
    }
}
