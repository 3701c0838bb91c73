//! A mutex that is not poisoned by a panic of its holder.
//!
//! `std` poisons such a mutex, because the panic may have left the data half changed. Here it cannot: no code of the
//! program runs under a lock of the library, since wakers are woken and values dropped after it. What is left is a
//! failed allocation, which panics before anything is changed. A field under which more can happen says so. So no
//! caller of [`Mutex::lock`] has an error to handle.

use super::primitives;

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
        locked.unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
