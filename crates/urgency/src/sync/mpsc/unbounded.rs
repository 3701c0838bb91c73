//! The two sides of a channel in which sending never waits: a bounded channel's sides, without the methods that could
//! wait.

use super::{Receiver, Recv, Sender, UNBOUNDED, WeakSender, with_capacity};
use crate::sync::error::{SendError, TrySendError, mpsc::TryRecvError};
use std::{
    fmt,
    task::{Context, Poll},
};

/// A channel in which sending never waits: its memory is the only limit.
///
/// ```
/// use urgency::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::unbounded_channel();
/// sender.send("now")?;
/// assert_eq!(receiver.try_recv(), Ok("now"));
/// # Ok::<(), urgency::sync::mpsc::error::SendError<&str>>(())
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = with_capacity(UNBOUNDED);
    (UnboundedSender(sender), UnboundedReceiver(receiver))
}

/// The sending side of an unbounded channel; clones send into the same one.
pub struct UnboundedSender<T>(pub(super) Sender<T>);

impl<T> UnboundedSender<T> {
    /// Sends a message, at once.
    ///
    /// # Errors
    ///
    /// With the message, if nobody receives any more.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.try_send(message).map_err(|error| match error {
            TrySendError::Closed(message) => SendError(message),
            TrySendError::Full(_) => unreachable!("an unbounded channel is never full"),
        })
    }

    /// Waits until nobody receives any more: the receiver was dropped or has closed the channel.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    /// Whether nobody receives any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &UnboundedSender<T>) -> bool {
        self.0.same_channel(&other.0)
    }

    /// A sender that does not keep the channel open.
    #[must_use = "a weak sender does nothing by itself"]
    pub fn downgrade(&self) -> WeakUnboundedSender<T> {
        WeakUnboundedSender(self.0.downgrade())
    }

    /// How many senders there are.
    pub fn strong_count(&self) -> usize {
        self.0.strong_count()
    }

    /// How many weak senders there are.
    pub fn weak_count(&self) -> usize {
        self.0.weak_count()
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        UnboundedSender(self.0.clone())
    }
}

/// The receiving side of an unbounded channel. What its methods do is said at the methods of [`Receiver`].
pub struct UnboundedReceiver<T>(Receiver<T>);

impl<T> UnboundedReceiver<T> {
    /// See [`Receiver::recv`].
    pub fn recv(&mut self) -> Recv<'_, T> {
        self.0.recv()
    }

    /// See [`Receiver::recv_many`].
    pub async fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        self.0.recv_many(buffer, limit).await
    }

    /// See [`Receiver::try_recv`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.0.try_recv()
    }

    /// See [`Receiver::blocking_recv`].
    #[cfg(not(urgency_loom))]
    pub fn blocking_recv(&mut self) -> Option<T> {
        self.0.blocking_recv()
    }

    /// See [`Receiver::blocking_recv_many`].
    #[cfg(not(urgency_loom))]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        self.0.blocking_recv_many(buffer, limit)
    }

    /// See [`Receiver::poll_recv`].
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(cx)
    }

    /// See [`Receiver::poll_recv_many`].
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.0.poll_recv_many(cx, buffer, limit)
    }

    /// See [`Receiver::close`].
    pub fn close(&mut self) {
        self.0.close();
    }

    /// See [`Receiver::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// See [`Receiver::len`].
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// See [`Receiver::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// See [`Receiver::sender_strong_count`].
    pub fn sender_strong_count(&self) -> usize {
        self.0.sender_strong_count()
    }

    /// See [`Receiver::sender_weak_count`].
    pub fn sender_weak_count(&self) -> usize {
        self.0.sender_weak_count()
    }
}

/// The messages, until all senders are gone or the channel is closed.
#[cfg(feature = "stream")]
impl<T> futures_core::Stream for UnboundedReceiver<T> {
    type Item = T;

    fn poll_next(self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(cx)
    }
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A sender that does not keep the channel open: it becomes an [`UnboundedSender`] while there is one.
pub struct WeakUnboundedSender<T>(WeakSender<T>);

impl<T> WeakUnboundedSender<T> {
    /// A sender, if there is one still.
    pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
        self.0.upgrade().map(UnboundedSender)
    }

    /// How many senders there are.
    pub fn strong_count(&self) -> usize {
        self.0.strong_count()
    }

    /// How many weak senders there are.
    pub fn weak_count(&self) -> usize {
        self.0.weak_count()
    }
}

impl<T> Clone for WeakUnboundedSender<T> {
    fn clone(&self) -> Self {
        WeakUnboundedSender(self.0.clone())
    }
}

impl<T> fmt::Debug for WeakUnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
