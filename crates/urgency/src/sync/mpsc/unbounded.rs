//! The two sides of a channel in which sending never waits. They differ from a bounded channel's by a constant: they
//! have no methods that could wait for a place, or that concern a capacity.

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
    with_capacity(UNBOUNDED)
}

/// The sending side of an unbounded channel; clones send into the same one.
pub type UnboundedSender<T> = Sender<T, false>;

/// The receiving side of an unbounded channel: it has the methods of a [`Receiver`], but for what concerns a capacity.
pub type UnboundedReceiver<T> = Receiver<T, false>;

/// A sender that does not keep the channel open: it becomes an [`UnboundedSender`] while there is one.
///
/// ```
/// use urgency::sync::mpsc::{WeakUnboundedSender, unbounded_channel};
///
/// let (sender, mut receiver) = unbounded_channel();
/// let weak: WeakUnboundedSender<u32> = sender.downgrade();
/// weak.upgrade().expect("there is a sender").send(1)?;
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(receiver.try_recv(), Ok(1));
/// # Ok::<_, urgency::sync::mpsc::error::SendError<u32>>(())
/// ```
pub type WeakUnboundedSender<T> = WeakSender<T, false>;

impl<T> UnboundedSender<T> {
    /// Sends a message, at once.
    ///
    /// # Errors
    ///
    /// With the message, if nobody receives any more.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.send_now(message).map_err(|error| match error {
            TrySendError::Closed(message) => SendError(message),
            TrySendError::Full(_) => unreachable!("an unbounded channel is never full"),
        })
    }
}
