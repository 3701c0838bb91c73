//! The receiving side: step 2 of the channel's protocol, and step 4.
//!
//! Of a bounded channel it takes one message at a time, and hands the place on. Of an unbounded one it takes
//! all there are, and goes through its *batch* without the lock.

use super::{Channel, State};
use crate::{
    sync::{error::mpsc::TryRecvError, hooks, lists::Wakers},
    sys::primitives::Arc,
};
use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// The receiving side of a [`channel`](super::channel), or of an [`unbounded_channel`](super::unbounded_channel) if
/// `BOUNDED` is false: then it is written [`UnboundedReceiver<T>`](super::UnboundedReceiver).
pub struct Receiver<T, const BOUNDED: bool = true> {
    channel: Arc<Channel<T>>,
    /// Messages of an unbounded channel that were taken out, but not yet received.
    batch: VecDeque<T>,
}

impl<T, const BOUNDED: bool> Receiver<T, BOUNDED> {
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
    /// ```
    /// use urgency::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// urgency::spawn(async move { sender.send("hello").await }).detach();
    /// urgency::block_on(async {
    ///     assert_eq!(receiver.recv().await, Some("hello"));
    ///     assert_eq!(receiver.recv().await, None, "all senders are gone");
    /// });
    /// ```
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no message.
    pub fn recv(&mut self) -> Recv<'_, T, BOUNDED> {
        Recv { receiver: self }
    }

    /// As [`recv`](Self::recv), for closures and plain threads.
    #[cfg(not(urgency_loom))]
    pub fn blocking_recv(&mut self) -> Option<T> {
        match self.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => crate::block_on(self.recv()),
        }
    }

    /// The next message, if there is one.
    ///
    /// # Errors
    ///
    /// If there is none now, or will be none.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        hooks::check();
        if let Some(message) = self.batch.pop_front() {
            return Ok(message);
        }
        self.take(None).0
    }

    /// The form for hand-written futures: [`recv`](Self::recv) as a poll.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        std::task::ready!(hooks::begin(cx));
        if let Some(message) = self.batch.pop_front() {
            return Poll::Ready(Some(message));
        }
        match self.take(None).0 {
            Ok(message) => return Poll::Ready(Some(message)),
            Err(TryRecvError::Disconnected) => return Poll::Ready(None),
            Err(TryRecvError::Empty) => {}
        }
        let (result, _unused) = self.take(Some(cx.waker().clone()));
        match result {
            Ok(message) => Poll::Ready(Some(message)),
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
            Err(TryRecvError::Empty) => Poll::Pending,
        }
    }

    /// Waits for messages, and adds up to `limit` of them to `buffer`. Returns how many: 0 if there will be none, and
    /// if `limit` is 0.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no message, and none was added then.
    ///
    /// ```
    /// use urgency::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(8);
    /// (0..3).for_each(|n| sender.try_send(n).unwrap());
    /// let mut all = Vec::new();
    /// urgency::block_on(receiver.recv_many(&mut all, 10));
    /// assert_eq!(all, [0, 1, 2]);
    /// receiver.close();
    /// assert!(sender.try_send(3).is_err());
    /// ```
    pub async fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        poll_fn(|cx| self.poll_recv_many(cx, buffer, limit)).await
    }

    /// As [`recv_many`](Self::recv_many), for closures and plain threads.
    #[cfg(not(urgency_loom))]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        crate::block_on(self.recv_many(buffer, limit))
    }

    /// The form for hand-written futures: [`recv_many`](Self::recv_many) as a poll.
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        if limit == 0 {
            return Poll::Ready(0);
        }
        let Some(first) = std::task::ready!(self.poll_recv(cx)) else {
            return Poll::Ready(0);
        };
        buffer.push(first);
        let mut count = 1;
        let batched = self.batch.len().min(limit - count);
        buffer.extend(self.batch.drain(..batched));
        count += batched;
        if count < limit {
            let mut wakers = Wakers::default();
            let mut state = self.channel.state.lock();
            let more = state.messages.len().min(limit - count);
            buffer.extend(state.messages.drain(..more));
            self.channel.vacate(&mut state, more, &mut wakers);
            drop(state);
            wakers.wake();
            count += more;
        }
        Poll::Ready(count)
    }

    /// Step 2. With a waker, which is to be woken if there is no message. A waker that is not needed comes
    /// back, to be dropped without the lock.
    fn take(&mut self, waker: Option<Waker>) -> (Result<T, TryRecvError>, Option<Waker>) {
        let mut state = self.channel.state.lock();
        if let Some(message) = state.messages.pop_front() {
            if !BOUNDED {
                std::mem::swap(&mut self.batch, &mut state.messages);
                state.taken = 0;
            } else if state.waiting.is_empty() {
                state.taken -= 1;
            } else {
                let mut wakers = Wakers::default();
                self.channel.vacate(&mut state, 1, &mut wakers);
                drop(state);
                wakers.wake();
            }
            return (Ok(message), waker);
        }
        if state.is_over() {
            return (Err(TryRecvError::Disconnected), waker);
        }
        let before = match waker {
            Some(waker) => state.receiver.replace(waker),
            None => None,
        };
        (Err(TryRecvError::Empty), before)
    }

    /// Step 5: from now on no send can begin. What was sent before can be received, and what is sent into a place that
    /// was reserved before. A sender that was handed a place and did not come yet has reserved nothing: it gets its
    /// message back, and the receiver learns of the end at once (under Tokio, when the sender has come).
    pub fn close(&mut self) {
        self.end(|_| ());
    }

    fn end<R>(&mut self, last: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut wakers = Wakers::default();
        let (watched, result) = {
            let mut state = self.channel.state.lock();
            state.closed = true;
            state.waiting.grant_all(false, &mut wakers);
            (std::mem::take(&mut state.watched), last(&mut state))
        };
        wakers.wake();
        if watched {
            self.channel.end.notify_waiters();
        }
        result
    }

    /// Whether no send can begin: the channel was closed, or all senders are gone.
    pub fn is_closed(&self) -> bool {
        let state = self.channel.state.lock();
        state.closed || state.senders == 0
    }

    /// How many messages could be received now.
    pub fn len(&self) -> usize {
        self.batch.len() + self.channel.state.lock().messages.len()
    }

    /// Whether no message could be received now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many senders there are.
    pub fn sender_strong_count(&self) -> usize {
        self.channel.state.lock().senders
    }

    /// How many weak senders there are.
    pub fn sender_weak_count(&self) -> usize {
        self.channel.state.lock().weak
    }
}

impl<T> Receiver<T> {
    /// How many messages could be sent now without waiting: none while a sender waits.
    pub fn capacity(&self) -> usize {
        let capacity = self.channel.capacity;
        self.channel.state.lock().free_places(capacity)
    }

    /// How many messages the channel holds at most.
    pub fn max_capacity(&self) -> usize {
        self.channel.capacity
    }
}

/// A panic leaves no message half received.
impl<T, const BOUNDED: bool> RefUnwindSafe for Receiver<T, BOUNDED> {}
impl<T, const BOUNDED: bool> UnwindSafe for Receiver<T, BOUNDED> {}

// SAFETY: what takes `&self` counts messages, and gives no reference to one. The channel's part is under its lock; the
// batch changes through `&mut self` only.
unsafe impl<T: Send, const BOUNDED: bool> Sync for Receiver<T, BOUNDED> {}

/// Messages are never pinned.
impl<T, const BOUNDED: bool> Unpin for Receiver<T, BOUNDED> {}

/// The messages, until all senders are gone or the channel is closed.
#[cfg(feature = "stream")]
impl<T, const BOUNDED: bool> futures_core::Stream for Receiver<T, BOUNDED> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(cx)
    }
}

impl<T, const BOUNDED: bool> Drop for Receiver<T, BOUNDED> {
    fn drop(&mut self) {
        let (messages, waker) = self.end(|state| {
            state.abandoned = true;
            let messages = std::mem::take(&mut state.messages);
            state.taken -= messages.len();
            (messages, state.receiver.take())
        });
        drop(messages);
        drop(waker);
    }
}

debug_struct!([T, const BOUNDED: bool] Receiver<T, BOUNDED>, |it| len: it.len());

/// The future of [`Receiver::recv`].
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, T, const BOUNDED: bool = true> {
    receiver: &'a mut Receiver<T, BOUNDED>,
}

impl<T, const BOUNDED: bool> Future for Recv<'_, T, BOUNDED> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.receiver.poll_recv(cx)
    }
}

debug_struct!([T, const BOUNDED: bool] Recv<'_, T, BOUNDED>);
