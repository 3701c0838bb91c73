//! Senders that do not keep their channel open.

use super::{Channel, Sender};
use std::{fmt, sync::Arc};

/// A sender that does not keep the channel open: it becomes a [`Sender`] while there is one.
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
