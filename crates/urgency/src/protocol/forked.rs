//! A forked closure, as its deque and its thief see it.
//!
//! A [`Forked`] is the header of a larger structure (`RightBranch` in the frame of `join`, a child of a `scope`):
//! a function to call with the header's address, and a place where a thief leaves its name. The rule is *exactly
//! once*: a forked closure that was pushed is run by the thread that took it out of the deque (its owner's pop or one
//! steal), and by no other. A thief has that right as a value, [`Taken`], which it can use once.
//!
//! What only a thief needs, its name and the latch, is initialised when the closure is stolen ([`Kind::stolen`], under
//! the deque's lock): the cost of a fork is its few stores, and nearly no fork is stolen.
//!
//! Panics are data: they are caught where a thief runs the closure, and resumed at the join.

use std::{
    any::Any,
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// See the module's text. `S` is the stack; it is never dereferenced here.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Forked<S: 'static> {
    pub(crate) kind: &'static Kind<S>,
    /// The stack that runs the stolen fork, once it runs it: the joiner steals back from this stack. Initialised by
    /// [`Kind::stolen`].
    thief: UnsafeCell<MaybeUninit<AtomicPtr<S>>>,
}

impl<S> Forked<S> {
    #[inline(always)]
    pub(crate) const fn new(kind: &'static Kind<S>) -> Self {
        Forked {
            kind,
            thief: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// No stack runs the fork yet.
    ///
    /// # Safety
    /// Called by [`Kind::stolen`], once, with a valid fork that no other thread looks at.
    pub(crate) unsafe fn init_thief(this: *const Forked<S>) {
        // SAFETY: by the caller's promise.
        unsafe { (*(*this).thief.get()).write(AtomicPtr::new(ptr::null_mut())) };
    }

    /// The stack that runs the fork.
    ///
    /// # Safety
    /// The fork was stolen, and the caller knows this through the deque's lock, or is its thief.
    pub(crate) unsafe fn thief(&self) -> &AtomicPtr<S> {
        // SAFETY: initialised when it was stolen, and the lock orders that before this.
        unsafe { (*self.thief.get()).assume_init_ref() }
    }
}

/// A fork that a thread took for another stack than the one that forked it: the right to run it, which is used once.
#[derive(Debug)]
pub(crate) struct Taken<S: 'static>(*const Forked<S>);

// SAFETY: by the promise of `take` any thread may run the fork, and the value alone has the right to.
unsafe impl<S> Send for Taken<S> {}

impl<S> Taken<S> {
    /// Takes the fork, and has [`Kind::stolen`] prepare it for its thief, and move it if it must.
    ///
    /// # Safety
    /// The fork is alive until it has run, its closure may run on any thread, no thread took it before, and no other
    /// thread looks at it now.
    pub(crate) unsafe fn take(forked: *const Forked<S>) -> Self {
        // SAFETY: by the caller's promise.
        Taken(unsafe { ((*forked).kind.stolen)(forked) })
    }

    /// What can be done with it.
    pub(crate) fn kind(&self) -> &'static Kind<S> {
        // SAFETY: by the promise of `take` it is alive until it has run.
        unsafe { (*self.0).kind }
    }

    /// Runs the fork on the calling stack, which is `thief`.
    pub(crate) fn run(self, thief: &S) {
        let thief = ptr::from_ref(thief).cast_mut();
        // SAFETY: it is alive, prepared, and this is its thief.
        unsafe { (*self.0).thief() }.store(thief, Ordering::Release);
        // SAFETY: the value is the right to run it once, and ends here.
        unsafe { (self.kind().execute)(self.0) };
    }
}

/// What can be done with a fork, by the structure that it heads.
#[derive(Debug)]
pub(crate) struct Kind<S: 'static> {
    /// Runs the fork on a thief's stack. Consumes it: the memory may be gone when this returns.
    pub(crate) execute: unsafe fn(*const Forked<S>),
    /// Called under the deque's lock when the fork is stolen. Returns where it is from then on.
    pub(crate) stolen: unsafe fn(*const Forked<S>) -> *const Forked<S>,
    /// The name of its closure's type.
    pub(crate) name: fn() -> &'static str,
}
