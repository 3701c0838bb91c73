//! Why an operation on a primitive could not be done.

const CLOSED: &str = "the semaphore was closed, so it gives no permits any more";
const NO_RECEIVER: &str =
    "nobody receives any more: the receiver was dropped or closed the channel";
const EMPTY: &str = "there is no message now; `recv` waits for one";
const NO_SENDER: &str = "there is no message, and no sender is left";

/// The semaphore was closed: it gives no permits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireError(pub(super) ());

error_text!(AcquireError, |_it| CLOSED);

/// Why there is no permit at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore was closed.
    Closed,
    /// There are not so many permits now, or others wait for them already.
    NoPermits,
}

error_text!(TryAcquireError, |it| match it {
    TryAcquireError::Closed => CLOSED,
    TryAcquireError::NoPermits => {
        "the semaphore has not so many permits now, or others wait for them; `acquire` waits"
    }
});

/// The lock is held, or others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryLockError(pub(super) ());

error_text!(
    TryLockError,
    "the lock is held, or others wait for it; the form without `try_` waits"
);

/// Nobody will receive: the message comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

debug_struct!([T] SendError<T>);
error_text!([T] SendError<T>, |_it| NO_RECEIVER);

/// Why a message could not be sent at once: it comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel is full, or others wait for a place in it.
    Full(T),
    /// Nobody receives any more.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(message) | TrySendError::Closed(message) => message,
        }
    }
}

debug_text!([T] TrySendError<T>, |it| match it {
    TrySendError::Full(_) => "Full(..)",
    TrySendError::Closed(_) => "Closed(..)",
});
error_text!([T] TrySendError<T>, |it| match it {
    TrySendError::Full(_) => "the channel is full, or others wait for a place in it; `send` waits",
    TrySendError::Closed(_) => NO_RECEIVER,
});

/// Why a message was not sent within its time: it comes back.
#[cfg(not(urgency_loom))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// The channel was full until the time was over.
    Timeout(T),
    /// Nobody receives any more.
    Closed(T),
}

#[cfg(not(urgency_loom))]
impl<T> SendTimeoutError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout(message) | SendTimeoutError::Closed(message) => message,
        }
    }
}

#[cfg(not(urgency_loom))]
debug_text!([T] SendTimeoutError<T>, |it| match it {
    SendTimeoutError::Timeout(_) => "Timeout(..)",
    SendTimeoutError::Closed(_) => "Closed(..)",
});
#[cfg(not(urgency_loom))]
error_text!([T] SendTimeoutError<T>, |it| match it {
    SendTimeoutError::Timeout(_) => "the channel was full until the time for sending was over",
    SendTimeoutError::Closed(_) => NO_RECEIVER,
});

/// There is no message, and there will be none: all senders are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecvError(pub(super) ());

error_text!(RecvError, |_it| NO_SENDER);

/// The errors of [`mpsc`](super::mpsc).
pub mod mpsc {
    #[cfg(not(urgency_loom))]
    pub use super::SendTimeoutError;
    pub use super::{SendError, TrySendError};

    /// Why there is no message at once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TryRecvError {
        /// There is none now.
        Empty,
        /// There is none, and none can be sent any more.
        Disconnected,
    }

    error_text!(TryRecvError, |it| match it {
        TryRecvError::Empty => super::EMPTY,
        TryRecvError::Disconnected => super::NO_SENDER,
    });
}

/// The errors of [`oneshot`](super::oneshot).
pub mod oneshot {
    pub use super::RecvError;

    /// Why there is no message at once.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum TryRecvError {
        /// There is none now.
        Empty,
        /// There is none, and the sender is gone.
        Closed,
    }

    error_text!(TryRecvError, |it| match it {
        TryRecvError::Empty => "there is no message now; await the receiver to wait for one",
        TryRecvError::Closed => super::NO_SENDER,
    });
}

/// The errors of [`watch`](super::watch).
#[cfg(not(urgency_loom))]
pub mod watch {
    pub use super::{RecvError, SendError};
}

/// The errors of [`broadcast`](super::broadcast).
#[cfg(not(urgency_loom))]
pub mod broadcast {
    use std::fmt;

    pub use super::SendError;

    /// Why a receiver got no message.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum RecvError {
        /// There is no message, and no sender is left.
        Closed,
        /// It was too slow: so many messages were dropped before it came to them.
        Lagged(u64),
    }

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                RecvError::Lagged(missed) => write!(
                    f,
                    "the receiver was too slow for the channel's capacity, and {missed} message(s) were dropped \
                     before it came to them"
                ),
                RecvError::Closed => f.write_str(super::NO_SENDER),
            }
        }
    }

    impl std::error::Error for RecvError {}

    /// Why a receiver got no message at once.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum TryRecvError {
        /// There is none now.
        Empty,
        /// As [`RecvError::Closed`].
        Closed,
        /// As [`RecvError::Lagged`].
        Lagged(u64),
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match *self {
                TryRecvError::Empty => f.write_str(super::EMPTY),
                TryRecvError::Lagged(missed) => RecvError::Lagged(missed).fmt(f),
                TryRecvError::Closed => RecvError::Closed.fmt(f),
            }
        }
    }

    impl std::error::Error for TryRecvError {}
}
