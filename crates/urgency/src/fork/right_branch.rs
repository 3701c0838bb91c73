//! The right-hand closure of a `join`: a [`Forked`] in the frame of that `join`.

use crate::{
    protocol::{latch::Latch, lent::Lent},
    sched::{Forked, Kind, stack::Stack},
};
use std::{cell::UnsafeCell, mem::MaybeUninit, sync::atomic::Ordering};

/// The right-hand closure of a `join`, in the frame of that `join`. It is told whether it was stolen.
#[repr(C)]
pub(crate) struct RightBranch<F, R> {
    header: Forked,
    /// Initialised by [`Kind::stolen`].
    latch: UnsafeCell<MaybeUninit<Latch<Stack>>>,
    pub(super) lent: Lent<F, R>,
}

impl<F, R> RightBranch<F, R>
where
    F: FnOnce(bool) -> R + Send,
    R: Send,
{
    const KIND: Kind = Kind {
        execute: Self::execute,
        stolen: Self::stolen,
        name: std::any::type_name::<F>,
    };

    #[inline(always)]
    pub(crate) fn new(closure: F) -> Self {
        RightBranch {
            header: Forked::new(&Self::KIND),
            latch: UnsafeCell::new(MaybeUninit::uninit()),
            lent: Lent::new(closure),
        }
    }

    #[inline(always)]
    pub(crate) fn as_forked(&self) -> *const Forked {
        (&raw const *self).cast()
    }

    /// The stack that runs the stolen fork; null before it does.
    ///
    /// # Safety
    /// As [`Forked::thief`].
    pub(crate) unsafe fn thief(&self) -> *const Stack {
        // SAFETY: by the caller's promise.
        unsafe { self.header.thief() }.load(Ordering::Acquire)
    }

    /// The latch that the thief sets.
    ///
    /// # Safety
    /// As [`Forked::thief`].
    pub(crate) unsafe fn latch(&self) -> &Latch<Stack> {
        // SAFETY: initialised when the fork was stolen, and the lock orders that before this.
        unsafe { (*self.latch.get()).assume_init_ref() }
    }

    /// # Safety
    /// As [`Kind::stolen`].
    unsafe fn stolen(this: *const Forked) -> *const Forked {
        // SAFETY: under the deque's lock no other thread looks at what only a thief needs.
        unsafe {
            Forked::init_thief(this);
            (*(*this.cast::<Self>()).latch.get()).write(Latch::new());
        }
        this
    }

    /// # Safety
    /// As [`Kind::execute`]: once, by the thief; `this` is the header of a `RightBranch<F, R>`.
    unsafe fn execute(this: *const Forked) {
        let this = this.cast::<Self>();
        // SAFETY: the joiner waits, and keeps the fork alive, until the latch is set; a fork is executed once.
        unsafe { (*this).lent.run() };
        // SAFETY: the fork is valid until the joiner sees the latch set.
        let joiner = unsafe { Latch::set((*this).latch.get().cast::<Latch<Stack>>()) };
        if let Some(joiner) = joiner {
            // SAFETY: stacks live as long as their runtime, which runs this very code.
            unsafe { &*joiner }.wake();
        }
    }
}
