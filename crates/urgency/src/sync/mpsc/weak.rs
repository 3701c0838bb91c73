//! Senders that do not keep their channel open.

use super::{Channel, Sender, UnboundedSender};
use crate::sys::primitives::Arc;
use std::fmt;

/// A sender that does not keep the channel open: it becomes a [`Sender`] while there is one.
///
/// ```
/// use urgency::sync::mpsc;
///
/// let (sender, _receiver) = mpsc::channel::<u32>(1);
/// let weak = sender.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// ```
pub struct WeakSender<T> {
    channel: Arc<Channel<T>>,
}

impl<T> WeakSender<T> {
    pub(super) fn new(channel: &Arc<Channel<T>>) -> Self {
        channel.lock().weak += 1;
        WeakSender {
            channel: channel.clone(),
        }
    }

    /// A sender, if there is one still.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let mut state = self.channel.lock();
        if state.senders == 0 {
            return None;
        }
        state.senders += 1;
        drop(state);
        Some(Sender {
            channel: self.channel.clone(),
        })
    }

    /// How many senders there are.
    pub fn strong_count(&self) -> usize {
        self.channel.lock().senders
    }

    /// How many weak senders there are.
    pub fn weak_count(&self) -> usize {
        self.channel.lock().weak
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender::new(&self.channel)
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.channel.lock().weak -= 1;
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

/// A sender that does not keep the channel open: it becomes an [`UnboundedSender`] while there is one.
pub struct WeakUnboundedSender<T>(pub(super) WeakSender<T>);

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
