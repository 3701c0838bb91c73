//! One message, from one sender to one receiver.
//!
//! # State
//!
//! One word, and three slots: the message, the receiver's waker, and the sender's, if it waits for the end. Both sides
//! own the channel.
//!
//! 1. `SENT`: the message is in its slot, and the slot is the receiver's. Before, the slot is the sender's. `GONE`: the
//!    sender was dropped without sending. With either bit the sender has *ended*.
//! 2. `CLOSED`: the receiver takes no message any more. A sender that finds the bit when it ends has its message back:
//!    the receiver does not touch the slot after it set the bit.
//! 3. `WAITING`: the slot of the receiver's waker is full. A sender that finds the bit when it ends owns that slot and
//!    wakes. Otherwise the slot is the receiver's.
//! 4. The receiver changes `CLOSED` and `WAITING` only while the sender has not ended. So afterwards the two bits still
//!    say what the sender found.
//! 5. The sender *leaves* the channel when it ends, if it found neither bit. Otherwise it takes out what is its own and
//!    leaves with the bit `DONE`. The receiver leaves with `LEFT`, and sets `CLOSED` at once if the sender has not
//!    ended; if the sender has left, the receiver need not set any bit.
//! 6. `WATCHED`: the sender's waker is in its slot. A receiver that finds the bit when it sets `CLOSED` owns that slot
//!    and wakes, before it leaves. Otherwise the slot is the sender's. The sender changes the bit only while `CLOSED`
//!    is clear, and takes its waker back before it ends.
//! 7. The side that leaves first does not touch the channel any more. The side that leaves second frees it.
//!
//! Sending costs one locked instruction, receiving a message that is there none, and so does leaving after it.

mod waits;

pub use super::error::oneshot as error;

use self::waits::{FOR_END, FOR_MESSAGE};
use super::hooks;
use error::{RecvError, TryRecvError};

use crate::{
    sys::primitives::atomic::{
        AtomicU8,
        Ordering::{AcqRel, Acquire},
    },
    tasks::{Guarded, WakerSlot, contained},
};
use std::{
    future::Future,
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll},
};

const SENT: u8 = 1;
const GONE: u8 = 2;
const CLOSED: u8 = 4;
const WAITING: u8 = 8;
const DONE: u8 = 16;
const LEFT: u8 = 32;
const WATCHED: u8 = 64;

/// The sender has ended.
const ENDED: u8 = SENT | GONE;
/// The sender that found any of it has something to take out before it leaves.
const OWED: u8 = CLOSED | WAITING;

struct Channel<T> {
    state: AtomicU8,
    message: Guarded<Option<T>>,
    waker: WakerSlot,
    sender_waker: WakerSlot,
    /// So that models notice a channel that was not freed.
    #[cfg(urgency_loom)]
    _alive: crate::sys::primitives::Arc<()>,
}

/// One side's share of the channel: valid until it leaves.
struct Side<T>(NonNull<Channel<T>>);

// SAFETY: the rules of the module text give each slot one owner at a time; message and waker are moved from thread to
// thread, never shared.
unsafe impl<T: Send> Send for Side<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Side<T> {}

/// A channel for one message.
///
/// ```
/// use urgency::sync::oneshot;
///
/// let (sender, receiver) = oneshot::channel();
/// let answer = urgency::spawn(async { receiver.await.map(|n: u32| n + 1) });
/// sender.send(41).expect("the receiver is there");
/// assert_eq!(answer.get()?, Ok(42));
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = Box::new(Channel {
        state: AtomicU8::new(0),
        message: Guarded::new(None),
        waker: WakerSlot::new(),
        sender_waker: WakerSlot::new(),
        #[cfg(urgency_loom)]
        _alive: crate::sys::primitives::Arc::new(()),
    });
    let channel = NonNull::from(Box::leak(channel));
    let sender = Sender {
        side: Some(Side(channel)),
        watches: false,
    };
    let receiver = Receiver {
        side: Side(channel),
        closed: false,
        over: false,
    };
    (sender, receiver)
}

impl<T> Side<T> {
    fn channel(&self) -> &Channel<T> {
        // SAFETY: this side has not left, so nobody has freed it (rule 7).
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// The other side has left, and this one leaves with this call (rule 7).
    unsafe fn free(&self) {
        // SAFETY: made by `Box::leak`, and freed once, by the side that leaves last (rule 7).
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }

    /// The sender ends and leaves: `bit` is `SENT` or `GONE`. Returns the message, if it was sent and comes back.
    fn end(self, bit: u8) -> Option<T> {
        let channel = self.channel();
        let found = channel.state.fetch_or(bit, AcqRel);
        if found & (OWED | LEFT) == 0 {
            return None;
        }
        // SAFETY: found `WAITING`, so the slot is full, and the sender's (rule 3).
        let waker = (found & WAITING != 0).then(|| unsafe { self.channel().waker.take() });
        let back = (found & CLOSED != 0 && bit == SENT)
            // SAFETY: the sender's again (rule 2).
            .then(|| channel.message.with_mut(|slot| unsafe { (*slot).take() }));
        if found & LEFT != 0 || channel.state.fetch_or(DONE, AcqRel) & LEFT != 0 {
            // SAFETY: the receiver has left, and so does the sender.
            unsafe { self.free() };
        }
        if let Some(waker) = waker {
            contained(|| waker.wake());
        }
        back.flatten()
    }

    /// The receiver makes a change that rule 4 allows. Returns what it was made to, or what the ended sender left.
    fn change(&self, change: impl Fn(u8) -> u8) -> Result<u8, u8> {
        let change = |seen| (seen & ENDED == 0).then(|| change(seen));
        self.channel().state.fetch_update(AcqRel, Acquire, change)
    }

    /// The receiver takes the message, which is its own (rule 1).
    ///
    /// # Safety
    /// Called by the receiver, which has seen `SENT`.
    unsafe fn take(&self) -> Option<T> {
        let message = &self.channel().message;
        // SAFETY: the caller's promise.
        message.with_mut(|slot| unsafe { (*slot).take() })
    }
}

/// The sending side.
pub struct Sender<T> {
    /// Until it has sent.
    side: Option<Side<T>>,
    /// It has left a waker.
    watches: bool,
}

impl<T> Sender<T> {
    /// Sends the message. Never waits.
    ///
    /// # Errors
    ///
    /// With the message, if nobody receives any more.
    pub fn send(mut self, message: T) -> Result<(), T> {
        let side = self.take_side().expect("it sends once");
        // SAFETY: the slot is the sender's until `SENT` is set (rule 1).
        let put = |slot: *mut Option<T>| unsafe { *slot = Some(message) };
        side.channel().message.with_mut(put);
        side.end(SENT).map_or(Ok(()), Err)
    }

    /// Waits until nobody receives any more. Dropping the future changes nothing.
    ///
    /// ```
    /// use urgency::sync::oneshot;
    ///
    /// let (mut sender, receiver) = oneshot::channel::<u32>();
    /// let watcher = urgency::spawn(async move { sender.closed().await });
    /// drop(receiver);
    /// watcher.get()?;
    /// # Ok::<(), urgency::JoinError>(())
    /// ```
    pub async fn closed(&mut self) {
        std::future::poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// The form for hand-written futures: [`closed`](Self::closed) as a poll.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        std::task::ready!(hooks::begin(cx));
        if self.is_closed() {
            return Poll::Ready(());
        }
        let side = self.side.as_ref().expect("it did not send yet");
        self.watches = true;
        match side.wait(FOR_END, cx.waker().clone()) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }

    /// Whether nobody receives any more.
    pub fn is_closed(&self) -> bool {
        let side = self.side.as_ref().expect("it did not send yet");
        side.channel().state.load(Acquire) & CLOSED != 0
    }

    /// The channel, when the sender is about to end.
    fn take_side(&mut self) -> Option<Side<T>> {
        let side = self.side.take();
        if self.watches
            && let Some(side) = &side
        {
            // A panic of its drop must not keep the receiver waiting.
            contained(|| drop(side.take_waker_back(FOR_END)));
        }
        side
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(side) = self.take_side() {
            side.end(GONE);
        }
    }
}

debug_struct!([T] Sender<T>);

/// The receiving side: a future.
#[must_use = "futures do nothing unless awaited"]
pub struct Receiver<T> {
    side: Side<T>,
    /// It was closed before the sender ended.
    closed: bool,
    /// The message was received, or it was said that there will be none.
    over: bool,
}

impl<T> Receiver<T> {
    /// As awaiting it, for closures and plain threads.
    ///
    /// # Errors
    ///
    /// If the sender was dropped without sending.
    ///
    /// ```
    /// let (sender, receiver) = urgency::sync::oneshot::channel::<()>();
    /// drop(sender);
    /// assert!(receiver.blocking_recv().is_err());
    /// ```
    #[cfg(not(urgency_loom))]
    pub fn blocking_recv(mut self) -> Result<T, RecvError> {
        hooks::check();
        match self.try_recv() {
            Ok(message) => Ok(message),
            Err(TryRecvError::Closed) => Err(RecvError(())),
            Err(TryRecvError::Empty) => crate::block_on(self),
        }
    }

    /// The message, if it is there.
    ///
    /// # Errors
    ///
    /// If it is not there yet; if the sender was dropped; or if the message was received before.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if self.over {
            return Err(TryRecvError::Closed);
        }
        let seen = self.side.channel().state.load(Acquire);
        let ended = self.look(seen).ok_or(TryRecvError::Empty)?;
        ended.map_err(|RecvError(())| TryRecvError::Closed)
    }

    /// From now on the sender gets its message back. One that was sent before can still be received.
    pub fn close(&mut self) {
        if let Ok(seen) = self.side.change(|state| state | CLOSED) {
            self.closed = true;
            self.side.wake_sender(seen);
        }
    }

    /// Whether it was ready: polling it again would panic.
    pub fn is_terminated(&self) -> bool {
        self.over
    }

    /// Whether there is no message that could be received now.
    pub fn is_empty(&self) -> bool {
        self.over || self.closed || self.side.channel().state.load(Acquire) & SENT == 0
    }

    /// What the state says is there.
    fn look(&mut self, seen: u8) -> Option<Result<T, RecvError>> {
        if seen & ENDED == 0 && !self.closed {
            return None;
        }
        self.over = true;
        if seen & SENT == 0 || self.closed {
            return Some(Err(RecvError(())));
        }
        // SAFETY: this is the receiver, and `SENT` was seen, which the sender set before the channel was closed.
        Some(unsafe { self.side.take() }.ok_or(RecvError(())))
    }
}

impl<T> Unpin for Receiver<T> {}

impl<T> Future for Receiver<T> {
    /// An error if the sender was dropped without sending.
    type Output = Result<T, RecvError>;

    /// # Panics
    ///
    /// If it was ready before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        assert!(
            !this.over,
            "a oneshot receiver is ready once, and this one was"
        );
        std::task::ready!(hooks::begin(cx));
        let seen = this.side.channel().state.load(Acquire);
        if let Some(result) = this.look(seen) {
            return Poll::Ready(result);
        }
        if this.side.wait(FOR_MESSAGE, cx.waker().clone()) {
            return Poll::Pending;
        }
        let seen = this.side.channel().state.load(Acquire);
        Poll::Ready(this.look(seen).expect("the sender has ended"))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let waker = self.side.take_waker_back(FOR_MESSAGE);
        // A sender that waits for the end is woken before the receiver leaves (rule 6).
        let end = |state: u8| {
            if state & WATCHED != 0 && state & CLOSED == 0 {
                state | CLOSED
            } else {
                state | CLOSED | LEFT
            }
        };
        let seen = match self.side.change(end) {
            Ok(seen) if end(seen) & LEFT != 0 => {
                // The sender frees it (rule 7).
                return drop(waker);
            }
            Ok(seen) => {
                self.side.wake_sender(seen);
                self.closed = true;
                // The sender finds `CLOSED` when it ends.
                CLOSED
            }
            Err(seen) => seen,
        };
        let message = if seen & SENT != 0 && !self.over && !self.closed {
            // SAFETY: this is the receiver; `SENT` was seen, not taken before (`over`), and set before the channel was
            // closed (rule 2).
            unsafe { self.side.take() }
        } else {
            None
        };
        let has_left = seen & OWED == 0 || seen & DONE != 0;
        if has_left || self.side.channel().state.fetch_or(LEFT, AcqRel) & DONE != 0 {
            // SAFETY: the sender has left, and so does the receiver.
            unsafe { self.side.free() };
        }
        drop((waker, message));
    }
}

debug_struct!([T] Receiver<T>, |it| over: it.over);
