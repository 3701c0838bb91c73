//! Why a wait ended without the awaited result.
//!
//! A panic of the awaited work is not among the reasons: it is resumed in whoever waits.
//! The error is small and `Copy`, since every waiter of a shared handle gets one of its own.
//! Inversion is the word of the priority papers (Prompt I-Cilk, section 2): more urgent work
//! waits for less urgent work and so, in effect, runs at its level.

use crate::rank::LevelId;
use std::fmt;

/// The awaited result will not come, or waiting for it was refused.
///
/// [`kind`](WaitError::kind) says why; the text says what to do about it.
///
/// ```
/// use urgency::{WaitErrorKind, spawn};
///
/// let endless = spawn(std::future::pending::<()>());
/// endless.cancel();
/// let error = endless.get().unwrap_err();
/// assert_eq!(error.kind(), WaitErrorKind::Cancelled);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WaitError(WaitErrorKind);

/// The reasons of a [`WaitError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitErrorKind {
    /// The task was cancelled before it finished.
    Cancelled,
    /// The awaited task is not at least as urgent as the one that would wait for it.
    Inversion {
        /// The level at which the wait was asked for.
        waiter: LevelId,
        /// The level of the awaited task.
        awaited: LevelId,
    },
    /// A task waits for its own handle.
    WaitsForItself,
    /// The runtime was shut down before the task finished.
    ShutDown,
}

impl WaitError {
    /// An error of this kind.
    pub(crate) fn new(kind: WaitErrorKind) -> Self {
        WaitError(kind)
    }

    /// Why there is no result.
    pub fn kind(&self) -> WaitErrorKind {
        self.0
    }
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WaitErrorKind::Cancelled => f.write_str(
                "the awaited task was cancelled before it finished and has no result; \
                 if the result is needed, do not cancel the task",
            ),
            WaitErrorKind::Inversion { waiter, awaited } => write!(
                f,
                "work at level `{waiter}` may not wait for a task at level `{awaited}`, which is not at least as \
                 urgent; call boost() on the handle first, or spawn the awaited task at `{waiter}` \
                 or a more urgent level",
            ),
            WaitErrorKind::WaitsForItself => f.write_str(
                "a task waits for its own handle and could never go on; \
                 wait for it in another task",
            ),
            WaitErrorKind::ShutDown => f.write_str(
                "the runtime was shut down before the awaited task finished; wait for the task \
                 before the shutdown, or let the shutdown drain the runtime",
            ),
        }
    }
}

impl fmt::Debug for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitError").field(&self.0).finish()
    }
}

impl std::error::Error for WaitError {}
