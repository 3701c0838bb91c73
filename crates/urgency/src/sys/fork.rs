//! Whether the process is a copy of the one that built a runtime.
//!
//! `fork` copies the calling thread only. A runtime's other threads exist in the parent only. In the child, code that
//! waits for them would wait for ever. So a runtime remembers in which process it was built, and refuses use in another
//! one. The processes are told apart by a count: libc calls [`in_child`] in each child that `fork` makes, so that a
//! comparison costs a load. A child of the bare system call is not told apart.
//!
//! Rejected: `getpid`, a system call for each comparison; a page with `MADV_WIPEONFORK`, which sees the bare system
//! call, too, but needs a mapping and Linux 4.14.

use std::sync::{
    Once,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// How many `fork`s lie between this process and the one that built the first runtime.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

extern "C" fn in_child() {
    FORKS.fetch_add(1, Relaxed);
}

impl Process {
    /// This process. From the first call on its copies are told apart from it.
    pub(crate) fn this() -> Process {
        static ASKED: Once = Once::new();
        ASKED.call_once(|| {
            // Miri interprets no `fork`.
            if cfg!(not(miri)) {
                // SAFETY: the function is there as long as the program, and does what is allowed in a handler of a
                // signal. If there is no memory for it, copies are not told apart.
                unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            }
        });
        Process(FORKS.load(Relaxed))
    }

    #[inline]
    pub(crate) fn is_this(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }

    /// # Panics
    ///
    /// If this process is a copy.
    #[inline]
    #[track_caller]
    pub(crate) fn must_be_this(self) {
        if !self.is_this() {
            Self::is_another();
        }
    }

    #[cold]
    #[track_caller]
    fn is_another() -> ! {
        panic!(
            "this process was made by `fork` after the runtime had been built, and the runtime's threads are in the \
             parent only: build a runtime in the child (the global one: do not use it before the fork), or `exec` \
             another program there"
        )
    }
}
