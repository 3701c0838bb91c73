//! A mutex that is not poisoned by a panic of its holder.
//!
//! `std` poisons such a mutex, because the panic may have left the data half changed. Here it cannot: no code of the
//! program runs under a lock of the library, since wakers are woken and values dropped after it. What is left is a
//! failed allocation, which panics before anything is changed. A field under which more can happen says so. So no
//! caller has an error to handle. The guard is the one of `std`, so that its `Condvar` takes it.

#[cfg(not(urgency_loom))]
use super::fork::Process;
use super::primitives;
use std::sync::{PoisonError, TryLockError};

pub(crate) use primitives::MutexGuard;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(primitives::Mutex<T>);

impl<T> Mutex<T> {
    #[cfg(not(urgency_loom))]
    pub(crate) const fn new(data: T) -> Self {
        Mutex(primitives::Mutex::new(data))
    }

    #[cfg(urgency_loom)]
    pub(crate) fn new(data: T) -> Self {
        Mutex(primitives::Mutex::new(data))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(all(test, not(urgency_loom)))]
        tests::must_be_free();
        let locked = self.0.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock of something that was made in this process. `None`: the calling process is a copy of that one, and a
    /// thread that is not here may have the lock for good (`fork.rs`).
    #[cfg(not(urgency_loom))]
    pub(crate) fn lock_in(&self, process: Process) -> Option<MutexGuard<'_, T>> {
        match process.is_this() {
            true => Some(self.lock()),
            false => self.try_lock(),
        }
    }

    /// The lock, unless it is held now.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        #[cfg(all(test, not(urgency_loom)))]
        if tests::ARE_HELD.get() {
            return None;
        }
        match self.0.try_lock() {
            Ok(locked) => Some(locked),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn into_inner(self) -> T {
        let data = self.0.into_inner();
        data.unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that finds each lock held by a thread which is not there, as may be in a child of `fork`.
#[cfg(all(test, not(urgency_loom)))]
pub(crate) mod tests {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static ARE_HELD: Cell<bool> = const { Cell::new(false) };
    }

    /// Ends the process rather than to wait for ever.
    #[track_caller]
    pub(super) fn must_be_free() {
        if ARE_HELD.get() {
            eprintln!(
                "a wait for a lock: {}",
                std::backtrace::Backtrace::force_capture()
            );
            std::process::abort();
        }
    }
}
