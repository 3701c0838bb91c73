//! The receiving side: step 2 of the channel's protocol, and step 4.
//!
//! Of a bounded channel it takes one message at a time, and hands the place on. Of an unbounded one it takes
//! all there are, and goes through its *batch* without the lock.

use super::{Channel, wake};
use crate::{
    facade::Arc,
    sync::{above, error::TryRecvError, lists::Wakers},
};
use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// The receiving side of a channel.
pub struct Receiver<T> {
    channel: Arc<Channel<T>>,
    /// Messages of an unbounded channel that were taken out, but not yet received.
    batch: VecDeque<T>,
}

impl<T> Receiver<T> {
    /// The only one.
    pub(super) fn new(channel: Arc<Channel<T>>) -> Self {
        Receiver {
            channel,
            batch: VecDeque::new(),
        }
    }

    /// Waits for the next message. `None`: all senders are gone, or the channel was closed, and all messages
    /// were received.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no message.
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv { receiver: self }
    }

    /// As [`recv`](Self::recv), for closures and plain threads.
    #[cfg(not(urgency_loom))]
    pub fn recv_blocking(&mut self) -> Option<T> {
        match self.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Closed) => None,
            Err(TryRecvError::Empty) => crate::block_on(self.recv()),
        }
    }

    /// The next message, if there is one.
    ///
    /// # Errors
    ///
    /// If there is none now, or will be none.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        above::check();
        if let Some(message) = self.batch.pop_front() {
            return Ok(message);
        }
        self.take(None).0
    }

    /// The form for hand-written futures: [`recv`](Self::recv) as a poll.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        std::task::ready!(above::begin(cx));
        if let Some(message) = self.batch.pop_front() {
            return Poll::Ready(Some(message));
        }
        match self.take(None).0 {
            Ok(message) => return Poll::Ready(Some(message)),
            Err(TryRecvError::Closed) => return Poll::Ready(None),
            Err(TryRecvError::Empty) => {}
        }
        let (result, _unused) = self.take(Some(cx.waker().clone()));
        match result {
            Ok(message) => Poll::Ready(Some(message)),
            Err(TryRecvError::Closed) => Poll::Ready(None),
            Err(TryRecvError::Empty) => Poll::Pending,
        }
    }

    /// Step 2. With a waker, which is to be woken if there is no message. A waker that is not needed comes
    /// back, to be dropped without the lock.
    fn take(&mut self, waker: Option<Waker>) -> (Result<T, TryRecvError>, Option<Waker>) {
        let mut state = self.channel.lock();
        if let Some(message) = state.messages.pop_front() {
            let next = if self.channel.is_bounded() {
                state.vacate()
            } else {
                std::mem::swap(&mut self.batch, &mut state.messages);
                state.taken = 0;
                None
            };
            drop(state);
            wake(next);
            return (Ok(message), waker);
        }
        if state.senders == 0 || state.closed {
            return (Err(TryRecvError::Closed), waker);
        }
        let before = match waker {
            Some(waker) => state.receiver.replace(waker),
            None => None,
        };
        (Err(TryRecvError::Empty), before)
    }

    /// Step 4: from now on nobody can send. What was sent before can be received.
    pub fn close(&mut self) {
        let mut wakers = Wakers::default();
        {
            let mut state = self.channel.lock();
            state.closed = true;
            state.waiting.grant_all((), &mut wakers);
        }
        wakers.wake();
    }

    /// How many messages could be received now.
    pub fn len(&self) -> usize {
        self.batch.len() + self.channel.lock().messages.len()
    }

    /// Whether no message could be received now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Messages are never pinned.
impl<T> Unpin for Receiver<T> {}

/// The messages, until all senders are gone or the channel is closed.
#[cfg(feature = "stream")]
impl<T> futures_core::Stream for Receiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(cx)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.close();
        let (messages, waker) = {
            let mut state = self.channel.lock();
            (std::mem::take(&mut state.messages), state.receiver.take())
        };
        drop(messages);
        drop(waker);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// The future of [`Receiver::recv`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.receiver.poll_recv(cx)
    }
}
