//! A channel in which each receiver gets each message.
//!
//! Messages have consecutive numbers. Under one lock are the last `capacity` of them, each with the number of receivers that still
//! want it; a receiver knows the number of its next. A message that nobody wants any more leaves. If the channel is full, the oldest
//! message leaves, and a receiver that wanted it has *lagged*: sending never waits, so one slow receiver does not hold up the
//! others. Whoever wants backpressure uses an [`mpsc`](super::mpsc) for each receiver.
//!
//! A message is shared until it is received (portions.rs): the clone is made without the lock, and the last receiver gets the message
//! itself. A receiver takes several messages out at a time; they count as received.
//!
//! Rejected: slots that receivers take from without the lock, by one compare-and-swap, and that keep their memory. Nobody blocks on the lock then, but two workers
//! were no faster for it (88 and 91 ns a message for each of 4 receivers), and one was slower (32 and 30).

use super::{
    above,
    error::SendError,
    notify::Notify,
    portions::{Portion, Portions},
};
use std::{
    collections::VecDeque,
    error::Error,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard},
};

/// A receiver takes so many messages out under one lock.
const BATCH: usize = 16;

struct Channel<T> {
    capacity: usize,
    state: Mutex<State<T>>,
    changed: Notify,
}

struct State<T> {
    /// Each in portions for those who want it still.
    messages: VecDeque<Portions<T>>,
    /// The number of the first of `messages`.
    first: u64,
    senders: usize,
    receivers: usize,
}

impl<T> State<T> {
    /// The number of the next message.
    fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// Removes what nobody wants any more. It is freed by who has its last portion.
    fn pop_unwanted(&mut self) {
        while self.messages.front().is_some_and(|m| m.count() == 0) {
            self.messages.pop_front();
            self.first += 1;
        }
    }
}

impl<T> Channel<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code of others runs under this lock; only a failed allocation panics, before anything was changed.
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn subscribe(self: &Arc<Self>) -> Receiver<T> {
        let mut state = self.lock();
        state.receivers += 1;
        Receiver {
            channel: self.clone(),
            next: state.next(),
            batch: VecDeque::new(),
        }
    }

    /// Takes up to [`BATCH`] messages from the number `next` on for one receiver, which goes on to the next. Returns the first.
    fn take(
        &self,
        next: &mut u64,
        batch: &mut VecDeque<Portion<T>>,
    ) -> Result<Portion<T>, TryRecvError> {
        if let Some(message) = batch.pop_front() {
            return Ok(message);
        }
        let mut state = self.lock();
        if *next < state.first {
            let missed = state.first - *next;
            *next = state.first;
            return Err(TryRecvError::Lagged(missed));
        }
        let place = (*next - state.first) as usize;
        let end = state.messages.len().min(place + BATCH);
        if place >= end {
            return Err(match state.senders {
                0 => TryRecvError::Closed,
                _ => TryRecvError::Empty,
            });
        }
        *next += (end - place) as u64;
        let messages = state.messages.range_mut(place..end);
        batch.extend(messages.map(Portions::take));
        state.pop_unwanted();
        Ok(batch.pop_front().expect("there was one"))
    }
}

/// A channel that keeps the last `capacity` messages for receivers that did not get them yet.
///
/// # Panics
///
/// If `capacity` is 0.
///
/// ```
/// use urgency::sync::broadcast;
///
/// let (sender, mut one) = broadcast::channel(16);
/// let mut two = sender.subscribe();
/// sender.send("hello").expect("somebody receives");
/// assert_eq!(one.recv_blocking(), Ok("hello"));
/// assert_eq!(two.recv_blocking(), Ok("hello"));
/// ```
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(
        capacity > 0,
        "a broadcast channel needs a capacity of 1 or more"
    );
    let channel = Arc::new(Channel {
        capacity,
        state: Mutex::new(State {
            messages: VecDeque::new(),
            first: 0,
            senders: 1,
            receivers: 1,
        }),
        changed: Notify::new(),
    });
    let sender = Sender {
        channel: channel.clone(),
    };
    let receiver = Receiver {
        channel,
        next: 0,
        batch: VecDeque::new(),
    };
    (sender, receiver)
}

/// The sending side; clones send into the same channel.
pub struct Sender<T> {
    channel: Arc<Channel<T>>,
}

impl<T> Sender<T> {
    /// Sends a message to all receivers that there are now. Never waits. Returns how many they are.
    ///
    /// # Errors
    ///
    /// With the message, if there is none.
    pub fn send(&self, message: T) -> Result<usize, SendError<T>> {
        above::check();
        let _oldest;
        let mut state = self.channel.lock();
        let wanted = state.receivers;
        if wanted == 0 {
            return Err(SendError(message));
        }
        if state.messages.len() == self.channel.capacity {
            _oldest = state.messages.pop_front();
            state.first += 1;
        }
        state.messages.push_back(Portions::new(message, wanted));
        drop(state);
        self.channel.changed.notify_all();
        Ok(wanted)
    }

    /// A new receiver, of the messages that are sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        self.channel.subscribe()
    }

    /// How many messages are kept for receivers that did not get them yet.
    pub fn len(&self) -> usize {
        self.channel.lock().messages.len()
    }

    /// Whether no message is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.channel.lock().receivers
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
        let last = state.senders == 0;
        drop(state);
        if last {
            self.channel.changed.notify_all();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("receivers", &self.receiver_count())
            .finish_non_exhaustive()
    }
}

/// The receiving side; each gets every message.
pub struct Receiver<T> {
    channel: Arc<Channel<T>>,
    /// The number of the next message that it wants.
    next: u64,
    /// Messages that it took out, but did not give yet.
    batch: VecDeque<Portion<T>>,
}

impl<T> Receiver<T> {
    /// How many messages it could receive now.
    pub fn len(&self) -> usize {
        let state = self.channel.lock();
        let left = state.next().saturating_sub(self.next.max(state.first));
        self.batch.len() + left as usize
    }

    /// Whether it could receive no message now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A new receiver, of the messages that are sent from now on.
    pub fn resubscribe(&self) -> Receiver<T> {
        self.channel.subscribe()
    }
}

impl<T: Clone> Receiver<T> {
    /// The next message, if there is one.
    ///
    /// # Errors
    ///
    /// If there is none now, or will be none, or if it was too slow.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        above::check();
        let taken = self.channel.take(&mut self.next, &mut self.batch);
        taken.map(Portion::into_value)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// If it was too slow and messages were dropped, with their number: the next call gives the oldest that is
    /// left. If all senders are gone and all messages were received.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no message.
    pub async fn recv(&mut self) -> Result<T, RecvError> {
        poll_fn(|cx| above::begin(cx)).await;
        let Receiver {
            channel,
            next,
            batch,
        } = self;
        if let Some(message) = batch.pop_front() {
            return Ok(message.into_value());
        }
        loop {
            let changed = channel.changed.notified();
            match channel.take(next, batch) {
                Ok(message) => return Ok(message.into_value()),
                Err(TryRecvError::Lagged(missed)) => return Err(RecvError::Lagged(missed)),
                Err(TryRecvError::Closed) => return Err(RecvError::Closed),
                Err(TryRecvError::Empty) => changed.await,
            }
        }
    }

    /// As [`recv`](Self::recv), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    pub fn recv_blocking(&mut self) -> Result<T, RecvError> {
        crate::block_on(self.recv())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        state.receivers -= 1;
        let from = self.next.saturating_sub(state.first) as usize;
        let unwanted = state.messages.range_mut(from..).map(Portions::take);
        self.batch.extend(unwanted);
        state.pop_unwanted();
        // The portions are given back without the lock: the drop of a message is anybody's code.
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Why a receiver got no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// It was too slow: so many messages were dropped before it came to them.
    Lagged(u64),
    /// There is no message, and nobody is left who could send one.
    Closed,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Lagged(missed) => write!(
                f,
                "the receiver was too slow for the channel's capacity, and {missed} message(s) were dropped \
                 before it came to them"
            ),
            RecvError::Closed => super::RecvError.fmt(f),
        }
    }
}

impl Error for RecvError {}

/// Why a receiver got no message at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is none now.
    Empty,
    /// As [`RecvError::Lagged`].
    Lagged(u64),
    /// As [`RecvError::Closed`].
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TryRecvError::Empty => super::TryRecvError::Empty.fmt(f),
            TryRecvError::Lagged(missed) => RecvError::Lagged(missed).fmt(f),
            TryRecvError::Closed => RecvError::Closed.fmt(f),
        }
    }
}

impl Error for TryRecvError {}
