//! Why an operation on a primitive could not be done.

use std::{error::Error, fmt};

/// The semaphore was closed: it gives no permits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireError(pub(super) ());

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore was closed, so it gives no permits any more")
    }
}

impl Error for AcquireError {}

/// Why there is no permit at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore was closed.
    Closed,
    /// There are not so many permits now, or others wait for them already.
    NoPermits,
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryAcquireError::Closed => AcquireError(()).fmt(f),
            TryAcquireError::NoPermits => f.write_str(
                "the semaphore has not so many permits now, or others wait for them; `acquire` waits",
            ),
        }
    }
}

impl Error for TryAcquireError {}

/// The lock is held, or others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryLockError(pub(super) ());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is held, or others wait for it; the form without `try_` waits")
    }
}

impl Error for TryLockError {}

/// Nobody will receive: the message comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody receives any more: the receiver was dropped or closed the channel")
    }
}

impl<T> Error for SendError<T> {}

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

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => {
                "the channel is full, or others wait for a place in it; `send` waits"
            }
            TrySendError::Closed(_) => {
                "nobody receives any more: the receiver was dropped or closed the channel"
            }
        })
    }
}

impl<T> Error for TrySendError<T> {}

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
impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "Timeout(..)",
            SendTimeoutError::Closed(_) => "Closed(..)",
        })
    }
}

#[cfg(not(urgency_loom))]
impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendTimeoutError::Timeout(_) => {
                f.write_str("the channel was full until the time for sending was over")
            }
            SendTimeoutError::Closed(_) => SendError(()).fmt(f),
        }
    }
}

#[cfg(not(urgency_loom))]
impl<T> Error for SendTimeoutError<T> {}

/// There is no message, and there will be none: all senders are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecvError(pub(super) ());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no message, and nobody is left who could send one")
    }
}

impl Error for RecvError {}

/// The errors of [`mpsc`](super::mpsc).
pub mod mpsc {
    use super::RecvError;
    use std::{error::Error, fmt};

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

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                TryRecvError::Empty => f.write_str("there is no message now; `recv` waits for one"),
                TryRecvError::Disconnected => RecvError(()).fmt(f),
            }
        }
    }

    impl Error for TryRecvError {}
}

/// The errors of [`oneshot`](super::oneshot).
pub mod oneshot {
    use std::{error::Error, fmt};

    pub use super::RecvError;

    /// Why there is no message at once.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum TryRecvError {
        /// There is none now.
        Empty,
        /// There is none, and the sender is gone.
        Closed,
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                TryRecvError::Empty => {
                    f.write_str("there is no message now; await the receiver to wait for one")
                }
                TryRecvError::Closed => RecvError(()).fmt(f),
            }
        }
    }

    impl Error for TryRecvError {}
}

/// The errors of [`watch`](super::watch).
#[cfg(not(urgency_loom))]
pub mod watch {
    pub use super::{RecvError, SendError};
}

/// The errors of [`broadcast`](super::broadcast).
#[cfg(not(urgency_loom))]
pub mod broadcast {
    use std::{error::Error, fmt};

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
                RecvError::Closed => super::RecvError(()).fmt(f),
            }
        }
    }

    impl Error for RecvError {}

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
                TryRecvError::Empty => super::mpsc::TryRecvError::Empty.fmt(f),
                TryRecvError::Lagged(missed) => RecvError::Lagged(missed).fmt(f),
                TryRecvError::Closed => RecvError::Closed.fmt(f),
            }
        }
    }

    impl Error for TryRecvError {}
}
