//! The future of a bounded channel's `send`.

use super::{waiter::Waiter, wake};
use crate::sync::{
    error::{SendError, TrySendError},
    hooks,
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The future of [`Sender::send`](super::Sender::send).
#[must_use = "futures do nothing unless awaited"]
pub struct Send<'a, T> {
    pub(super) waiter: Waiter<'a, T>,
    /// Until it is sent. Never pinned.
    pub(super) message: Option<T>,
}

impl<T> Unpin for Send<'_, T> {}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    /// # Panics
    ///
    /// If it was ready before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Send { waiter, message } = &mut *self;
        if !waiter.waits() {
            ready!(hooks::begin(cx));
            let now = message.take().expect("polled after it was ready");
            match waiter.sender.try_send(now) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(TrySendError::Closed(now)) => return Poll::Ready(Err(SendError(now))),
                Err(TrySendError::Full(now)) => *message = Some(now),
            }
        }
        let mut message = || message.take().expect("kept until there is a place");
        let sent = ready!(waiter.poll(cx, |state| state.put(message())));
        Poll::Ready(sent.map(wake).map_err(|()| SendError(message())))
    }
}

debug_struct!([T] Send<'_, T>, |it| waits: it.waiter.waits());
