//! The two sides of a channel in which sending never waits. The sender is a bounded channel's, without the methods that
//! could wait; the receiver differs from a bounded channel's by a constant only.

use super::{Receiver, Sender, UNBOUNDED, WeakSender, with_capacity};
use crate::sync::error::{SendError, TrySendError};

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
    (UnboundedSender(sender), receiver)
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

/// The receiving side of an unbounded channel: it has the methods of a [`Receiver`], but for what concerns a capacity.
pub type UnboundedReceiver<T> = Receiver<T, false>;

debug_struct!([T] UnboundedSender<T>, |it| closed: it.is_closed());

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

debug_struct!([T] WeakUnboundedSender<T>);
