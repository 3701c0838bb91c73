//! The owner's side of what several threads share, as a type.
//!
//! Many protocols have a side that one thread alone may use: the push and pop of a deque, the push into a ring, the way
//! of a stack into the scheduler and out. These methods are methods of [`Own`], and a thread has an `Own` of what it
//! owns only. So no method asks its caller to be on the right thread: the type says so.
//!
//! # Rules
//!
//! 1. An `Own` does not leave its thread: it is neither `Send` nor `Sync`. It may be copied: the copies are the same
//!    thread's.
//! 2. It is made in three places. A stack's is made where its thread becomes that stack, and from the variables of the
//!    thread that remember it (`sched/stack/me.rs`); there it is called `Me`. The `Own` of a part of the stack, its
//!    deque or its mailbox, comes from the stack's (`sched/stack/me.rs`). Models make their own.
//! 3. What anybody may do is a method of the thing itself, which an `Own` lends.

use std::{fmt, marker::PhantomData, ops::Deref};

/// See the module's text. As large as a reference.
pub(crate) struct Own<'a, T> {
    of: &'a T,
    this_thread: PhantomData<*const ()>,
}

impl<'a, T> Own<'a, T> {
    /// The owner's side of `of`.
    ///
    /// # Safety
    /// The calling thread owns it for `'a`: no other thread has an `Own` of it during that time.
    #[inline(always)]
    pub(crate) const unsafe fn new(of: &'a T) -> Self {
        Own {
            of,
            this_thread: PhantomData,
        }
    }

    /// Everybody's side, for as long as this thread owns it.
    #[inline(always)]
    pub(crate) const fn shared(self) -> &'a T {
        self.of
    }
}

impl<T> Clone for Own<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Own<'_, T> {}

impl<T> Deref for Own<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.of
    }
}

impl<T: fmt::Debug> fmt::Debug for Own<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.fmt(f)
    }
}

/// The owner's side in a model, whose threads keep to their sides.
#[cfg(all(test, urgency_loom))]
pub(crate) fn own_in_model<T>(of: &T) -> Own<'_, T> {
    // SAFETY: each model gives each thread one role, and one of them is the owner's.
    unsafe { Own::new(of) }
}
