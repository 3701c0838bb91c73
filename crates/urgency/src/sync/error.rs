//! Why an operation on a primitive could not be done.

use std::{error::Error, fmt};

/// The semaphore was closed: it gives no permits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore was closed, so it gives no permits any more")
    }
}

impl Error for Closed {}

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
            TryAcquireError::Closed => Closed.fmt(f),
            TryAcquireError::NoPermits => f.write_str(
                "the semaphore has not so many permits now, or others wait for them; `acquire` waits",
            ),
        }
    }
}

impl Error for TryAcquireError {}

/// The lock is held, or others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryLockError;

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

/// There is no message, and there will be none: all senders are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no message, and nobody is left who could send one")
    }
}

impl Error for RecvError {}

/// Why there is no message at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is none now.
    Empty,
    /// There is none, and nobody is left who could send one.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str("there is no message now; `recv` waits for one"),
            TryRecvError::Closed => RecvError.fmt(f),
        }
    }
}

impl Error for TryRecvError {}
