//! The asymmetric fence: free for the owner of a deque, dear for the thief.
//!
//! The owner's pop and the thief's raise of the split are Dekker's pattern: each writes its word, then reads
//! the other's. A full fence between the two costs 5 ns, more than the whole fork. But the owner pops
//! millions of times for each remote raise, so the thief pays for both: `membarrier` makes every running
//! thread of the process execute a full barrier (17 µs here, in a virtual machine, and 6 to 12 for each of
//! the others), and the owner only has to keep the compiler from reordering.
//!
//! Where `membarrier` is missing (old kernels, some sandboxes, other systems), [`heavy`] says so and
//! thieves never raise a split themselves: they wait for the owner's next scheduling point. So the
//! owner's path needs no run-time switch. Under loom and miri both sides use a real fence.

#[cfg(any(urgency_loom, miri))]
use crate::sys::primitives::atomic::{Ordering, fence};

/// The owner's side.
#[inline(always)]
pub(crate) fn light() {
    #[cfg(any(urgency_loom, miri))]
    fence(Ordering::SeqCst);
    #[cfg(not(any(urgency_loom, miri)))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// Does what the first [`heavy`] would have to do before. The kernel lets a process with several threads wait for
/// that until each processor has switched threads, 5 to 14 ms here, and a thief would hold its victim's lock meanwhile.
pub(crate) fn prepare() {
    #[cfg(not(any(urgency_loom, miri)))]
    os::register();
}

/// A full barrier behind a sequentially consistent read-modify-write of the same thread, which on x86-64 is
/// one already.
#[inline(always)]
pub(crate) fn behind_locked() {
    #[cfg(any(urgency_loom, miri, not(target_arch = "x86_64")))]
    crate::sys::primitives::atomic::fence(crate::sys::primitives::atomic::Ordering::SeqCst);
    #[cfg(not(any(urgency_loom, miri, not(target_arch = "x86_64"))))]
    light();
}

/// The thief's side. `false`: there is no such thing here, and nothing may be concluded.
#[cfg(any(urgency_loom, miri))]
pub(crate) fn heavy() -> bool {
    fence(Ordering::SeqCst);
    true
}

/// The thief's side. `false`: there is no such thing here, and nothing may be concluded.
#[cfg(not(any(urgency_loom, miri)))]
pub(crate) fn heavy() -> bool {
    os::membarrier()
}

#[cfg(all(not(any(urgency_loom, miri)), target_os = "linux"))]
mod os {
    use rustix::thread::{MembarrierCommand, membarrier as call};
    use std::sync::OnceLock;

    /// Whether this process is registered for private expedited barriers.
    static REGISTERED: OnceLock<bool> = OnceLock::new();

    pub(super) fn register() -> bool {
        *REGISTERED.get_or_init(|| call(MembarrierCommand::RegisterPrivateExpedited).is_ok())
    }

    pub(super) fn membarrier() -> bool {
        register() && call(MembarrierCommand::PrivateExpedited).is_ok()
    }
}

#[cfg(all(not(any(urgency_loom, miri)), not(target_os = "linux")))]
mod os {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn membarrier() -> bool {
        false
    }
}
