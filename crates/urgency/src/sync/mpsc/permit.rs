//! Places in a channel that are taken before there is a message for them.

use super::{Sender, waiter::Waiter, wake};
use crate::sync::{
    error::{SendError, TrySendError},
    hooks,
};
use std::{future::poll_fn, iter::FusedIterator, mem::ManuallyDrop};

impl<T> Sender<T> {
    /// Waits for a place, to send into it later.
    ///
    /// # Errors
    ///
    /// If nobody receives any more.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue; a place in the channel that it had been handed goes to the
    /// next.
    ///
    /// ```
    /// use urgency::sync::mpsc;
    ///
    /// urgency::block_on(async {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     let permit = sender.reserve().await?;
    ///     assert!(sender.try_send(2).is_err());
    ///     permit.send(1);
    ///     assert_eq!(receiver.recv().await, Some(1));
    ///     Ok::<(), mpsc::error::SendError<()>>(())
    /// })?;
    /// # Ok::<(), mpsc::error::SendError<()>>(())
    /// ```
    pub async fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        self.take_places(1).await?;
        Ok(Permit { sender: self })
    }

    /// Waits for so many places at once, to send into them later.
    ///
    /// ```
    /// use urgency::sync::mpsc;
    ///
    /// urgency::block_on(async {
    ///     let (sender, mut receiver) = mpsc::channel(4);
    ///     let permits = sender.reserve_many(2).await?;
    ///     for (permit, message) in permits.zip(["one", "two"]) {
    ///         permit.send(message); // never waits
    ///     }
    ///     assert_eq!(receiver.recv().await, Some("one"));
    ///     Ok::<_, mpsc::error::SendError<()>>(())
    /// })?;
    /// # Ok::<_, urgency::sync::mpsc::error::SendError<()>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If nobody receives any more, or if the channel never has so many places.
    ///
    /// # Cancellation
    ///
    /// As [`reserve`](Self::reserve).
    pub async fn reserve_many(
        &self,
        places: usize,
    ) -> Result<PermitIterator<'_, T>, SendError<()>> {
        if places > self.max_capacity() {
            return Err(SendError(()));
        }
        self.take_places(places).await?;
        Ok(PermitIterator {
            sender: self,
            places,
        })
    }

    /// As [`reserve`](Self::reserve), with a permit that keeps the sender.
    ///
    /// # Errors
    ///
    /// If nobody receives any more.
    ///
    /// # Cancellation
    ///
    /// As [`reserve`](Self::reserve); the sender is dropped.
    pub async fn reserve_owned(self) -> Result<OwnedPermit<T>, SendError<()>> {
        self.take_places(1).await?;
        Ok(OwnedPermit { sender: Some(self) })
    }

    /// A place, if there is one and no sender waits.
    ///
    /// # Errors
    ///
    /// If there is none, or nobody receives any more.
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.try_take_places(1)?;
        Ok(Permit { sender: self })
    }

    /// So many places, if there are as many and no sender waits. For none there is nothing to wait for.
    ///
    /// # Errors
    ///
    /// If there are not so many, or nobody receives any more. Of a closed channel it says so, for more places than the
    /// channel has as well; Tokio's says that it is full.
    pub fn try_reserve_many(
        &self,
        places: usize,
    ) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        self.try_take_places(places)?;
        Ok(PermitIterator {
            sender: self,
            places,
        })
    }

    /// As [`try_reserve`](Self::try_reserve), with a permit that keeps the sender.
    ///
    /// # Errors
    ///
    /// With the sender, if there is no place, or nobody receives any more.
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        match self.try_take_places(1) {
            Ok(()) => Ok(OwnedPermit { sender: Some(self) }),
            Err(TrySendError::Full(())) => Err(TrySendError::Full(self)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(self)),
        }
    }

    fn try_take_places(&self, places: usize) -> Result<(), TrySendError<()>> {
        hooks::check();
        let mut state = self.channel.state.lock();
        if state.closed {
            return Err(TrySendError::Closed(()));
        }
        if !state.has_room(places, self.channel.capacity) {
            return Err(TrySendError::Full(()));
        }
        state.taken += places;
        state.reserved += places;
        Ok(())
    }

    async fn take_places(&self, places: usize) -> Result<(), SendError<()>> {
        hooks::begun().await;
        let mut waiter = Waiter::new(self, places);
        let taken = poll_fn(|cx| waiter.poll(cx, |state| state.reserved += places)).await;
        taken.map_err(SendError)
    }

    /// Sends into a reserved place.
    fn send_reserved(&self, message: T) {
        let mut unwanted = None;
        let mut state = self.channel.state.lock();
        state.reserved -= 1;
        let receiver = if state.abandoned {
            state.taken -= 1;
            unwanted = Some(message);
            None
        } else {
            state.put(message)
        };
        drop(state);
        wake(receiver);
        drop(unwanted);
    }
}

/// A reserved place in a channel, given up if it is dropped: see [`Sender::reserve`].
#[must_use = "a permit that is dropped gives its place up"]
pub struct Permit<'a, T> {
    sender: &'a Sender<T>,
}

impl<T> Permit<'_, T> {
    /// Sends a message into the place. It is lost if nobody receives any more.
    pub fn send(self, message: T) {
        let this = ManuallyDrop::new(self);
        this.sender.send_reserved(message);
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.sender.channel.release(1);
    }
}

debug_struct!([T] Permit<'_, T>);

/// Reserved places in a channel, given up if it is dropped: see [`Sender::reserve_many`].
#[must_use = "permits that are dropped give their places up"]
pub struct PermitIterator<'a, T> {
    sender: &'a Sender<T>,
    places: usize,
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.places = self.places.checked_sub(1)?;
        Some(Permit {
            sender: self.sender,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.places, Some(self.places))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        if self.places > 0 {
            self.sender.channel.release(self.places);
        }
    }
}

debug_struct!([T] PermitIterator<'_, T>, |it| places: it.places);

/// A reserved place in a channel that keeps its sender, given up if it is dropped: see [`Sender::reserve_owned`].
#[must_use = "a permit that is dropped gives its place up"]
pub struct OwnedPermit<T> {
    /// Until it is used.
    sender: Option<Sender<T>>,
}

impl<T> OwnedPermit<T> {
    /// Sends a message into the place. It is lost if nobody receives any more.
    pub fn send(mut self, message: T) -> Sender<T> {
        let sender = self.take();
        sender.send_reserved(message);
        sender
    }

    /// Gives the place up.
    ///
    /// ```
    /// use urgency::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u32>(1);
    /// let permit = sender.try_reserve_owned().unwrap();
    /// let sender = permit.release();
    /// assert_eq!(sender.capacity(), 1);
    /// ```
    pub fn release(mut self) -> Sender<T> {
        let sender = self.take();
        sender.channel.release(1);
        sender
    }

    /// Whether both are for the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        match (&self.sender, &other.sender) {
            (Some(one), Some(other)) => one.same_channel(other),
            _ => false,
        }
    }

    /// Whether it is for the channel of this sender.
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.sender
            .as_ref()
            .is_some_and(|own| own.same_channel(sender))
    }

    fn take(&mut self) -> Sender<T> {
        self.sender.take().expect("it is used once")
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.channel.release(1);
        }
    }
}

debug_struct!([T] OwnedPermit<T>);
