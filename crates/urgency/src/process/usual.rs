//! How a child is made: it begins as a child of a usual thread of the program.
//!
//! A child inherits the class, the niceness and the time slices of the thread that makes it, and keeps them for good.
//! The runtime changes all three of its threads (`sys/thread.rs`): a thread that came from the poller has short slices,
//! or is in the real-time class; one that goes on after that has long slices; and one that lost its worker to more
//! urgent work is lowered. All that is for a moment, and is not meant for another program. So the thread is a usual one
//! while it makes a child:
//!
//! 1. The call is declared blocking. The thread does sleep in the kernel until the child has begun its program, and its
//!    worker has other work meanwhile. As the thread holds no worker, nobody lowers it.
//! 2. It leaves the real-time class as for any work that may be long, and comes back to its usual class if it was
//!    lowered and the process may raise it.
//! 3. During the call it has slices of the usual length, and then its own again.
//!
//! What is left: without the permission to raise a thread, a child of a lowered thread is in that class for good, for
//! the kernel asks the child for the same permission. And a child of a pinned worker stays on its processor.
//!
//! Rejected: to change the child's class between `fork` and `exec`. The standard library makes a child by
//! `posix_spawn`, which copies no page tables, only if nothing is to be run there.

use crate::{blocking, sched::stack::Stack, sys::thread::in_usual_slices};

/// Calls `make`, which makes a process. See the module's text.
pub(super) fn as_usual_thread<R>(make: impl FnOnce() -> R) -> R {
    blocking(|| {
        Stack::with_own(|me| {
            // In a child of `fork` the stack has the name of a thread of the parent.
            if let Some(me) = me.filter(|me| me.core().process.is_this()) {
                me.raise_thread();
                me.set_urgent(false);
            }
        });
        in_usual_slices(make)
    })
}
