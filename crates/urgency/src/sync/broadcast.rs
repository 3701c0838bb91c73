//! A channel in which each receiver gets each message.
//!
//! Messages have consecutive numbers. Under one lock are the last `capacity` messages, each with the number of
//! receivers that still want it. A receiver knows the number of its next message. A message leaves when no receiver
//! wants it any more. If the channel is full, the oldest message leaves, and a receiver that still wanted it has
//! *lagged*: sending never waits, so one slow receiver does not hold up the others. A program that needs backpressure
//! uses an [`mpsc`](super::mpsc) for each receiver.
//!
//! A message is shared until it is received (message.rs): the clone is made without the lock, by one receiver at a
//! time, so a message need not be `Sync`. The last receiver gets the message itself. A receiver takes several messages
//! out at a time; they count as received. The allocation of a message is used again.
//!
//! A receiver that waits has said so under the lock (`waits`), and a sender announces a message only if a receiver
//! waits. So a sender whose receivers are behind touches nothing but what the lock guards.
//!
//! Rejected: slots that receivers take from without the lock, by one compare-and-swap, and that keep their memory. Then
//! no thread blocks on the lock, but two workers were no faster for it (88 and 91 ns a message for each of 4 receivers,
//! when each message was still announced), and one worker was slower (32 and 30).

pub use super::error::broadcast as error;
use super::{
    hooks,
    message::{Message, MessageRef, Spare},
    notify::Notify,
    weak::counted_senders,
};
use crate::sys::mutex::Mutex;
use crossbeam_utils::CachePadded;
use error::{RecvError, SendError, TryRecvError};
use std::{
    collections::VecDeque,
    mem,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// A receiver takes so many messages out under one lock.
const BATCH: usize = 16;

struct Channel<T> {
    capacity: usize,
    /// On lines of its own: a sender takes them from the receivers' processor for each message.
    state: CachePadded<Mutex<State<T>>>,
    changed: Notify,
    /// The last receiver went.
    abandoned: Notify,
}

/// No code of others runs while the state is half changed.
impl<T> RefUnwindSafe for Channel<T> {}
impl<T> UnwindSafe for Channel<T> {}

struct State<T> {
    /// Each message in portions for the receivers that still want it.
    messages: VecDeque<Message<T>>,
    /// The number of the first of `messages`.
    first: u64,
    senders: usize,
    weak: usize,
    receivers: usize,
    /// A receiver waits, or was about to.
    waits: bool,
    /// For messages to come; no more than there were at one time.
    spares: Vec<Spare<T>>,
}

impl<T> State<T> {
    /// The number of the next message.
    fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// Removes the messages that no receiver wants any more. The receiver with the last portion of a message frees it.
    fn pop_unwanted(&mut self) {
        while self.messages.front().is_some_and(|m| m.count() == 0) {
            self.messages.pop_front();
            self.first += 1;
        }
    }
}

impl<T> Channel<T> {
    fn subscribe(self: &Arc<Self>) -> Receiver<T> {
        let mut state = self.state.lock();
        state.receivers += 1;
        Receiver {
            channel: self.clone(),
            taken: Taken {
                next: state.next(),
                batch: VecDeque::new(),
                spares: Vec::new(),
            },
        }
    }

    /// Takes up to [`BATCH`] messages out for one receiver, which goes on to the next. Returns the first. If
    /// there is none, the receiver waits, if it `would_wait`.
    fn take(&self, taken: &mut Taken<T>, would_wait: bool) -> Result<T, TryRecvError>
    where
        T: Clone,
    {
        if let Some(message) = taken.pop() {
            return Ok(message);
        }
        let Taken {
            next,
            batch,
            spares,
        } = taken;
        let mut state = self.state.lock();
        state.spares.append(spares);
        if *next < state.first {
            let missed = state.first - *next;
            *next = state.first;
            return Err(TryRecvError::Lagged(missed));
        }
        let place = (*next - state.first) as usize;
        let end = state.messages.len().min(place + BATCH);
        if place >= end {
            if state.senders == 0 {
                return Err(TryRecvError::Closed);
            }
            state.waits |= would_wait;
            return Err(TryRecvError::Empty);
        }
        *next += (end - place) as u64;
        let messages = state.messages.range_mut(place..end);
        batch.extend(messages.map(Message::take));
        state.pop_unwanted();
        drop(state);
        Ok(taken.pop().expect("there was one"))
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
/// assert_eq!(one.blocking_recv(), Ok("hello"));
/// assert_eq!(two.blocking_recv(), Ok("hello"));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// The sending side; clones send into the same channel.
pub struct Sender<T> {
    channel: Arc<Channel<T>>,
}

impl<T> Sender<T> {
    /// A channel as [`channel()`] makes it, without a receiver.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or more than half of `usize::MAX`.
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        assert!(
            capacity > 0,
            "a broadcast channel needs a capacity of 1 or more"
        );
        assert!(
            capacity <= usize::MAX / 2,
            "a broadcast channel's capacity is at most `usize::MAX / 2`"
        );
        Sender {
            channel: Arc::new(Channel {
                capacity,
                state: CachePadded::new(Mutex::new(State {
                    messages: VecDeque::new(),
                    first: 0,
                    senders: 1,
                    weak: 0,
                    receivers: 0,
                    waits: false,
                    spares: Vec::new(),
                })),
                changed: Notify::new(),
                abandoned: Notify::new(),
            }),
        }
    }

    /// Sends a message to all receivers that there are now. Returns how many they are. Never waits for a receiver, but
    /// for the clone of the oldest message that one may be making, if that message has to leave.
    ///
    /// # Errors
    ///
    /// With the message, if there is none.
    pub fn send(&self, message: T) -> Result<usize, SendError<T>> {
        hooks::check();
        let _oldest;
        let mut state = self.channel.state.lock();
        let wanted = state.receivers;
        if wanted == 0 {
            return Err(SendError(message));
        }
        if state.messages.len() == self.channel.capacity {
            _oldest = state.messages.pop_front();
            state.first += 1;
        }
        let spare = state.spares.pop();
        let message = Message::new(spare, message, wanted);
        state.messages.push_back(message);
        let waits = mem::take(&mut state.waits);
        drop(state);
        if waits {
            self.channel.changed.notify_waiters();
        }
        Ok(wanted)
    }

    /// A new receiver, of the messages that are sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        self.channel.subscribe()
    }

    /// How many messages are kept for receivers that did not get them yet.
    pub fn len(&self) -> usize {
        self.channel.state.lock().messages.len()
    }

    /// Whether no message is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.channel.state.lock().receivers
    }

    /// Waits until there is no receiver. Dropping the future changes nothing.
    pub async fn closed(&self) {
        hooks::begun().await;
        let is_abandoned = || (self.receiver_count() == 0).then_some(());
        self.channel.abandoned.until(is_abandoned).await;
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.channel.state.lock();
        state.senders -= 1;
        let last = state.senders == 0;
        drop(state);
        if last {
            self.channel.changed.notify_waiters();
        }
    }
}

debug_struct!([T] Sender<T>, |it| receivers: it.receiver_count());

counted_senders! {
    /// A sender that does not keep the channel open: it becomes a [`Sender`] while there is one.
}

/// The receiving side; each gets every message.
pub struct Receiver<T> {
    channel: Arc<Channel<T>>,
    taken: Taken<T>,
}

/// A panic leaves no message half received.
impl<T> RefUnwindSafe for Receiver<T> {}
impl<T> UnwindSafe for Receiver<T> {}

/// What a receiver has taken out.
struct Taken<T> {
    /// The number of the first message that it has not.
    next: u64,
    /// Messages that it did not give yet.
    batch: VecDeque<MessageRef<T>>,
    spares: Vec<Spare<T>>,
}

impl<T: Clone> Taken<T> {
    /// The next message, if it is here.
    fn pop(&mut self) -> Option<T> {
        let (message, spare) = self.batch.pop_front()?.into_value();
        self.spares.extend(spare);
        Some(message)
    }
}

impl<T> Receiver<T> {
    /// How many messages it could receive now.
    pub fn len(&self) -> usize {
        let state = self.channel.state.lock();
        let from = self.taken.next.max(state.first);
        let left = state.next().saturating_sub(from);
        self.taken.batch.len() + left as usize
    }

    /// Whether it could receive no message now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all senders are gone.
    pub fn is_closed(&self) -> bool {
        self.channel.state.lock().senders == 0
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.channel, &other.channel)
    }

    /// How many senders there are.
    pub fn sender_strong_count(&self) -> usize {
        self.channel.state.lock().senders
    }

    /// How many weak senders there are.
    pub fn sender_weak_count(&self) -> usize {
        self.channel.state.lock().weak
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
        hooks::check();
        self.channel.take(&mut self.taken, false)
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
        hooks::begun().await;
        let Receiver { channel, taken } = self;
        if let Some(message) = taken.pop() {
            return Ok(message);
        }
        let next = || match channel.take(taken, true) {
            Ok(message) => Some(Ok(message)),
            Err(TryRecvError::Lagged(missed)) => Some(Err(RecvError::Lagged(missed))),
            Err(TryRecvError::Closed) => Some(Err(RecvError::Closed)),
            Err(TryRecvError::Empty) => None,
        };
        channel.changed.until(next).await
    }

    /// As [`recv`](Self::recv), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        crate::block_on(self.recv())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.channel.state.lock();
        state.receivers -= 1;
        let from = self.taken.next.saturating_sub(state.first) as usize;
        let unwanted = state.messages.range_mut(from..).map(Message::take);
        self.taken.batch.extend(unwanted);
        state.pop_unwanted();
        let last = state.receivers == 0;
        drop(state);
        if last {
            self.channel.abandoned.notify_waiters();
        }
        // The portions are given back without the lock: the drop of a message may be the program's code.
    }
}

debug_struct!([T] Receiver<T>, |it| len: it.len());
