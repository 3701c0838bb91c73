//! One message, from one sender to one receiver.
//!
//! # State
//!
//! One word, and two slots: the message, and the receiver's waker. Both sides own the channel.
//!
//! 1. `SENT`: the message is in its slot, and the receiver's. Before, that slot is the sender's. `GONE`: the
//!    sender was dropped without sending. With either the sender has *ended*.
//! 2. `CLOSED`: nobody receives any more. A sender that finds it when it ends has its message back: the
//!    receiver does not touch the slot after it set the bit.
//! 3. `WAITING`: the waker's slot is full. A sender that finds it when it ends owns that slot and wakes. Else
//!    it is the receiver's.
//! 4. The receiver changes `CLOSED` and `WAITING` only while the sender has not ended. So afterwards the two
//!    still say what the sender found.
//! 5. The sender *leaves* the channel when it ends, if it found neither. Otherwise it takes out what is its
//!    own and leaves with the bit `DONE`. The receiver leaves with `LEFT`, and sets `CLOSED` at once if the
//!    sender has not ended; if the sender has left, it need not say so.
//! 6. Who leaves first does not touch the channel any more. Who leaves second frees it.
//!
//! Sending costs one locked instruction, receiving a message that is there none, and so does leaving after it.

use super::{
    above,
    error::{RecvError, SendError, TryRecvError},
};
use crate::{
    facade::atomic::{
        AtomicU8,
        Ordering::{AcqRel, Acquire},
    },
    task::{Guarded, caught, discard_payload},
};
use std::{
    fmt,
    future::Future,
    mem::MaybeUninit,
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, Waker},
};

const SENT: u8 = 1;
const GONE: u8 = 2;
const CLOSED: u8 = 4;
const WAITING: u8 = 8;
const DONE: u8 = 16;
const LEFT: u8 = 32;

/// The sender has ended.
const ENDED: u8 = SENT | GONE;
/// The sender that found any of it has something to take out before it leaves.
const OWED: u8 = CLOSED | WAITING;

struct Channel<T> {
    state: AtomicU8,
    message: Guarded<Option<T>>,
    waker: Guarded<MaybeUninit<Waker>>,
    /// So that models notice a channel that was not freed.
    #[cfg(urgency_loom)]
    _alive: crate::facade::Arc<()>,
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
/// # Ok::<(), urgency::WaitError>(())
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = Box::new(Channel {
        state: AtomicU8::new(0),
        message: Guarded::new(None),
        waker: Guarded::new(MaybeUninit::uninit()),
        #[cfg(urgency_loom)]
        _alive: crate::facade::Arc::new(()),
    });
    let channel = NonNull::from(Box::leak(channel));
    let sender = Sender {
        side: Some(Side(channel)),
    };
    let receiver = Receiver {
        side: Side(channel),
        over: false,
    };
    (sender, receiver)
}

impl<T> Side<T> {
    fn channel(&self) -> &Channel<T> {
        // SAFETY: this side has not left, so nobody has freed it (rule 6).
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// The other side has left, and this one leaves with this call (rule 6).
    unsafe fn free(&self) {
        // SAFETY: made by `Box::leak`, and freed once, by who leaves last.
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
        let waker = (found & WAITING != 0).then(|| unsafe { self.take_waker() });
        let back = (found & CLOSED != 0 && bit == SENT)
            // SAFETY: the sender's again (rule 2).
            .then(|| channel.message.with_mut(|slot| unsafe { (*slot).take() }));
        if found & LEFT != 0 || channel.state.fetch_or(DONE, AcqRel) & LEFT != 0 {
            // SAFETY: the receiver has left, and so does the sender.
            unsafe { self.free() };
        }
        if let Some(waker) = waker
            && let Some(payload) = caught(|| waker.wake())
        {
            discard_payload(payload);
        }
        back.flatten()
    }

    /// The receiver makes a change that rule 4 allows. Returns what it was made to, or what the ended sender left.
    fn change(&self, change: impl Fn(u8) -> u8) -> Result<u8, u8> {
        let state = &self.channel().state;
        let mut seen = state.load(Acquire);
        loop {
            if seen & ENDED != 0 {
                return Err(seen);
            }
            match state.compare_exchange(seen, change(seen), AcqRel, Acquire) {
                Ok(_) => return Ok(seen),
                Err(now) => seen = now,
            }
        }
    }

    /// The receiver takes the waker's slot back, if it was full and the sender has not ended.
    fn take_waker_back(&self) -> Option<Waker> {
        // Only the receiver sets it.
        if self.channel().state.load(Acquire) & WAITING == 0 {
            return None;
        }
        let cleared = self.change(|state| state & !WAITING).is_ok();
        // SAFETY: it was set, and the sender will not find it any more.
        cleared.then(|| unsafe { self.take_waker() })
    }

    /// The receiver leaves a waker, after it took back the one before. It comes back if the sender has ended.
    fn put_waker(&self, waker: Waker) -> Option<Waker> {
        if self.channel().state.load(Acquire) & ENDED != 0 {
            return Some(waker);
        }
        // SAFETY: the sender had not ended, so the receiver has cleared `WAITING`, and the slot is its own
        // and empty (rule 3).
        let put = |slot: *mut MaybeUninit<Waker>| unsafe {
            (*slot).write(waker);
        };
        self.channel().waker.with_mut(put);
        let waits = self.change(|state| state | WAITING).is_ok();
        // SAFETY: the sender has ended without finding the bit.
        (!waits).then(|| unsafe { self.take_waker() })
    }

    /// Takes the waker out.
    ///
    /// # Safety
    /// The slot is full, and the caller's (rule 3). It is empty afterwards.
    unsafe fn take_waker(&self) -> Waker {
        // SAFETY: by the caller's promise; reading it out moves it.
        let take = |slot: *const MaybeUninit<Waker>| unsafe { slot.read().assume_init() };
        self.channel().waker.with(take)
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
}

impl<T> Sender<T> {
    /// Sends the message. Never waits.
    ///
    /// # Errors
    ///
    /// With the message, if nobody receives any more.
    pub fn send(mut self, message: T) -> Result<(), SendError<T>> {
        let side = self.side.take().expect("it sends once");
        // SAFETY: the slot is the sender's until `SENT` is set (rule 1).
        let put = |slot: *mut Option<T>| unsafe { *slot = Some(message) };
        side.channel().message.with_mut(put);
        match side.end(SENT) {
            None => Ok(()),
            Some(message) => Err(SendError(message)),
        }
    }

    /// Whether nobody receives any more.
    pub fn is_closed(&self) -> bool {
        let side = self.side.as_ref().expect("it did not send yet");
        side.channel().state.load(Acquire) & CLOSED != 0
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(side) = self.side.take() {
            side.end(GONE);
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// The receiving side: a future.
#[must_use = "futures do nothing unless awaited"]
pub struct Receiver<T> {
    side: Side<T>,
    /// The message was received, or there will be none.
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
    /// assert!(receiver.recv_blocking().is_err());
    /// ```
    #[cfg(not(urgency_loom))]
    pub fn recv_blocking(mut self) -> Result<T, RecvError> {
        above::check();
        match self.try_recv() {
            Ok(message) => Ok(message),
            Err(TryRecvError::Closed) => Err(RecvError),
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
        ended.map_err(|RecvError| TryRecvError::Closed)
    }

    /// From now on the sender gets its message back. One that was sent before can still be received.
    pub fn close(&mut self) {
        self.over |= self.side.change(|state| state | CLOSED).is_ok();
    }

    /// What the state says is there.
    fn look(&mut self, seen: u8) -> Option<Result<T, RecvError>> {
        if seen & ENDED == 0 {
            return None;
        }
        self.over = true;
        if seen & SENT == 0 {
            return Some(Err(RecvError));
        }
        // SAFETY: this is the receiver, and `SENT` was seen, and not found closed: that would be `over`.
        Some(unsafe { self.side.take() }.ok_or(RecvError))
    }
}

impl<T> Unpin for Receiver<T> {}

impl<T> Future for Receiver<T> {
    /// An error if the sender was dropped without sending.
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(Err(RecvError));
        }
        std::task::ready!(above::begin(cx));
        let seen = this.side.channel().state.load(Acquire);
        if let Some(result) = this.look(seen) {
            return Poll::Ready(result);
        }
        let waker = cx.waker().clone();
        let before = this.side.take_waker_back();
        let unused = this.side.put_waker(waker);
        let waits = unused.is_none();
        // Dropping a waker is anybody's code.
        drop((before, unused));
        if waits {
            return Poll::Pending;
        }
        let seen = this.side.channel().state.load(Acquire);
        Poll::Ready(this.look(seen).expect("the sender has ended"))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let waker = self.side.take_waker_back();
        let Err(seen) = self.side.change(|state| state | CLOSED | LEFT) else {
            // The sender frees it (rule 6).
            return drop(waker);
        };
        let message = if seen & SENT != 0 && !self.over {
            // SAFETY: this is the receiver; `SENT` was seen, and not taken before (`over`).
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

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
