//! `RwLock`: data for many readers or one writer.
//!
//! A semaphore with [`READERS`] permits: a reader takes one, a writer takes all. So the order is the
//! semaphore's: a writer keeps its place, readers that come after it wait behind it unless they are more
//! urgent, and what is released is handed over.

use super::{error::TryLockError, permit::Acquire, semaphore::Semaphore};
use std::{
    cell::UnsafeCell,
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// How many can read at once.
const READERS: u32 = u32::MAX;

/// Data that many contexts may read, or one may change; see [`mod@crate::sync`] for what holds for all primitives.
///
/// Readers do not overtake a writer that waits, so a context that holds a read guard must not wait for a second one.
///
/// There is no priority inheritance: each of any number of readers would have to be noted by every lock and
/// unlock. An urgent writer waits for the least urgent reader; where that matters, take a
/// [`Mutex`](super::Mutex), or a [`watch`](super::watch) channel, whose readers keep nobody waiting.
///
/// ```
/// use urgency::sync::RwLock;
///
/// static ROUTES: RwLock<Vec<&str>> = RwLock::new(Vec::new());
///
/// urgency::block_on(async {
///     ROUTES.write().await.push("/");
///     let (one, two) = (ROUTES.read().await, ROUTES.read().await);
///     assert_eq!(one.len(), two.len());
/// });
/// ```
pub struct RwLock<T: ?Sized> {
    permits: Semaphore,
    data: UnsafeCell<T>,
}

// SAFETY: the data goes where the lock goes.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: a shared lock gives `&T` to several threads at once, and `&mut T` to any.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    const_fn! {
        /// Not locked.
        pub fn new(data: T) -> Self {
            RwLock {
                permits: Semaphore::new(READERS as u64),
                data: UnsafeCell::new(data),
            }
        }
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    async fn acquire(acquire: Acquire<&Semaphore>) {
        let permit = acquire.await;
        permit.expect("a lock's semaphore is never closed").forget();
    }

    fn try_acquire(&self, permits: u32) -> Result<(), TryLockError> {
        let taken = self.permits.try_take(permits.into());
        taken.map_err(|_| TryLockError)
    }

    /// Waits until the data may be read.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue; a lock that it had been handed goes to the next.
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        Self::acquire(self.permits.acquire()).await;
        RwLockReadGuard { lock: self }
    }

    /// Waits until the data may be changed.
    ///
    /// # Cancellation
    ///
    /// As [`read`](Self::read).
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        Self::acquire(self.permits.acquire_many(READERS)).await;
        RwLockWriteGuard { lock: self }
    }

    /// As [`read`](Self::read), for closures and plain threads.
    pub fn read_blocking(&self) -> RwLockReadGuard<'_, T> {
        super::above::check();
        match self.try_read() {
            Ok(guard) => guard,
            Err(_) => crate::block_on(self.read()),
        }
    }

    /// As [`write`](Self::write), for closures and plain threads.
    pub fn write_blocking(&self) -> RwLockWriteGuard<'_, T> {
        super::above::check();
        match self.try_write() {
            Ok(guard) => guard,
            Err(_) => crate::block_on(self.write()),
        }
    }

    /// As [`read`](Self::read), with a guard that keeps the lock alive instead of borrowing it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use urgency::sync::RwLock;
    ///
    /// let routes = Arc::new(RwLock::new(vec!["/"]));
    /// let guard = urgency::block_on(routes.clone().read_owned());
    /// let count = urgency::spawn(async move { guard.len() });
    /// assert_eq!(count.get()?, routes.read_blocking().len());
    /// # Ok::<(), urgency::WaitError>(())
    /// ```
    ///
    /// # Cancellation
    ///
    /// As [`read`](Self::read).
    pub async fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        Self::acquire(self.permits.acquire()).await;
        OwnedRwLockReadGuard { lock: self }
    }

    /// As [`write`](Self::write), with a guard that keeps the lock alive instead of borrowing it.
    ///
    /// # Cancellation
    ///
    /// As [`read`](Self::read).
    pub async fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        Self::acquire(self.permits.acquire_many(READERS)).await;
        OwnedRwLockWriteGuard { lock: self }
    }

    /// The data to read, if nobody changes it or waits.
    ///
    /// # Errors
    ///
    /// If somebody does.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        self.try_acquire(1)?;
        Ok(RwLockReadGuard { lock: self })
    }

    /// The data to change, if nobody uses it or waits for it.
    ///
    /// # Errors
    ///
    /// If somebody does.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.try_acquire(READERS)?;
        Ok(RwLockWriteGuard { lock: self })
    }

    /// As [`try_read`](Self::try_read), with a guard that keeps the lock alive.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        self.try_acquire(1)?;
        Ok(OwnedRwLockReadGuard { lock: self })
    }

    /// As [`try_write`](Self::try_write), with a guard that keeps the lock alive.
    ///
    /// # Errors
    ///
    /// As [`try_write`](Self::try_write).
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        self.try_acquire(READERS)?;
        Ok(OwnedRwLockWriteGuard { lock: self })
    }

    /// The data, without locking: the exclusive borrow proves that nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => text.field("data", &&*guard),
            Err(_) => text.field("data", &format_args!("<locked>")),
        };
        text.finish()
    }
}

/// The data of a [`RwLock`] to read, until it is dropped.
#[must_use = "the lock is released when its guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: while there is a read guard there is no write guard.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.permits.give(1);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The data of a [`RwLock`] to change, until it is dropped.
#[must_use = "the lock is released when its guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on as a reader, without letting another writer in between. Other readers may come.
    ///
    /// ```
    /// use urgency::sync::{RwLock, RwLockWriteGuard};
    ///
    /// let count = RwLock::new(0);
    /// let mut guard = count.write_blocking();
    /// *guard += 1;
    /// let guard = RwLockWriteGuard::downgrade(guard);
    /// assert_eq!(*guard, *count.read_blocking());
    /// ```
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let lock = guard.lock;
        std::mem::forget(guard);
        lock.permits.give(u64::from(READERS) - 1);
        RwLockReadGuard { lock }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one, and borrowed exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.permits.give(READERS.into());
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The data of a [`RwLock`] to read, which it keeps alive, until it is dropped; see [`RwLock::read_owned`].
#[must_use = "the lock is released when its guard is dropped"]
pub struct OwnedRwLockReadGuard<T: ?Sized> {
    lock: Arc<RwLock<T>>,
}

impl<T: ?Sized> Deref for OwnedRwLockReadGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: while there is a read guard there is no write guard.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for OwnedRwLockReadGuard<T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.permits.give(1);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedRwLockReadGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The data of a [`RwLock`] to change, which it keeps alive, until it is dropped; see [`RwLock::write_owned`].
#[must_use = "the lock is released when its guard is dropped"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    lock: Arc<RwLock<T>>,
}

impl<T: ?Sized> Deref for OwnedRwLockWriteGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for OwnedRwLockWriteGuard<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one, and borrowed exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for OwnedRwLockWriteGuard<T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.permits.give(READERS.into());
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedRwLockWriteGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
