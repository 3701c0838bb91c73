//! `Mutex`: data for one at a time.

use super::{
    error::TryLockError,
    guard::{Write, shown_as_data},
    lists::Key,
    raw::RawMutex,
};
use std::{
    cell::UnsafeCell,
    fmt,
    future::Future,
    mem,
    ops::{Deref, DerefMut},
    panic::Location,
    pin::Pin,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll},
};

/// Data that one context at a time may use; see [`mod@crate::sync`] for what holds for all primitives.
///
/// *Priority inheritance*: while code of a runtime waits for the mutex, the task that holds it is at least as urgent.
/// If the holder itself waits for another mutex, the task that holds that one is as urgent, too, and so on. A forked
/// closure and a closure of [`run`](crate::runtime::Handle::run) inherit as a task does. A plain thread inherits
/// nothing, and neither does code in a [`blocking`](crate::blocking()) call. The release wakes the most urgent waiter,
/// and only then the holder has its old level again. So from the beginning of an urgent wait to its end nothing less
/// urgent has the lock, but for the holder up to its release. After the release, a closure gives way at once. An async
/// task gives way at its next scheduling point, at the latest at the end of its poll; the rest of a poll is usually
/// short.
///
/// *Order*: more urgent waiters first, then the order of arrival; with one exception, for locks that are held
/// briefly and all the time. Until a woken waiter has come to a worker, code that is running and as urgent may lock and
/// unlock. If the waiter then finds the lock taken, the release hands the lock over to it. So a waiter is overtaken
/// only while it could not run.
///
/// The guard may be held across an `.await`. If a panic drops it, the lock is simply released: there is no poisoning,
/// since a cancelled task leaves half-done work in the same way.
///
/// ```
/// use std::sync::Arc;
/// use urgency::sync::Mutex;
///
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let theirs = log.clone();
/// let task = urgency::spawn(async move { theirs.lock().await.push("task") });
/// task.get()?;
/// log.blocking_lock().push("thread");
/// assert_eq!(*log.blocking_lock(), ["task", "thread"]);
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    data: UnsafeCell<T>,
}

// SAFETY: the data is only reached through a guard, of which there is one at a time, and which may be on any thread.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above; sharing the mutex gives others the data by `&mut`, so it must be `Send`.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    const_fn! {
        /// Not locked.
        pub fn new(data: T) -> Self {
            Mutex {
                raw: RawMutex::new(),
                data: UnsafeCell::new(data),
            }
        }
    }

    const_fn! {
        /// As [`new`](Self::new), under the name for statics in programs that were written for Tokio.
        pub fn const_new(data: T) -> Self {
            Self::new(data)
        }
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the data may be used.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue; a lock that it had been handed goes to the next.
    #[track_caller]
    pub fn lock(&self) -> Lock<'_, T> {
        self.lock_at(Location::caller())
    }

    fn lock_at(&self, caller: &'static Location<'static>) -> Lock<'_, T> {
        Lock {
            mutex: self,
            key: None,
            caller,
        }
    }

    /// As [`lock`](Self::lock), for closures and plain threads.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        super::hooks::check();
        match self.try_lock() {
            Ok(guard) => guard,
            Err(_) => crate::block_on(self.lock()),
        }
    }

    /// As [`lock`](Self::lock), with a guard that keeps the mutex alive instead of borrowing it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use urgency::sync::Mutex;
    ///
    /// let count = Arc::new(Mutex::new(0));
    /// let mut guard = urgency::block_on(count.clone().lock_owned());
    /// urgency::spawn(async move { *guard += 1 }).get()?;
    /// assert_eq!(*count.blocking_lock(), 1);
    /// # Ok::<(), urgency::JoinError>(())
    /// ```
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> {
        let caller = Location::caller();
        async move {
            // The borrowed guard gives its lock to the owned one.
            mem::forget(self.lock_at(caller).await);
            self.owned()
        }
    }

    /// As [`lock_owned`](Self::lock_owned), for closures and plain threads.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        mem::forget(self.blocking_lock());
        self.owned()
    }

    /// The data's address.
    fn address(&self) -> NonNull<T> {
        NonNull::new(self.data.get()).expect("a cell has an address")
    }

    /// The guard of a lock that is held, and that nothing else releases.
    fn owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        let data = self.address();
        // SAFETY: the lock is released with what is held here, which keeps the data alive.
        unsafe { Write::new(Kept(self), data) }
    }

    /// The data, if it is not in use, and no waiter would be overtaken.
    ///
    /// # Errors
    ///
    /// If the data is in use, or a waiter would be overtaken.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        if self.raw.try_lock() {
            Ok(MutexGuard { mutex: self })
        } else {
            Err(TryLockError(()))
        }
    }

    /// As [`try_lock`](Self::try_lock), with a guard that keeps the mutex alive.
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock).
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        mem::forget(self.try_lock()?);
        Ok(self.owned())
    }

    /// The data, without locking: the exclusive borrow proves that nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Whether somebody holds the lock now.
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(data: T) -> Self {
        Mutex::new(data)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => text.field("data", &&*guard),
            Err(_) => text.field("data", &format_args!("<locked>")),
        };
        text.finish()
    }
}

/// The future of [`Mutex::lock`].
#[must_use = "futures do nothing unless awaited"]
pub struct Lock<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    key: Option<Key>,
    /// Where it was made.
    caller: &'static Location<'static>,
}

impl<'a, T: ?Sized> Future for Lock<'a, T> {
    type Output = MutexGuard<'a, T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (mutex, caller) = (self.mutex, self.caller);
        let polled = mutex.raw.poll_lock(&mut self.key, cx, caller);
        polled.map(|()| MutexGuard { mutex })
    }
}

impl<T: ?Sized> Drop for Lock<'_, T> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.mutex.raw.leave(key);
        }
    }
}

debug_struct!([T: ?Sized] Lock<'_, T>, |it| waits: it.key.is_some());

/// The data of a [`Mutex`], until it is dropped.
#[must_use = "the lock is released when its guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: a shared guard gives `&T`, and `&Mutex<T>`. (By itself it would be `Sync` for a `T` that is not.)
unsafe impl<T: ?Sized + Send + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex whose data it is.
    ///
    /// ```
    /// use urgency::sync::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.try_lock().unwrap();
    /// assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
    /// ```
    pub fn mutex(guard: &Self) -> &'a Mutex<T> {
        guard.mutex
    }

    /// A guard of a part of the data.
    ///
    /// ```
    /// use urgency::sync::{Mutex, MutexGuard};
    ///
    /// let pair = Mutex::new((1, "one"));
    /// *MutexGuard::map(pair.blocking_lock(), |pair| &mut pair.0) += 1;
    /// assert_eq!(pair.blocking_lock().0, 2);
    /// ```
    pub fn map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedMutexGuard<'a, U> {
        Write::map(guard.whole(), part)
    }

    /// A guard of a part of the data, if there is that part.
    ///
    /// # Errors
    ///
    /// With the guard, if there is not.
    ///
    /// ```
    /// use urgency::sync::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new(vec![1, 2]);
    /// let guard = mutex.try_lock().unwrap();
    /// let mut last = MutexGuard::try_map(guard, |list| list.last_mut()).ok().unwrap();
    /// *last = 3;
    /// drop(last);
    /// assert_eq!(mutex.into_inner(), [1, 3]);
    /// ```
    pub fn try_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, U>, Self> {
        let mutex = guard.mutex;
        Write::try_map(guard.whole(), part).map_err(|whole| {
            // The lock goes back to where it was.
            mem::forget(whole);
            MutexGuard { mutex }
        })
    }

    fn whole(self) -> MappedMutexGuard<'a, T> {
        let mutex = self.mutex;
        mem::forget(self);
        // SAFETY: the lock is held, and released with what is held here.
        unsafe { Write::new(Held(&mutex.raw), mutex.address()) }
    }
}

/// A locked mutex, released when it is dropped.
pub struct Held<'a>(&'a RawMutex);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// A locked mutex that is kept alive, released when it is dropped.
pub struct Kept<T: ?Sized>(Arc<Mutex<T>>);

impl<T: ?Sized> Drop for Kept<T> {
    fn drop(&mut self) {
        self.0.raw.unlock();
    }
}

/// A part of the data of a [`Mutex`], until it is dropped; see [`MutexGuard::map`].
pub type MappedMutexGuard<'a, T> = Write<Held<'a>, T>;
/// The data of a [`Mutex`] that it keeps alive, until it is dropped; see [`Mutex::lock_owned`].
pub type OwnedMutexGuard<T> = OwnedMappedMutexGuard<T, T>;
/// A part of the data of a [`Mutex`] that it keeps alive, until it is dropped.
///
/// ```
/// use std::sync::Arc;
/// use urgency::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
///
/// let mutex = Arc::new(Mutex::new((1, "one")));
/// let whole: OwnedMutexGuard<(i32, &str)> = mutex.clone().try_lock_owned().unwrap();
/// let part: OwnedMappedMutexGuard<(i32, &str), i32> = OwnedMutexGuard::map(whole, |pair| &mut pair.0);
/// assert_eq!(*part, 1);
/// assert!(mutex.try_lock().is_err());
/// ```
pub type OwnedMappedMutexGuard<T, U = T> = Write<Kept<T>, U>;

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// The mutex whose data it is.
    pub fn mutex(guard: &Self) -> &Arc<Mutex<T>> {
        &guard.held().0
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one, and nobody else reaches the data.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}

shown_as_data!(['a, T: ?Sized] MutexGuard<'a, T>);
