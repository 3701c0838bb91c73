//! The future of a bounded channel's `send`.

use super::Sender;
use crate::sync::{error::SendError, lists::Key};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// The future of [`Sender::send`].
#[must_use = "futures do nothing unless awaited"]
pub struct Send<'a, T> {
    pub(super) sender: &'a Sender<T>,
    /// Until it is sent. Never pinned.
    pub(super) message: Option<T>,
    pub(super) key: Option<Key>,
}

impl<T> Unpin for Send<'_, T> {}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    /// # Panics
    ///
    /// If it was ready before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.sender.poll_send(&mut this.message, &mut this.key, cx)
    }
}

impl<T> Drop for Send<'_, T> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.sender.leave(1, key);
        }
    }
}

debug_struct!([T] Send<'_, T>, |it| waits: it.key.is_some());
