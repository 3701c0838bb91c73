//! One message, from one sender to one receiver.
//!
//! # State
//!
//! One word of four bits, and two slots: the message, and the receiver's waker.
//!
//! 1. `SENT`: the message is in its slot, and the receiver's. Before, that slot is the sender's.
//! 2. `GONE`: the sender was dropped without sending.
//! 3. `CLOSED`: nobody receives any more. A sender that finds it has its message back: the receiver does not touch the slot after it
//!    set the bit, unless it found `SENT`.
//! 4. `WAITING`: the waker's slot is full. Whoever sets `SENT` or `GONE` and finds it owns that slot and wakes. The receiver may
//!    take the slot back by clearing the bit before that; while it is clear, the slot is the receiver's.
//!
//! Every change is one read-modify-write, so that of two the later one knows of the earlier one. Sending costs one locked
//! instruction, receiving a message that is there none.

use super::{
    above,
    error::{RecvError, SendError, TryRecvError},
};
use crate::{
    facade::{
        Arc,
        atomic::{
            AtomicU8,
            Ordering::{AcqRel, Acquire},
        },
    },
    task::{Guarded, caught, discard_payload},
};
use std::{
    fmt,
    future::Future,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, Waker},
};

const SENT: u8 = 1;
const GONE: u8 = 2;
const CLOSED: u8 = 4;
const WAITING: u8 = 8;

struct Channel<T> {
    state: AtomicU8,
    message: Guarded<Option<T>>,
    waker: Guarded<MaybeUninit<Waker>>,
}

// SAFETY: the rules of the module text give each slot one owner at a time; message and waker are moved from thread to
// thread, never shared.
unsafe impl<T: Send> Send for Channel<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Channel<T> {}

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
    let channel = Arc::new(Channel {
        state: AtomicU8::new(0),
        message: Guarded::new(None),
        waker: Guarded::new(MaybeUninit::uninit()),
    });
    let sender = Sender {
        channel: Some(channel.clone()),
    };
    let receiver = Receiver {
        channel,
        over: false,
    };
    (sender, receiver)
}

impl<T> Channel<T> {
    /// The sender's last step: `bit` is `SENT` or `GONE`. Returns the state before.
    fn end(&self, bit: u8) -> u8 {
        let before = self.state.fetch_or(bit, AcqRel);
        if before & WAITING != 0 {
            // SAFETY: full, and ours (rule 4); reading it out moves it.
            let waker = self.waker.with(|slot| unsafe { slot.read().assume_init() });
            if let Some(payload) = caught(|| waker.wake()) {
                discard_payload(payload);
            }
        }
        before
    }

    /// The receiver takes the waker's slot back. Returns what was in it, if the sender did not take it.
    fn unset_waiting(&self, seen: u8) -> Option<Waker> {
        if seen & WAITING == 0 {
            return None;
        }
        let before = self.state.fetch_and(!WAITING, AcqRel);
        (before & (SENT | GONE) == 0).then(|| {
            // SAFETY: full, and ours again (rule 4); reading it out moves it.
            self.waker.with(|slot| unsafe { slot.read().assume_init() })
        })
    }

    /// The receiver takes the message, which is its own (rule 1).
    ///
    /// # Safety
    /// Called by the receiver, which has seen `SENT`.
    unsafe fn take(&self) -> Option<T> {
        // SAFETY: the caller's promise.
        self.message.with_mut(|slot| unsafe { (*slot).take() })
    }
}

/// The sending side.
pub struct Sender<T> {
    /// Until it has sent.
    channel: Option<Arc<Channel<T>>>,
}

impl<T> Sender<T> {
    /// Sends the message. Never waits.
    ///
    /// # Errors
    ///
    /// With the message, if nobody receives any more.
    pub fn send(mut self, message: T) -> Result<(), SendError<T>> {
        let channel = self.channel.take().expect("it sends once");
        // SAFETY: the slot is the sender's until `SENT` is set (rule 1).
        channel
            .message
            .with_mut(|slot| unsafe { *slot = Some(message) });
        if channel.end(SENT) & CLOSED == 0 {
            return Ok(());
        }
        // SAFETY: closed before it was sent: the message is the sender's again (rule 3).
        let message = channel.message.with_mut(|slot| unsafe { (*slot).take() });
        Err(SendError(message.expect("put in above")))
    }

    /// Whether nobody receives any more.
    pub fn is_closed(&self) -> bool {
        let channel = self.channel.as_ref().expect("it did not send yet");
        channel.state.load(Acquire) & CLOSED != 0
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.take() {
            channel.end(GONE);
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
    channel: Arc<Channel<T>>,
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
        let seen = self.channel.state.load(Acquire);
        let ended = self.look(seen).ok_or(TryRecvError::Empty)?;
        ended.map_err(|RecvError| TryRecvError::Closed)
    }

    /// From now on the sender gets its message back. One that was sent before can still be received.
    pub fn close(&mut self) {
        let before = self.channel.state.fetch_or(CLOSED, AcqRel);
        self.over |= before & SENT == 0;
    }

    /// What the state says is there.
    fn look(&mut self, seen: u8) -> Option<Result<T, RecvError>> {
        if seen & (SENT | GONE) == 0 {
            return None;
        }
        self.over = true;
        if seen & SENT == 0 {
            return Some(Err(RecvError));
        }
        // SAFETY: this is the receiver, and `SENT` was seen; if it has closed, then after that (`over`).
        Some(unsafe { self.channel.take() }.ok_or(RecvError))
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
        let seen = this.channel.state.load(Acquire);
        if let Some(result) = this.look(seen) {
            return Poll::Ready(result);
        }
        let waker = cx.waker().clone();
        let before = this.channel.unset_waiting(seen);
        if this.channel.state.load(Acquire) & (SENT | GONE) == 0 {
            // SAFETY: the slot is the receiver's while `WAITING` is clear (rule 4).
            this.channel.waker.with_mut(|slot| unsafe {
                (*slot).write(waker);
            });
            let seen = this.channel.state.fetch_or(WAITING, AcqRel);
            if seen & (SENT | GONE) == 0 {
                drop(before);
                return Poll::Pending;
            }
            // The sender ended before the bit was set: it does not know of the waker, which is still ours.
            this.channel.state.fetch_and(!WAITING, AcqRel);
            // SAFETY: written above, and nobody else's.
            let waker = this
                .channel
                .waker
                .with(|slot| unsafe { slot.read().assume_init() });
            drop(waker);
        }
        drop(before);
        let seen = this.channel.state.load(Acquire);
        Poll::Ready(this.look(seen).expect("the sender has ended"))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let seen = self.channel.state.fetch_or(CLOSED, AcqRel);
        let waker = self.channel.unset_waiting(seen);
        let message = if seen & SENT != 0 && !self.over {
            // SAFETY: this is the receiver; `SENT` was seen, and not taken before (`over`).
            unsafe { self.channel.take() }
        } else {
            None
        };
        drop(waker);
        drop(message);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
