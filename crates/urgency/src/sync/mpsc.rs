//! A channel from many senders to one receiver.
//!
//! [`channel()`] makes one that holds so many messages: a sender waits for a place, so that a slow consumer slows its
//! producers down (backpressure; Dissertation, 4.4.6). [`unbounded_channel`] makes one in which sending never waits.
//!
//! # Protocol
//!
//! Everything is under one lock, held for a few dozen instructions: the messages, the senders that wait, the receiver's
//! waker. A *place* is room for one message: `taken` counts the places that hold a message, the places handed to a
//! sender that did not come yet, and the places that a permit holds (`reserved`).
//!
//! 1. *Send*: if no sender waits and there is a place, the message goes in. Otherwise the sender enters the queue.
//!    *Reserve* takes places in the same way, and makes permits of them; a send with a permit never waits.
//! 2. *Receive*: a message goes out, and its place becomes free.
//! 3. *Serve*: free places are handed to the sender whose turn it is, as soon as there are as many as it needs.
//! 4. *Drop of a waiting sender or of a permit*: the places that were handed to it become free.
//! 5. *Close*: by the receiver, or by its drop. All senders that wait, or were handed a place and did not
//!    come yet, get their messages back; permits stay good. When the last sender is gone, or the channel is closed
//!    and no permit is left, the receiver gets what is left, and then the end.
//!
//! An unbounded channel has no places to account for, so its receiver takes all messages at once and
//! goes through them without the lock.
//!
//! Rejected: a lock-free queue beside a semaphore, as Tokio has it. It costs three locked instructions for a
//! message instead of two, and a wake-up more for each place.

mod permit;
mod receiver;
mod send;
mod unbounded;
mod waiter;

pub use super::error::mpsc as error;
pub use permit::{OwnedPermit, Permit, PermitIterator};
pub use receiver::{Receiver, Recv};
pub use send::Send;
pub use unbounded::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};

use self::waiter::Waiter;
use super::{
    error::{SendError, TrySendError},
    hooks,
    lists::{Lists, Wakers, wake_one},
    notify::Notify,
    weak::counted_senders,
};
use crate::sys::{mutex::Mutex, primitives::Arc};
use std::{
    collections::VecDeque,
    panic::{RefUnwindSafe, UnwindSafe},
    task::Waker,
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
/// let (sender, mut receiver) = mpsc::channel(8);
/// let producer = urgency::spawn(async move {
///     for n in 0..100 {
///         sender.send(n).await.expect("the receiver is there");
///     }
/// });
/// let mut sum = 0;
/// while let Some(n) = receiver.blocking_recv() {
///     sum += n;
/// }
/// assert_eq!(sum, 4950);
/// # producer.get()?;
/// # Ok::<(), urgency::JoinError>(())
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(
        capacity > 0,
        "a bounded channel needs a capacity of 1 or more"
    );
    assert!(
        capacity <= super::Semaphore::MAX_PERMITS,
        "a channel's capacity is at most `Semaphore::MAX_PERMITS`"
    );
    with_capacity(capacity)
}

const UNBOUNDED: usize = usize::MAX;

fn with_capacity<T, const BOUNDED: bool>(
    capacity: usize,
) -> (Sender<T, BOUNDED>, Receiver<T, BOUNDED>) {
    let channel = Arc::new(Channel {
        capacity,
        state: Mutex::new(State {
            messages: VecDeque::new(),
            taken: 0,
            reserved: 0,
            waiting: Lists::new(),
            receiver: None,
            senders: 1,
            weak: 0,
            closed: false,
            abandoned: false,
            watched: false,
        }),
        end: Notify::new(),
    });
    let sender = Sender {
        channel: channel.clone(),
    };
    (sender, Receiver::new(channel))
}

struct Channel<T> {
    capacity: usize,
    state: Mutex<State<T>>,
    /// Notified when the channel is closed, if `watched`.
    end: Notify,
}

/// No code of others runs while the state is half changed.
impl<T> RefUnwindSafe for Channel<T> {}
impl<T> UnwindSafe for Channel<T> {}

struct State<T> {
    messages: VecDeque<T>,
    /// Places with a message, places that were handed over, and `reserved` ones.
    taken: usize,
    /// Places that permits hold.
    reserved: usize,
    /// Each needs so many places. A grant says whether it has them; if not, the channel was closed.
    waiting: Lists<usize, bool>,
    receiver: Option<Waker>,
    senders: usize,
    weak: usize,
    /// No send can begin any more.
    closed: bool,
    /// The receiver was dropped.
    abandoned: bool,
    /// A sender has asked to be told of the end.
    watched: bool,
}

impl<T> Channel<T> {
    /// Steps 3 and 4: so many places are free.
    fn vacate(&self, state: &mut State<T>, places: usize, wakers: &mut Wakers) {
        state.taken -= places;
        while let Some(&need) = state.waiting.first()
            && self.capacity - state.taken >= need
        {
            state.taken += need;
            let (_, waker) = state.waiting.grant(true).expect("it is the first");
            wakers.push(waker);
        }
    }

    /// As [`vacate`](Self::vacate), of places that permits held.
    #[cold]
    fn release(&self, places: usize) {
        let mut wakers = Wakers::default();
        let mut state = self.state.lock();
        state.reserved -= places;
        self.vacate(&mut state, places, &mut wakers);
        if let Some(waker) = state.waker_at_end() {
            wakers.push(waker);
        }
        drop(state);
        wakers.wake();
    }

    /// Waits until the channel is closed.
    async fn closed(&self) {
        let is_closed = || {
            let mut state = self.state.lock();
            state.watched |= !state.closed;
            state.closed.then_some(())
        };
        self.end.until(is_closed).await;
    }
}

impl<T> State<T> {
    /// A message goes in, into a place that is accounted for.
    fn put(&mut self, message: T) -> Option<Waker> {
        self.messages.push_back(message);
        self.receiver.take()
    }

    /// None while a sender waits: they are kept for it.
    fn free_places(&self, capacity: usize) -> usize {
        if self.waiting.is_empty() {
            capacity - self.taken
        } else {
            0
        }
    }

    /// No place is needed, or there are enough and no sender waits.
    fn has_room(&self, need: usize, capacity: usize) -> bool {
        need == 0 || (capacity - self.taken >= need && self.waiting.is_empty())
    }

    /// No message will come in any more.
    fn is_over(&self) -> bool {
        self.senders == 0 || (self.closed && self.reserved == 0)
    }

    /// The receiver's, if it waits for what will not come.
    fn waker_at_end(&mut self) -> Option<Waker> {
        if self.is_over() {
            self.receiver.take()
        } else {
            None
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        wake_one(waker);
    }
}

/// The sending side of a channel; clones send into the same one.
pub struct Sender<T, const BOUNDED: bool = true> {
    channel: Arc<Channel<T>>,
}

impl<T, const BOUNDED: bool> Sender<T, BOUNDED> {
    /// Waits until nobody receives any more: the receiver was dropped or has closed the channel.
    ///
    /// ```
    /// use urgency::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::channel::<u32>(1);
    /// let watcher = urgency::spawn(async move { sender.closed().await });
    /// drop(receiver);
    /// watcher.get()?;
    /// # Ok::<(), urgency::JoinError>(())
    /// ```
    pub async fn closed(&self) {
        self.channel.closed().await;
    }

    /// Whether nobody receives any more.
    pub fn is_closed(&self) -> bool {
        self.channel.state.lock().closed
    }

    fn send_now(&self, message: T) -> Result<(), TrySendError<T>> {
        hooks::check();
        let mut state = self.channel.state.lock();
        if state.closed {
            return Err(TrySendError::Closed(message));
        }
        if !state.has_room(1, self.channel.capacity) {
            return Err(TrySendError::Full(message));
        }
        state.taken += 1;
        let receiver = state.put(message);
        drop(state);
        wake(receiver);
        Ok(())
    }
}

impl<T> Sender<T> {
    /// Sends a message, after waiting for a place if the channel is full.
    ///
    /// ```
    /// use urgency::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// urgency::block_on(async {
    ///     sender.send("one").await?;
    ///     drop(sender.send("two")); // was never polled: nothing was sent
    ///     assert_eq!(receiver.try_recv(), Ok("one"));
    ///     assert!(receiver.try_recv().is_err());
    ///     Ok::<_, mpsc::error::SendError<&str>>(())
    /// })?;
    /// # Ok::<_, urgency::sync::mpsc::error::SendError<&str>>(())
    /// ```
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
            waiter: Waiter::new(self, 1),
            message: Some(message),
        }
    }

    /// As [`send`](Self::send), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If nobody receives any more.
    #[cfg(not(urgency_loom))]
    pub fn blocking_send(&self, message: T) -> Result<(), SendError<T>> {
        match self.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(message)) => Err(SendError(message)),
            Err(TrySendError::Full(message)) => crate::block_on(self.send(message)),
        }
    }

    /// As [`send`](Self::send), but waits no longer than `limit`.
    ///
    /// # Errors
    ///
    /// With the message, if there was no place until then, or if nobody receives any more.
    #[cfg(not(urgency_loom))]
    pub async fn send_timeout(
        &self,
        message: T,
        limit: std::time::Duration,
    ) -> Result<(), super::error::SendTimeoutError<T>> {
        use super::error::SendTimeoutError;
        let mut send = self.send(message);
        match crate::time::timeout(limit, &mut send).await {
            Ok(sent) => sent.map_err(|SendError(message)| SendTimeoutError::Closed(message)),
            Err(_) => {
                let message = send.message.take().expect("kept until it is sent");
                Err(SendTimeoutError::Timeout(message))
            }
        }
    }

    /// Sends a message if there is a place and no sender waits for one.
    ///
    /// # Errors
    ///
    /// With the message, if there is no place, or if nobody receives any more.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.send_now(message)
    }

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

impl<T, const BOUNDED: bool> Drop for Sender<T, BOUNDED> {
    fn drop(&mut self) {
        let mut state = self.channel.state.lock();
        state.senders -= 1;
        let receiver = state.waker_at_end();
        drop(state);
        wake(receiver);
    }
}

debug_struct!([T, const BOUNDED: bool] Sender<T, BOUNDED>, |it| closed: it.is_closed());

counted_senders! {
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
    BOUNDED
}
