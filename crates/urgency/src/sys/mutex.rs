//! A mutex that is not poisoned by a panic of its holder.
//!
//! `std` poisons such a mutex, because the panic may have left the data half changed. Here it cannot: no code of the
//! program runs under a lock of the library, since wakers are woken and values dropped after it. What is left is a
//! failed allocation, which panics before anything is changed. A field under which more can happen says so. So no
//! caller has an error to handle. The guard is the one of `std`, so that its `Condvar` takes it.

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
        let locked = self.0.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, unless it is held now.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
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
