//! `Semaphore`: so many at a time.
//!
//! # The word
//!
//! Bit 0 is the queue's, bit 1 says closed, above them is the number of free permits. While somebody waits there may be free permits:
//! fewer than the one whose turn it is needs. They are kept for it (or for a more urgent one that needs fewer), else a waiter
//! for many would starve behind many for one.
//!
//! # Protocol
//!
//! 1. *Acquire*: one compare-and-swap, if nobody waits and there are enough.
//! 2. Otherwise, under the lock: claim (queue.rs, rule 3), enter, and [`serve`](Semaphore::serve): a newcomer
//!    may be more urgent than those who wait, and what is free may suffice for it.
//! 3. *Release*: one compare-and-swap if nobody waits, else under the lock: add and serve.
//! 4. *Serve*: as long as the free permits suffice for the one whose turn it is, take them and grant.
//! 5. *Drop of a waiter*: if it was granted, release; if not, serve, since the next may need fewer.

use super::{
    above,
    error::{Closed, TryAcquireError},
    lists::{Key, Left, Wakers},
    queue::{Locked, WaitQueue},
};
use std::{
    fmt,
    future::Future,
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

const CLOSED: u64 = 2;
const SHIFT: u32 = 2;
const ONE: u64 = 1 << SHIFT;

/// A number of permits to be acquired and given back; see [`mod@crate::sync`] for what holds for all primitives.
///
/// There is no priority inheritance: a permit may be given back by anybody, or added, so that nobody knows for whom a waiter waits. What guards
/// data that several levels share is a [`Mutex`](super::Mutex).
///
/// ```
/// use urgency::sync::Semaphore;
///
/// static CONNECTIONS: Semaphore = Semaphore::new(2);
///
/// urgency::block_on(async {
///     let first = CONNECTIONS.acquire().await?;
///     let second = CONNECTIONS.acquire().await?;
///     assert!(CONNECTIONS.try_acquire().is_err());
///     drop(first);
///     assert!(CONNECTIONS.try_acquire().is_ok());
///     drop(second);
///     Ok::<(), urgency::sync::Closed>(())
/// })?;
/// # Ok::<(), urgency::sync::Closed>(())
/// ```
pub struct Semaphore {
    /// A waiter's need is its number of permits; an error is granted when the semaphore is closed.
    queue: WaitQueue<u64, Result<(), Closed>>,
}

impl Semaphore {
    /// The most permits that a semaphore can have.
    pub const MAX_PERMITS: u64 = u64::MAX >> 3;

    const_fn! {
        /// A semaphore with so many permits.
        ///
        /// # Panics
        ///
        /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        pub fn new(permits: u64) -> Self {
            assert!(
                permits <= Self::MAX_PERMITS,
                "a semaphore has at most `Semaphore::MAX_PERMITS` permits"
            );
            Semaphore {
                queue: WaitQueue::new(permits << SHIFT),
            }
        }
    }

    /// How many permits are free now. Some may be kept for a waiter that needs more.
    pub fn available_permits(&self) -> u64 {
        self.queue.word() >> SHIFT
    }

    /// Waits for a permit.
    ///
    /// # Errors
    ///
    /// The future's output is an error if the semaphore is closed, before or during the wait.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue; a permit that it had been handed goes to the next.
    pub fn acquire(&self) -> Acquire<&Semaphore> {
        self.acquire_many(1)
    }

    /// Waits for so many permits at once. It keeps its place: later waiters for fewer do not overtake it, unless
    /// they are more urgent.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancellation
    ///
    /// As [`acquire`](Self::acquire).
    pub fn acquire_many(&self, permits: u32) -> Acquire<&Semaphore> {
        Acquire::new(self, permits)
    }

    /// As [`acquire_many`](Self::acquire_many), with a permit that keeps the semaphore alive instead of borrowing it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use urgency::sync::Semaphore;
    ///
    /// let places = Arc::new(Semaphore::new(1));
    /// let permit = urgency::block_on(places.clone().acquire_owned(1))?;
    /// let task = urgency::spawn(async move { drop(permit) });
    /// assert!(places.acquire_blocking().is_ok());
    /// # task.get().unwrap();
    /// # Ok::<(), urgency::sync::Closed>(())
    /// ```
    pub fn acquire_owned(self: Arc<Self>, permits: u32) -> Acquire<Arc<Semaphore>> {
        Acquire::new(self, permits)
    }

    /// As [`acquire`](Self::acquire), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, before or during the wait.
    #[cfg(not(urgency_loom))]
    pub fn acquire_blocking(&self) -> Result<Permit<&Semaphore>, Closed> {
        self.acquire_many_blocking(1)
    }

    /// As [`acquire_many`](Self::acquire_many), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, before or during the wait.
    #[cfg(not(urgency_loom))]
    pub fn acquire_many_blocking(&self, permits: u32) -> Result<Permit<&Semaphore>, Closed> {
        above::check();
        match self.try_acquire_many(permits) {
            Ok(permit) => Ok(permit),
            Err(_) => crate::block_on(self.acquire_many(permits)),
        }
    }

    /// A permit, if one is free and nobody waits.
    ///
    /// # Errors
    ///
    /// If there is none, or the semaphore is closed.
    pub fn try_acquire(&self) -> Result<Permit<&Semaphore>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// So many permits, if they are free and nobody waits.
    ///
    /// # Errors
    ///
    /// If there are not so many, or the semaphore is closed.
    pub fn try_acquire_many(&self, permits: u32) -> Result<Permit<&Semaphore>, TryAcquireError> {
        self.try_take(permits.into())?;
        Ok(Permit {
            semaphore: self,
            permits: permits.into(),
        })
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), with a permit that keeps the semaphore alive.
    ///
    /// # Errors
    ///
    /// If there are not so many, or the semaphore is closed.
    pub fn try_acquire_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<Permit<Arc<Semaphore>>, TryAcquireError> {
        self.try_take(permits.into())?;
        Ok(Permit {
            semaphore: self,
            permits: permits.into(),
        })
    }

    /// Adds permits.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS) then.
    pub fn add_permits(&self, permits: u32) {
        self.give(permits.into());
    }

    /// From now on nobody gets a permit: who waits gets an error, and so does who comes later. What was acquired can be
    /// given back.
    pub fn close(&self) {
        let mut wakers = Wakers::default();
        {
            let mut queue = self.queue.lock();
            queue.change(|word| word | CLOSED);
            queue.grant_all(Err(Closed), &mut wakers);
        }
        wakers.wake();
    }

    /// Whether the semaphore is closed.
    pub fn is_closed(&self) -> bool {
        self.queue.word() & CLOSED != 0
    }

    fn take(word: u64, permits: u64) -> Option<u64> {
        (word & CLOSED == 0 && word >> SHIFT >= permits).then(|| word - permits * ONE)
    }

    /// Step 1.
    #[inline]
    pub(super) fn try_take(&self, permits: u64) -> Result<(), TryAcquireError> {
        match self.queue.update(|word| Self::take(word, permits)) {
            Ok(_) => Ok(()),
            Err(word) if word & CLOSED != 0 => Err(TryAcquireError::Closed),
            Err(_) => Err(TryAcquireError::NoPermits),
        }
    }

    /// A poll of a future that acquires: steps 1 and 2. Without a key it did not wait yet.
    #[inline]
    pub(super) fn poll_take(
        &self,
        permits: u64,
        key: &mut Option<Key>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        if key.is_none() {
            std::task::ready!(above::begin(cx));
            match self.try_take(permits) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(TryAcquireError::Closed) => return Poll::Ready(Err(Closed)),
                Err(TryAcquireError::NoPermits) => {}
            }
        }
        self.poll_take_cold(permits, key, cx)
    }

    #[cold]
    fn poll_take_cold(
        &self,
        permits: u64,
        key: &mut Option<Key>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        let waker = cx.waker().clone();
        let level = above::level();
        let mut wakers = Wakers::default();
        let mut queue = self.queue.lock();
        if key.is_none() {
            match queue.claim(|word| Self::take(word, permits)) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(word) if word & CLOSED != 0 => return Poll::Ready(Err(Closed)),
                Err(_) => {}
            }
            *key = Some(queue.enter(level, permits, waker.clone()));
            Self::serve(&mut queue, &mut wakers);
        }
        let (granted, unused) = queue.poll(key, waker);
        drop(queue);
        drop(unused);
        wakers.wake();
        match granted {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    /// Steps 3 and 4.
    #[inline]
    pub(super) fn give(&self, permits: u64) {
        if self
            .queue
            .update(|word| Some(Self::plus(word, permits)))
            .is_err()
        {
            self.give_cold(permits);
        }
    }

    fn plus(word: u64, permits: u64) -> u64 {
        assert!(
            (word >> SHIFT) + permits <= Self::MAX_PERMITS,
            "a semaphore has at most `Semaphore::MAX_PERMITS` permits"
        );
        word + permits * ONE
    }

    #[cold]
    fn give_cold(&self, permits: u64) {
        let mut wakers = Wakers::default();
        {
            let mut queue = self.queue.lock();
            queue.change(|word| Self::plus(word, permits));
            Self::serve(&mut queue, &mut wakers);
        }
        wakers.wake();
    }

    /// Step 4.
    fn serve(queue: &mut Locked<'_, u64, Result<(), Closed>>, wakers: &mut Wakers) {
        while let Some(&need) = queue.first()
            && queue.word() >> SHIFT >= need
        {
            queue.change(|word| word - need * ONE);
            let granted = queue.grant(Ok(()));
            wakers.push(granted.expect("looked at under the same lock").1);
        }
    }

    /// Step 5.
    #[cold]
    pub(super) fn leave(&self, permits: u64, key: Key) {
        let mut wakers = Wakers::default();
        let mut queue = self.queue.lock();
        let left = queue.leave(key);
        if let Left::Granted(Ok(())) = left {
            queue.change(|word| word + permits * ONE);
        }
        Self::serve(&mut queue, &mut wakers);
        drop(queue);
        drop(left);
        wakers.wake();
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.available_permits())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// The future of [`Semaphore::acquire`] and its relatives. `S` is how it knows the semaphore.
#[must_use = "futures do nothing unless awaited"]
pub struct Acquire<S: Deref<Target = Semaphore>> {
    /// Until there is a permit.
    semaphore: Option<S>,
    permits: u64,
    key: Option<Key>,
}

impl<S: Deref<Target = Semaphore>> Acquire<S> {
    fn new(semaphore: S, permits: u32) -> Self {
        Acquire {
            semaphore: Some(semaphore),
            permits: permits.into(),
            key: None,
        }
    }
}

impl<S: Deref<Target = Semaphore>> Unpin for Acquire<S> {}

impl<S: Deref<Target = Semaphore>> Future for Acquire<S> {
    type Output = Result<Permit<S>, Closed>;

    /// # Panics
    ///
    /// If it was ready before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let semaphore = this.semaphore.as_ref().expect("polled after it was ready");
        std::task::ready!(semaphore.poll_take(this.permits, &mut this.key, cx))?;
        let semaphore = this.semaphore.take().expect("looked at above");
        Poll::Ready(Ok(Permit {
            semaphore,
            permits: this.permits,
        }))
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Acquire<S> {
    fn drop(&mut self) {
        if let (Some(semaphore), Some(key)) = (&self.semaphore, self.key.take()) {
            semaphore.leave(self.permits, key);
        }
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Acquire<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("permits", &self.permits)
            .field("waits", &self.key.is_some())
            .finish()
    }
}

/// Acquired permits of a [`Semaphore`], given back when it is dropped. `S` is how it knows the semaphore: by reference, or
/// by an [`Arc`](std::sync::Arc).
#[must_use = "a permit that is dropped is given back"]
pub struct Permit<S: Deref<Target = Semaphore>> {
    semaphore: S,
    permits: u64,
}

impl<S: Deref<Target = Semaphore>> Permit<S> {
    /// How many permits it stands for.
    pub fn permits(&self) -> u64 {
        self.permits
    }

    /// Never gives them back: the semaphore has fewer permits from now on.
    ///
    /// ```
    /// let places = urgency::sync::Semaphore::new(3);
    /// places.try_acquire().unwrap().forget();
    /// assert_eq!(places.available_permits(), 2);
    /// ```
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Splits so many off, to be given back earlier or later than the rest. `None`: there are not so many.
    pub fn split(&mut self, permits: u32) -> Option<Permit<S>>
    where
        S: Clone,
    {
        let permits = u64::from(permits);
        self.permits = self.permits.checked_sub(permits)?;
        Some(Permit {
            semaphore: self.semaphore.clone(),
            permits,
        })
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Permit<S> {
    fn drop(&mut self) {
        if self.permits != 0 {
            self.semaphore.give(self.permits);
        }
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Permit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}
