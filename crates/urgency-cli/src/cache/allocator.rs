//! The allocator of the process: large buffers go back to the system when they are freed.
//!
//! glibc gives memory of 128 KiB and more to a program by pages of its own at first, and takes it back whole. But as
//! soon as a buffer of that size is freed, glibc raises the limit, up to 32 MiB, and keeps freed memory in its arenas.
//! It has several arenas for each processor: 300 slow readers of values of 900 KB left 430 MiB after five cycles. The
//! server bounds its buffers, and keeps by itself the ones that it will want again, so the limit stays where it is at
//! the start.

/// The limit that glibc starts with.
#[cfg(target_env = "gnu")]
const LARGE: nix::libc::c_int = 128 << 10;

/// Large buffers are the system's when they are freed.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "mallopt has no safe wrapper")]
pub fn return_large_buffers() {
    // SAFETY: mallopt takes two numbers and changes the allocator's own settings under its lock.
    let done = unsafe { nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE) };
    debug_assert_eq!(done, 1, "128 KiB is within mallopt's bounds");
}

/// Other allocators have no such limit.
#[cfg(not(target_env = "gnu"))]
pub fn return_large_buffers() {}
