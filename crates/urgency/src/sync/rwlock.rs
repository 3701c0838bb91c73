//! `RwLock`: data for many readers or one writer.
//!
//! A semaphore with as many permits as there may be readers: a reader takes one, a writer takes all. So the order is
//! the semaphore's: a writer keeps its place, readers that come later wait behind the writer unless they are more
//! urgent, and what is released is handed over.

use super::{
    error::TryLockError,
    guard::{Read, Whole, Write},
    permit::Acquire,
    semaphore::Semaphore,
};
use std::{cell::UnsafeCell, fmt, mem::ManuallyDrop, ops::Deref, ptr::NonNull, sync::Arc};

/// How many can read at once.
const READERS: u32 = u32::MAX >> 3;

/// Data that many contexts may read, or one may change; see [`mod@crate::sync`] for what holds for all primitives.
///
/// Readers do not overtake a writer that waits, so a context that holds a read guard must not wait for a second one.
///
/// There is no priority inheritance: each of any number of readers would have to be noted by every lock and
/// unlock. An urgent writer waits for the least urgent reader; where that matters, take a [`Mutex`](super::Mutex), or a
/// [`watch`](super::watch) channel, whose readers do not make its writers wait.
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
    /// How many can read at once: all its permits.
    readers: u32,
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
            Self::with_max_readers(data, READERS)
        }
    }

    const_fn! {
        /// As [`new`](Self::new), under the name for statics in programs that were written for Tokio.
        pub fn const_new(data: T) -> Self {
            Self::new(data)
        }
    }

    const_fn! {
        /// A lock that so many may read at once.
        ///
        /// # Panics
        ///
        /// If there are none, or more than `u32::MAX >> 3`.
        ///
        /// ```
        /// use urgency::sync::RwLock;
        ///
        /// let lock = RwLock::with_max_readers(1, 2);
        /// let (_first, _second) = (lock.try_read().unwrap(), lock.try_read().unwrap());
        /// assert!(lock.try_read().is_err());
        /// ```
        #[track_caller]
        pub fn with_max_readers(data: T, readers: u32) -> Self {
            assert!(
                0 < readers && readers <= READERS,
                "a RwLock has between 1 and `u32::MAX >> 3` readers at once"
            );
            RwLock {
                permits: Semaphore::new(readers as usize),
                readers,
                data: UnsafeCell::new(data),
            }
        }
    }

    const_fn! {
        /// As [`with_max_readers`](Self::with_max_readers).
        #[track_caller]
        pub fn const_with_max_readers(data: T, readers: u32) -> Self {
            Self::with_max_readers(data, readers)
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
        taken.map_err(|_| TryLockError(()))
    }

    /// The data's address.
    fn data(&self) -> NonNull<T> {
        NonNull::new(self.data.get()).expect("a cell has an address")
    }

    /// The caller has taken one permit.
    fn reads(&self) -> RwLockReadGuard<'_, T> {
        // SAFETY: while one permit is held there is no write guard.
        unsafe { Read::new(Reads(&self.permits), self.data()) }
    }

    /// The caller has taken all permits.
    fn writes(&self) -> RwLockWriteGuard<'_, T> {
        let held = Writes {
            permits: &self.permits,
            readers: self.readers,
        };
        // SAFETY: while all permits are held there is no other guard.
        unsafe { Write::new(held, self.data()) }
    }

    /// As [`reads`](Self::reads).
    fn reads_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        let data = self.data();
        // SAFETY: as in `reads`; the data is kept alive by the guard.
        unsafe { Read::new(Reads(Kept(self)), data) }
    }

    /// As [`writes`](Self::writes).
    fn writes_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        let (data, readers) = (self.data(), self.readers);
        let held = Writes {
            permits: Kept(self),
            readers,
        };
        // SAFETY: as in `writes`; the data is kept alive by the guard.
        unsafe { Write::new(held, data) }
    }

    /// Waits until the data may be read.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue; a lock that it had been handed goes to the next.
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        Self::acquire(self.permits.acquire()).await;
        self.reads()
    }

    /// Waits until the data may be changed.
    ///
    /// # Cancellation
    ///
    /// As [`read`](Self::read).
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        Self::acquire(self.permits.acquire_many(self.readers)).await;
        self.writes()
    }

    /// As [`read`](Self::read), for closures and plain threads.
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        super::hooks::check();
        match self.try_read() {
            Ok(guard) => guard,
            Err(_) => crate::block_on(self.read()),
        }
    }

    /// As [`write`](Self::write), for closures and plain threads.
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        super::hooks::check();
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
    /// assert_eq!(count.get()?, routes.blocking_read().len());
    /// # Ok::<(), urgency::JoinError>(())
    /// ```
    ///
    /// # Cancellation
    ///
    /// As [`read`](Self::read).
    pub async fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        Self::acquire(self.permits.acquire()).await;
        self.reads_owned()
    }

    /// As [`write`](Self::write), with a guard that keeps the lock alive instead of borrowing it.
    ///
    /// # Cancellation
    ///
    /// As [`read`](Self::read).
    pub async fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        Self::acquire(self.permits.acquire_many(self.readers)).await;
        self.writes_owned()
    }

    /// The data to read, if no writer has it and the lock has no waiter.
    ///
    /// # Errors
    ///
    /// If somebody does.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        self.try_acquire(1)?;
        Ok(self.reads())
    }

    /// The data to change, if it is not in use and the lock has no waiter.
    ///
    /// # Errors
    ///
    /// If somebody does.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.try_acquire(self.readers)?;
        Ok(self.writes())
    }

    /// As [`try_read`](Self::try_read), with a guard that keeps the lock alive.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        self.try_acquire(1)?;
        Ok(self.reads_owned())
    }

    /// As [`try_write`](Self::try_write), with a guard that keeps the lock alive.
    ///
    /// # Errors
    ///
    /// As [`try_write`](Self::try_write).
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        self.try_acquire(self.readers)?;
        Ok(self.writes_owned())
    }

    /// The data, without locking: the exclusive borrow proves that nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(data: T) -> Self {
        RwLock::new(data)
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

/// The right to read, held until it is dropped. `L` is how it knows the lock.
pub struct Reads<L: Deref<Target = Semaphore>>(L);

/// The right to write, held until it is dropped.
pub struct Writes<L: Deref<Target = Semaphore>> {
    permits: L,
    /// All of the lock's.
    readers: u32,
}

impl<L: Deref<Target = Semaphore>> Drop for Reads<L> {
    #[inline]
    fn drop(&mut self) {
        self.0.give(1);
    }
}

impl<L: Deref<Target = Semaphore>> Drop for Writes<L> {
    #[inline]
    fn drop(&mut self) {
        self.permits.give(self.readers.into());
    }
}

impl<L: Deref<Target = Semaphore> + Clone> Writes<L> {
    /// Keeps one permit and gives the others back.
    fn into_reads(self) -> Reads<L> {
        let reads = Reads(self.permits.clone());
        let others = u64::from(self.readers) - 1;
        // The lock's address is given back, the permits are not.
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, and is not dropped.
        let permits = unsafe { std::ptr::read(&this.permits) };
        permits.give(others);
        reads
    }
}

/// A lock that its guards keep alive.
pub struct Kept<T: ?Sized>(Arc<RwLock<T>>);

impl<T: ?Sized> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Kept(self.0.clone())
    }
}

impl<T: ?Sized> Deref for Kept<T> {
    type Target = Semaphore;

    fn deref(&self) -> &Semaphore {
        &self.0.permits
    }
}

/// The data of a [`RwLock`] to read, or a part of it, until it is dropped.
pub type RwLockReadGuard<'a, T> = Read<Reads<&'a Semaphore>, T>;
/// The data of a [`RwLock`] to change, until it is dropped.
pub type RwLockWriteGuard<'a, T> = Write<Writes<&'a Semaphore>, T, Whole>;
/// A part of the data of a [`RwLock`] to change, until it is dropped.
///
/// ```
/// use urgency::sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
///
/// let lock = RwLock::new((1, "one"));
/// let whole = lock.try_write().unwrap();
/// let mut part: RwLockMappedWriteGuard<'_, i32> = RwLockWriteGuard::map(whole, |pair| &mut pair.0);
/// *part = 2;
/// drop(part);
/// assert_eq!(lock.try_read().unwrap().0, 2);
/// ```
pub type RwLockMappedWriteGuard<'a, T> = Write<Writes<&'a Semaphore>, T>;
/// The data of a [`RwLock`] to read, or a part of it, which it keeps alive; see [`RwLock::read_owned`].
pub type OwnedRwLockReadGuard<T, U = T> = Read<Reads<Kept<T>>, U>;
/// The data of a [`RwLock`] to change, which it keeps alive; see [`RwLock::write_owned`].
pub type OwnedRwLockWriteGuard<T> = Write<Writes<Kept<T>>, T, Whole>;
/// A part of the data of a [`RwLock`] to change, which it keeps alive.
///
/// ```
/// use std::sync::Arc;
/// use urgency::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
///
/// let lock = Arc::new(RwLock::new((1, "one")));
/// let whole: OwnedRwLockWriteGuard<(i32, &str)> = lock.clone().try_write_owned().unwrap();
/// let mut part: OwnedRwLockMappedWriteGuard<(i32, &str), i32> =
///     OwnedRwLockWriteGuard::map(whole, |pair| &mut pair.0);
/// *part = 2;
/// drop(part);
/// assert_eq!(lock.try_read().unwrap().0, 2);
/// ```
pub type OwnedRwLockMappedWriteGuard<T, U = T> = Write<Writes<Kept<T>>, U>;

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// The lock whose data it is.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use urgency::sync::{OwnedRwLockReadGuard, RwLock};
    ///
    /// let lock = Arc::new(RwLock::new(1));
    /// let guard = lock.clone().try_read_owned().unwrap();
    /// assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&guard), &lock));
    /// ```
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        &guard.held().0.0
    }
}

impl<T: ?Sized, U: ?Sized, K> Write<Writes<Kept<T>>, U, K> {
    /// The lock whose data it is.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        &guard.held().permits.0
    }
}

impl<L: Deref<Target = Semaphore> + Clone, T: ?Sized> Write<Writes<L>, T, Whole> {
    /// Goes on as a reader, without letting another writer in between. Other readers may come.
    ///
    /// ```
    /// use urgency::sync::RwLock;
    ///
    /// let count = RwLock::new(0);
    /// let mut guard = count.blocking_write();
    /// *guard += 1;
    /// let guard = guard.downgrade();
    /// assert_eq!(*guard, *count.blocking_read());
    /// ```
    pub fn downgrade(self) -> Read<Reads<L>, T> {
        Self::downgrade_map(self, |data| data)
    }

    /// Goes on as a reader of a part of the data; other readers may come when `part` has returned.
    ///
    /// ```
    /// use urgency::sync::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new((1, 2));
    /// let guard = lock.try_write().unwrap();
    /// let first = RwLockWriteGuard::downgrade_map(guard, |pair| &pair.0);
    /// assert_eq!((*first, lock.try_read().unwrap().1), (1, 2));
    /// ```
    pub fn downgrade_map<U: ?Sized>(guard: Self, part: impl FnOnce(&T) -> &U) -> Read<Reads<L>, U> {
        let part = NonNull::from(part(&guard));
        let (writes, _) = guard.into_parts();
        // SAFETY: a part of the guarded data, which is read as long as the permit is held.
        unsafe { Read::new(writes.into_reads(), part) }
    }

    /// As [`downgrade_map`](Self::downgrade_map), if there is that part.
    ///
    /// # Errors
    ///
    /// With the guard, if there is not.
    pub fn try_downgrade_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<Read<Reads<L>, U>, Self> {
        let Some(part) = part(&guard).map(NonNull::from) else {
            return Err(guard);
        };
        let (writes, _) = guard.into_parts();
        // SAFETY: as above.
        Ok(unsafe { Read::new(writes.into_reads(), part) })
    }

    /// As a guard of a part of the data: the part is all of it.
    ///
    /// ```
    /// use urgency::sync::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(1);
    /// *RwLockWriteGuard::into_mapped(lock.try_write().unwrap()) = 2;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    pub fn into_mapped(guard: Self) -> Write<Writes<L>, T> {
        Self::map(guard, |data| data)
    }
}
