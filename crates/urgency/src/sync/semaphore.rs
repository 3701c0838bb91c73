//! `Semaphore`: so many at a time.
//!
//! # The word
//!
//! Bit 0 is the queue's, bit 1 says closed, above them is the number of free permits. While the queue has waiters there
//! may be free permits: fewer than the waiter whose turn it is needs. They are kept for it, or for a more urgent waiter
//! that needs fewer. Otherwise a waiter for many permits would starve behind many waiters for one.
//!
//! # Protocol
//!
//! 1. *Acquire*: one compare-and-swap, if the queue is empty and there are enough permits.
//! 2. Otherwise, under the lock: claim (queue.rs, rule 3), enter, and [`serve`](Semaphore::serve): a newcomer may be
//!    more urgent than the waiters, and the free permits may suffice for it.
//! 3. *Release*: one compare-and-swap if the queue is empty; otherwise, under the lock: add and serve.
//! 4. *Serve*: as long as the free permits suffice for the waiter whose turn it is, take them, take the waiter out of
//!    the queue and tell it (grant.rs). Permits that go from hand to hand are never in the word.
//! 5. *Drop of a waiter*: if it was granted permits, release them; if not, serve, since the next waiter may need fewer.
//!
//! So a permit that is waited for costs the lock twice, to enter and to hand over. With a third time, by the woken
//! waiter, that waiter found the lock taken: with 2 workers, 8 tasks and 2 permits a quarter of the time went into
//! waiting for the lock. Without it the whole takes a seventh less.
//!
//! Rejected: offers, as the mutex has them (raw.rs). A permit is mostly held across a wait. Then the
//! overtaker has it still when the waiter comes, which takes the lock to say so: four times for two permits
//! as well, and less order.

use super::{
    error::{AcquireError, TryAcquireError},
    grant::{Grant, Refused},
    hooks,
    lists::{Key, Wakers},
    permit::{Acquire, Permit},
    queue::{Locked, QUEUED, WaitQueue},
};
use std::{
    sync::Arc,
    task::{Context, Poll},
};

const CLOSED: u64 = 2;
const SHIFT: u32 = 2;
const ONE: u64 = 1 << SHIFT;

/// A number of permits to be acquired and given back; see [`mod@crate::sync`] for what holds for all primitives.
///
/// There is no priority inheritance: any code may give a permit back, or add one, so it is not known which task a
/// waiter waits for. Data that several levels share is guarded by a [`Mutex`](super::Mutex).
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
///     Ok::<(), urgency::sync::AcquireError>(())
/// })?;
/// # Ok::<(), urgency::sync::AcquireError>(())
/// ```
pub struct Semaphore {
    queue: WaitQueue<Waiter>,
}

/// What a waiter waits for, and where it is told. It is refused when the semaphore is closed.
struct Waiter {
    permits: u64,
    grant: Grant,
}

/// A place in the queue, until the waiter is told.
pub(super) struct Place {
    key: Key,
    grant: Grant,
}

type Queue<'a> = Locked<'a, Waiter, ()>;

impl Semaphore {
    /// The most permits that a semaphore can have.
    ///
    /// ```
    /// use urgency::sync::Semaphore;
    ///
    /// // One that never makes anything wait.
    /// let open = Semaphore::new(Semaphore::MAX_PERMITS);
    /// assert!(open.try_acquire().is_ok());
    /// ```
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    const_fn! {
        /// A semaphore with so many permits.
        ///
        /// # Panics
        ///
        /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        #[track_caller]
        pub fn new(permits: usize) -> Self {
            assert!(
                permits <= Self::MAX_PERMITS,
                "a semaphore has at most `Semaphore::MAX_PERMITS` permits"
            );
            Semaphore {
                queue: WaitQueue::new((permits as u64) << SHIFT),
            }
        }
    }

    const_fn! {
        /// As [`new`](Self::new), under the name for statics in programs that were written for Tokio.
        pub fn const_new(permits: usize) -> Self {
            Self::new(permits)
        }
    }

    /// How many permits are free now. Some may be kept for a waiter that needs more.
    pub fn available_permits(&self) -> usize {
        (self.queue.word() >> SHIFT) as usize
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

    /// As [`acquire`](Self::acquire), with a permit that keeps the semaphore alive instead of borrowing it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use urgency::sync::Semaphore;
    ///
    /// let places = Arc::new(Semaphore::new(1));
    /// let permit = urgency::block_on(places.clone().acquire_owned())?;
    /// let task = urgency::spawn(async move { drop(permit) });
    /// assert!(places.blocking_acquire().is_ok());
    /// # task.get().unwrap();
    /// # Ok::<(), urgency::sync::AcquireError>(())
    /// ```
    pub fn acquire_owned(self: Arc<Self>) -> Acquire<Arc<Semaphore>> {
        Acquire::new(self, 1)
    }

    /// As [`acquire_many`](Self::acquire_many), with a permit that keeps the semaphore alive instead of borrowing it.
    pub fn acquire_many_owned(self: Arc<Self>, permits: u32) -> Acquire<Arc<Semaphore>> {
        Acquire::new(self, permits)
    }

    /// As [`acquire`](Self::acquire), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, before or during the wait.
    #[cfg(not(urgency_loom))]
    pub fn blocking_acquire(&self) -> Result<Permit<&Semaphore>, AcquireError> {
        self.blocking_acquire_many(1)
    }

    /// As [`acquire_many`](Self::acquire_many), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, before or during the wait.
    #[cfg(not(urgency_loom))]
    pub fn blocking_acquire_many(&self, permits: u32) -> Result<Permit<&Semaphore>, AcquireError> {
        hooks::check();
        match self.try_acquire_many(permits) {
            Ok(permit) => Ok(permit),
            Err(_) => crate::block_on(self.acquire_many(permits)),
        }
    }

    /// As [`acquire_owned`](Self::acquire_owned), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, before or during the wait.
    #[cfg(not(urgency_loom))]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<Permit<Arc<Semaphore>>, AcquireError> {
        self.blocking_acquire_many_owned(1)
    }

    /// As [`acquire_many_owned`](Self::acquire_many_owned), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, before or during the wait.
    #[cfg(not(urgency_loom))]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<Permit<Arc<Semaphore>>, AcquireError> {
        hooks::check();
        if self.try_take(permits.into()).is_ok() {
            return Ok(Permit::new(self, permits.into()));
        }
        crate::block_on(self.acquire_many_owned(permits))
    }

    /// A permit, if one is free and nothing waits.
    ///
    /// # Errors
    ///
    /// If there is none, or the semaphore is closed.
    pub fn try_acquire(&self) -> Result<Permit<&Semaphore>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// So many permits, if they are free and nothing waits.
    ///
    /// # Errors
    ///
    /// If there are not so many, or the semaphore is closed.
    pub fn try_acquire_many(&self, permits: u32) -> Result<Permit<&Semaphore>, TryAcquireError> {
        self.try_take(permits.into())?;
        Ok(Permit::new(self, permits.into()))
    }

    /// As [`try_acquire`](Self::try_acquire), with a permit that keeps the semaphore alive.
    ///
    /// # Errors
    ///
    /// If there is none, or the semaphore is closed.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<Permit<Arc<Semaphore>>, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), with a permit that keeps the semaphore alive.
    ///
    /// # Errors
    ///
    /// If there are not so many, or the semaphore is closed.
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<Permit<Arc<Semaphore>>, TryAcquireError> {
        self.try_take(permits.into())?;
        Ok(Permit::new(self, permits.into()))
    }

    /// Adds permits.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS) then.
    pub fn add_permits(&self, permits: usize) {
        self.give(permits as u64);
    }

    /// Takes so many of the free permits away, or as many as there are. Returns how many. Permits that are kept for a
    /// waiter that wants more are free.
    ///
    /// ```
    /// let places = urgency::sync::Semaphore::new(3);
    /// assert_eq!(places.forget_permits(2), 2);
    /// assert_eq!(places.forget_permits(2), 1);
    /// ```
    pub fn forget_permits(&self, permits: usize) -> usize {
        let forgotten = |word: u64| (word >> SHIFT).min(permits as u64);
        let change = |word: u64| word - forgotten(word) * ONE;
        let before = match self.queue.update(|word| Some(change(word))) {
            Ok(before) => before,
            Err(_) => self.queue.lock().change(change),
        };
        forgotten(before) as usize
    }

    /// From now on no permit is acquired: all present and later waiters get an error. A waiter to which its permits
    /// were handed over before has them, also if it is polled only later. Permits that were acquired can be given back.
    pub fn close(&self) {
        let mut wakers = Wakers::default();
        {
            let mut queue = self.queue.lock();
            queue.change(|word| word | CLOSED);
            while let Some((waiter, waker)) = queue.take_first() {
                waiter.grant.say(Err(Refused));
                wakers.push(waker);
            }
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
            // No permit is needed, so there is nothing to wait for.
            Err(_) if permits == 0 => Ok(()),
            Err(_) => Err(TryAcquireError::NoPermits),
        }
    }

    /// A poll of a future that acquires: steps 1 and 2. Without a place it did not wait yet.
    #[inline]
    pub(super) fn poll_take(
        &self,
        permits: u64,
        place: &mut Option<Place>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), AcquireError>> {
        if place.is_some() {
            return self.poll_waiting(place, cx);
        }
        std::task::ready!(hooks::begin(cx));
        match self.try_take(permits) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TryAcquireError::Closed) => Poll::Ready(Err(AcquireError(()))),
            Err(TryAcquireError::NoPermits) => self.enter(permits, place, cx),
        }
    }

    /// Step 2.
    #[cold]
    fn enter(
        &self,
        permits: u64,
        place: &mut Option<Place>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), AcquireError>> {
        let waker = cx.waker().clone();
        let level = hooks::level();
        let grant = Grant::new(hooks::ready_stamp());
        let waiter = Waiter {
            permits,
            grant: grant.clone(),
        };
        let mut wakers = Wakers::default();
        let mut queue = self.queue.lock();
        match queue.claim(|word| Self::take(word, permits)) {
            Ok(_) => return Poll::Ready(Ok(())),
            Err(word) if word & CLOSED != 0 => return Poll::Ready(Err(AcquireError(()))),
            Err(_) => {}
        }
        let key = queue.enter(level, waiter, waker);
        Self::serve(&mut queue, 0, &mut wakers);
        drop(queue);
        *place = Some(Place { key, grant });
        wakers.wake();
        Self::heard(place)
    }

    /// A later poll.
    #[inline]
    fn poll_waiting(
        &self,
        place: &mut Option<Place>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), AcquireError>> {
        let heard = Self::heard(place);
        if heard.is_ready() {
            return heard;
        }
        let waker = cx.waker().clone();
        let mut queue = self.queue.lock();
        let heard = Self::heard(place);
        if let (Poll::Pending, Some(place)) = (&heard, &place) {
            let unused = queue.set_waker(&place.key, waker);
            drop(queue);
            drop(unused);
        }
        heard
    }

    /// What the waiter was told; its place is gone then.
    #[inline]
    fn heard(place: &mut Option<Place>) -> Poll<Result<(), AcquireError>> {
        match place.as_ref().and_then(|place| place.grant.heard()) {
            None => Poll::Pending,
            Some(decided) => {
                if let Some(place) = place.take() {
                    hooks::lock_waited(place.grant.since());
                }
                Poll::Ready(decided.map_err(|Refused| AcquireError(())))
            }
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
        let sum = (word >> SHIFT).checked_add(permits);
        assert!(
            sum.is_some_and(|sum| sum <= Self::MAX_PERMITS as u64),
            "a semaphore has at most `Semaphore::MAX_PERMITS` permits"
        );
        word + permits * ONE
    }

    #[cold]
    fn give_cold(&self, permits: u64) {
        let mut wakers = Wakers::default();
        Self::serve(&mut self.queue.lock(), permits, &mut wakers);
        wakers.wake();
    }

    /// Step 4, with so many permits more.
    fn serve(queue: &mut Queue<'_>, given: u64, wakers: &mut Wakers) {
        if queue.word() & QUEUED == 0 {
            queue.change(|word| Self::plus(word, given));
            return;
        }
        // While the queue has a waiter, the word is the lock holder's.
        let word = queue.word();
        let sum = Self::plus(word, given);
        let mut left = sum;
        while let Some(waiter) = queue.first()
            && left >> SHIFT >= waiter.permits
        {
            left -= waiter.permits * ONE;
            let (waiter, waker) = queue.take_first().expect("it is the first");
            waiter.grant.say(Ok(()));
            wakers.push(waker);
        }
        if left != word {
            queue.change(|_| left);
        }
    }

    /// Step 5.
    #[cold]
    pub(super) fn leave(&self, permits: u64, place: Place) {
        hooks::lock_waited(place.grant.since());
        let mut wakers = Wakers::default();
        // Dropped without the lock.
        let _left;
        {
            let mut queue = self.queue.lock();
            match place.grant.heard() {
                Some(Ok(())) => Self::serve(&mut queue, permits, &mut wakers),
                Some(Err(Refused)) => {}
                None => {
                    _left = queue.leave(place.key);
                    Self::serve(&mut queue, 0, &mut wakers);
                }
            }
        }
        wakers.wake();
    }
}

debug_struct!(Semaphore, |it| available_permits: it.available_permits(), closed: it.is_closed());
