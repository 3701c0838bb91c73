//! A channel from many senders to one receiver.
//!
//! [`bounded`] makes one that holds so many messages: a sender waits for a place, so that a slow consumer slows its
//! producers down (backpressure; Dissertation, 4.4.6). [`unbounded`] makes one in which sending never waits.
//!
//! # Protocol
//!
//! Everything is under one lock, held for a few dozen instructions: the messages, the senders that wait, the
//! receiver's waker. A *place* is room for one message: `taken` counts those that hold a message and those
//! handed to a sender that did not come yet.
//!
//! 1. *Send*: if nobody waits and there is a place, the message goes in. Otherwise the sender enters the
//!    queue. (A channel is never unfull while somebody waits.)
//! 2. *Receive*: a message goes out, and its place is handed to the sender whose turn it is.
//! 3. *Drop of a waiting sender*: a place that it was handed goes to the next.
//! 4. *Close*: by the receiver, or by its drop. All senders that wait, or were handed a place and did not
//!    come yet, get their messages back. When the last sender is gone, the receiver gets what is left, and
//!    then the end.
//!
//! An unbounded channel has no places to account for, so its receiver takes all messages at once and
//! goes through them without the lock.
//!
//! Rejected: a lock-free queue beside a semaphore, as Tokio has it. It costs three locked instructions for a
//! message instead of two, and a wake-up more for each place.

mod receiver;

pub use receiver::{Receiver, Recv};

use super::{
    above,
    error::{SendError, TrySendError},
    lists::{Key, Left, Lists, Wakers},
};
use crate::facade::{Arc, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A channel that holds at most `capacity` messages.
///
/// # Panics
///
/// If `capacity` is 0; for a hand-over without a place use [`oneshot`](super::oneshot).
///
/// ```
/// use urgency::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::bounded(8);
/// let producer = urgency::spawn(async move {
///     for n in 0..100 {
///         sender.send(n).await.expect("the receiver is there");
///     }
/// });
/// let mut sum = 0;
/// while let Some(n) = receiver.recv_blocking() {
///     sum += n;
/// }
/// assert_eq!(sum, 4950);
/// # producer.get()?;
/// # Ok::<(), urgency::WaitError>(())
/// ```
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(
        capacity > 0,
        "a bounded channel needs a capacity of 1 or more"
    );
    channel(capacity)
}

/// A channel in which sending never waits: its memory is the only limit.
///
/// ```
/// use urgency::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::unbounded();
/// sender.try_send("now")?;
/// assert_eq!(receiver.try_recv(), Ok("now"));
/// # Ok::<(), urgency::sync::TrySendError<&str>>(())
/// ```
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(UNBOUNDED)
}

const UNBOUNDED: usize = usize::MAX;

fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let channel = Arc::new(Channel {
        capacity,
        state: Mutex::new(State {
            messages: VecDeque::new(),
            taken: 0,
            waiting: Lists::new(),
            receiver: None,
            senders: 1,
            closed: false,
        }),
    });
    let sender = Sender {
        channel: channel.clone(),
    };
    (sender, Receiver::new(channel))
}

struct Channel<T> {
    capacity: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    messages: VecDeque<T>,
    /// Places with a message, and places that were handed over; until the channel is closed.
    taken: usize,
    /// A grant is a place; or nothing, if the channel was closed.
    waiting: Lists<(), ()>,
    receiver: Option<Waker>,
    senders: usize,
    closed: bool,
}

impl<T> Channel<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code of others runs under this lock; only a failed allocation panics, before anything was changed.
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn is_bounded(&self) -> bool {
        self.capacity != UNBOUNDED
    }
}

impl<T> State<T> {
    /// A message goes in, into a place that is accounted for.
    fn put(&mut self, message: T) -> Option<Waker> {
        self.messages.push_back(message);
        self.receiver.take()
    }

    /// A place is free: it goes to the sender whose turn it is.
    fn vacate(&mut self) -> Option<Waker> {
        match self.waiting.grant(()) {
            Some(((), waker)) => Some(waker),
            None => {
                self.taken -= 1;
                None
            }
        }
    }

    fn has_room(&self, capacity: usize) -> bool {
        self.taken < capacity && self.waiting.is_empty()
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        let mut wakers = Wakers::default();
        wakers.push(waker);
        wakers.wake();
    }
}

/// The sending side of a channel; clones send into the same one.
pub struct Sender<T> {
    channel: Arc<Channel<T>>,
}

impl<T> Sender<T> {
    /// Sends a message, after waiting for a place if the channel is full.
    ///
    /// # Errors
    ///
    /// The future's output is an error with the message if nobody receives any more.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it was ready, the message was not sent. A place that it had been handed goes to
    /// the next.
    pub fn send(&self, message: T) -> Send<'_, T> {
        Send {
            sender: self,
            message: Some(message),
            key: None,
        }
    }

    /// As [`send`](Self::send), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If nobody receives any more.
    #[cfg(not(urgency_loom))]
    pub fn send_blocking(&self, message: T) -> Result<(), SendError<T>> {
        match self.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(message)) => Err(SendError(message)),
            Err(TrySendError::Full(message)) => crate::block_on(self.send(message)),
        }
    }

    /// Sends a message if there is a place and nobody waits for one. In an unbounded channel there always is.
    ///
    /// # Errors
    ///
    /// With the message, if there is no place, or if nobody receives any more.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        above::check();
        let mut state = self.channel.lock();
        if state.closed {
            return Err(TrySendError::Closed(message));
        }
        if !state.has_room(self.channel.capacity) {
            return Err(TrySendError::Full(message));
        }
        state.taken += 1;
        let receiver = state.put(message);
        drop(state);
        wake(receiver);
        Ok(())
    }

    /// Whether nobody receives any more.
    pub fn is_closed(&self) -> bool {
        self.channel.lock().closed
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.channel, &other.channel)
    }

    fn poll_send(
        &self,
        slot: &mut Option<T>,
        key: &mut Option<Key>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        if key.is_none() {
            std::task::ready!(above::begin(cx));
            let message = slot.take().expect("polled after it was ready");
            match self.try_send(message) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(TrySendError::Closed(message)) => return Poll::Ready(Err(SendError(message))),
                Err(TrySendError::Full(message)) => *slot = Some(message),
            }
        }
        self.poll_send_cold(slot, key, cx)
    }

    #[cold]
    fn poll_send_cold(
        &self,
        slot: &mut Option<T>,
        key: &mut Option<Key>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let waker = cx.waker().clone();
        let level = above::level();
        let _unused;
        let mut state = self.channel.lock();
        if key.is_some() {
            let (granted, unused) = state.waiting.poll(key, waker);
            _unused = unused;
            if granted.is_none() {
                return Poll::Pending;
            }
        } else if state.closed {
        } else if state.has_room(self.channel.capacity) {
            state.taken += 1;
        } else {
            *key = Some(state.waiting.enter(level, (), waker));
            return Poll::Pending;
        }
        let message = slot.take().expect("kept until there is a place");
        if state.closed {
            return Poll::Ready(Err(SendError(message)));
        }
        let receiver = state.put(message);
        drop(state);
        wake(receiver);
        Poll::Ready(Ok(()))
    }

    /// Step 3.
    #[cold]
    fn leave(&self, key: Key) {
        let mut state = self.channel.lock();
        let left = state.waiting.leave(key);
        let next = match left {
            Left::Granted(()) if !state.closed => state.vacate(),
            _ => None,
        };
        drop(state);
        drop(left);
        wake(next);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.channel.lock().senders += 1;
        Sender {
            channel: self.channel.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        state.senders -= 1;
        let receiver = if state.senders == 0 {
            state.receiver.take()
        } else {
            None
        };
        drop(state);
        wake(receiver);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The future of [`Sender::send`].
#[must_use = "futures do nothing unless awaited"]
pub struct Send<'a, T> {
    sender: &'a Sender<T>,
    /// Until it is sent. Never pinned.
    message: Option<T>,
    key: Option<Key>,
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
            self.sender.leave(key);
        }
    }
}

impl<T> fmt::Debug for Send<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Send")
            .field("waits", &self.key.is_some())
            .finish_non_exhaustive()
    }
}
