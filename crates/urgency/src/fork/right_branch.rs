//! The right-hand closure of a `join`: a [`Forked`] in the frame of that `join`.

use crate::{
    protocol::{forked::Payload, latch::Latch},
    sched::{Forked, Kind, stack::Stack},
};
use std::{
    cell::UnsafeCell,
    mem::{ManuallyDrop, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
};

/// The right-hand closure of a `join`, in the frame of that `join`. It is told whether it was stolen.
#[repr(C)]
pub(crate) struct RightBranch<F, R> {
    header: Forked,
    /// Initialised by [`Kind::stolen`].
    latch: UnsafeCell<MaybeUninit<Latch<Stack>>>,
    closure: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<Result<R, Payload>>>,
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
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
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

    /// Takes the closure out, to call it in place.
    ///
    /// # Safety
    /// The fork was popped by its owner, so no other thread has it, and this is called once.
    #[inline(always)]
    pub(crate) unsafe fn take_closure(&self) -> F {
        // SAFETY: by the caller's promise the closure is there and no other thread looks at it.
        unsafe { ManuallyDrop::take(&mut *self.closure.get()) }
    }

    /// Takes the result that a thief left.
    ///
    /// # Safety
    /// The latch is set, and this is called once.
    pub(crate) unsafe fn take_result(&self) -> Result<R, Payload> {
        // SAFETY: the thief wrote the result before it set the latch.
        unsafe { (*self.result.get()).assume_init_read() }
    }

    /// # Safety
    /// As [`Kind::execute`]: once, by the thief; `this` is the header of a `RightBranch<F, R>`.
    unsafe fn execute(this: *const Forked) {
        let this = this.cast::<Self>();
        // SAFETY: the joiner keeps the fork alive until the latch is set; the closure is taken once.
        let closure = unsafe { ManuallyDrop::take(&mut *(*this).closure.get()) };
        let result = catch_unwind(AssertUnwindSafe(|| closure(true)));
        // SAFETY: only the thief touches the result before the latch is set.
        unsafe { (*(*this).result.get()).write(result) };
        // SAFETY: the fork is valid until the joiner sees the latch set.
        let joiner = unsafe { Latch::set((*this).latch.get().cast::<Latch<Stack>>()) };
        if let Some(joiner) = joiner {
            // SAFETY: stacks live as long as their runtime, which runs this very code.
            unsafe { &*joiner }.wake();
        }
    }
}
