//! A closure in the heap as a fork: it runs once, and its run frees it.

use crate::sched::{Forked, Kind};
use std::process::abort;

#[repr(C)]
struct Boxed<F> {
    header: Forked,
    closure: F,
}

/// `f` as a fork. It belongs to the stack that runs it.
pub(super) fn boxed<F: FnOnce() + Send>(f: F) -> *const Forked {
    let boxed = Box::new(Boxed {
        header: Forked::new(&Boxed::<F>::KIND),
        closure: f,
    });
    Box::into_raw(boxed).cast::<Forked>().cast_const()
}

/// Aborts if it is dropped: no waiter could be told of the panic.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        eprintln!("urgency: a job that nobody waits for has panicked; aborting");
        abort();
    }
}

impl<F: FnOnce() + Send> Boxed<F> {
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
        let guard = AbortOnPanic;
        (boxed.closure)();
        std::mem::forget(guard);
    }

    /// # Safety
    /// As [`Kind::stolen`].
    unsafe fn stolen(this: *const Forked) -> *const Forked {
        // SAFETY: the fork is alive until it has run, and no other thread looks at it now.
        unsafe { Forked::init_thief(this) };
        this
    }
}
