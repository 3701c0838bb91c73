//! What a user has of a [`Semaphore`]: a future that waits for permits, and permits.
//!
//! Both know the semaphore by any pointer, so that they borrow it or keep it alive. They follow the protocol of
//! semaphore.rs: a future that is dropped leaves the queue (step 5), and permits that are dropped are given back (step
//! 3).

use super::{
    error::AcquireError,
    semaphore::{Place, Semaphore},
};
use std::{
    future::Future,
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// The future of [`Semaphore::acquire`] and its relatives. `S` is how it knows the semaphore.
#[must_use = "futures do nothing unless awaited"]
pub struct Acquire<S: Deref<Target = Semaphore>> {
    /// Until there is a permit.
    semaphore: Option<S>,
    permits: u64,
    place: Option<Place>,
}

impl<S: Deref<Target = Semaphore>> Acquire<S> {
    pub(super) fn new(semaphore: S, permits: u32) -> Self {
        Acquire {
            semaphore: Some(semaphore),
            permits: permits.into(),
            place: None,
        }
    }
}

impl<S: Deref<Target = Semaphore>> Unpin for Acquire<S> {}

impl<S: Deref<Target = Semaphore>> Future for Acquire<S> {
    type Output = Result<Permit<S>, AcquireError>;

    /// # Panics
    ///
    /// If it was ready before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let semaphore = this.semaphore.as_ref().expect("polled after it was ready");
        std::task::ready!(semaphore.poll_take(this.permits, &mut this.place, cx))?;
        let semaphore = this.semaphore.take().expect("looked at above");
        Poll::Ready(Ok(Permit::new(semaphore, this.permits)))
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Acquire<S> {
    fn drop(&mut self) {
        if let (Some(semaphore), Some(place)) = (&self.semaphore, self.place.take()) {
            semaphore.leave(self.permits, place);
        }
    }
}

debug_struct!(
    [S: Deref<Target = Semaphore>] Acquire<S>,
    |it| permits: it.permits, waits: it.place.is_some()
);

/// Permits that borrow their semaphore.
pub type SemaphorePermit<'a> = Permit<&'a Semaphore>;
/// Permits that keep their semaphore alive.
///
/// ```
/// use std::sync::Arc;
/// use urgency::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
///
/// let semaphore = Arc::new(Semaphore::new(3));
/// let borrowed: SemaphorePermit<'_> = semaphore.try_acquire_many(2).unwrap();
/// let owned: OwnedSemaphorePermit = semaphore.clone().try_acquire_owned().unwrap();
/// assert_eq!((borrowed.num_permits(), owned.num_permits()), (2, 1));
/// ```
pub type OwnedSemaphorePermit = Permit<Arc<Semaphore>>;

/// Acquired permits of a [`Semaphore`], given back when it is dropped. `S` is how it knows the semaphore: by
/// reference, or by an [`Arc`](std::sync::Arc).
#[must_use = "a permit that is dropped is given back"]
pub struct Permit<S: Deref<Target = Semaphore>> {
    semaphore: S,
    permits: u64,
}

impl<S: Deref<Target = Semaphore>> Permit<S> {
    /// The caller has taken them.
    pub(super) fn new(semaphore: S, permits: u64) -> Self {
        Permit { semaphore, permits }
    }

    /// How many permits it stands for.
    pub fn num_permits(&self) -> usize {
        self.permits as usize
    }

    /// Takes the permits of another one in, to be given back together.
    ///
    /// # Panics
    ///
    /// If the other one is of another semaphore.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            std::ptr::eq(&raw const *self.semaphore, &raw const *other.semaphore),
            "permits of two semaphores cannot be merged"
        );
        self.permits += std::mem::take(&mut other.permits);
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
    ///
    /// ```
    /// use urgency::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// let mut three = semaphore.try_acquire_many(3).unwrap();
    /// let one = three.split(1).unwrap();
    /// assert!(three.split(5).is_none());
    /// three.merge(one);
    /// drop(three);
    /// semaphore.add_permits(1);
    /// assert_eq!(semaphore.available_permits(), 4);
    /// semaphore.close();
    /// assert!(semaphore.try_acquire().is_err());
    /// ```
    pub fn split(&mut self, permits: usize) -> Option<Permit<S>>
    where
        S: Clone,
    {
        let permits = permits as u64;
        self.permits = self.permits.checked_sub(permits)?;
        Some(Permit::new(self.semaphore.clone(), permits))
    }
}

impl<'a> SemaphorePermit<'a> {
    /// The semaphore whose permits they are.
    pub fn semaphore(&self) -> &'a Semaphore {
        self.semaphore
    }
}

impl OwnedSemaphorePermit {
    /// The semaphore whose permits they are.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Permit<S> {
    fn drop(&mut self) {
        if self.permits != 0 {
            self.semaphore.give(self.permits);
        }
    }
}

debug_struct!([S: Deref<Target = Semaphore>] Permit<S>, |it| permits: it.permits);
