//! A mutex that knows no poison: what is under such a lock is whole between any two statements.
//!
//! `std` poisons a mutex whose holder panicked, in case the panic left the data half changed. Under the locks of this
//! library no code of the program runs: wakers are woken, and values dropped, after the lock. So only a failed
//! allocation can panic there, and it does before anything is changed. Where more than that can happen, the lock says
//! what. A caller then never has an error to handle, and a panic elsewhere never spreads through a lock.

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
