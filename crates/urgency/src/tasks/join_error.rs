//! `JoinError`: why a task gave no result, its panic included, as a value; a wait that is refused gives the handle
//! back.
//!
//! *Inversion* is the word of the priority papers (Prompt I-Cilk, section 2): more urgent work waits for less urgent
//! work and so, in effect, runs at its level.

use super::{Id, JoinHandle, handle::Right};
use crate::{rank::LevelId, sys::mutex::Mutex};
use std::{any::Any, error::Error, fmt, mem};

/// A task gave no result: it panicked or was cancelled, its runtime was shut down, or the wait was refused.
///
/// [`kind`](JoinError::kind) says why; the text says what to do about it.
///
/// ```
/// use urgency::{JoinErrorKind, spawn};
///
/// let endless = spawn(std::future::pending::<()>());
/// endless.abort();
/// let error = endless.get().unwrap_err();
/// assert_eq!(error.kind(), JoinErrorKind::Cancelled);
///
/// let error = spawn(async { panic!("no") }).get().unwrap_err();
/// assert_eq!(error.kind(), JoinErrorKind::Panicked);
/// assert_eq!(error.into_panic().downcast_ref(), Some(&"no"));
/// ```
pub struct JoinError {
    id: Id,
    why: Why,
}

enum Why {
    Cancelled,
    ShutDown,
    /// Behind a lock, so that the error is `Sync`, as others are.
    Panicked(Mutex<Box<dyn Any + Send>>),
    Refused(Box<(JoinErrorKind, Option<Right>)>),
}

/// The reasons of a [`JoinError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JoinErrorKind {
    /// The task was cancelled before it finished: by itself, with others of its scope, set or job, or by the end of its
    /// runtime.
    Cancelled,
    /// The task panicked.
    Panicked,
    /// The wait was refused: the awaited task is not at least as urgent as the one that would wait for it.
    Inversion {
        /// The level at which the wait was asked for.
        waiter: LevelId,
        /// The level of the awaited task.
        awaited: LevelId,
    },
    /// The wait was refused: a task waits for its own handle.
    WaitsForItself,
    /// The runtime was shut down before the task finished. A task that a shutdown cancels has this kind if no worker
    /// came to it any more, and [`Cancelled`](Self::Cancelled) otherwise. [`JoinError::is_cancelled`] is true for both.
    ShutDown,
}

impl JoinError {
    pub(super) fn cancelled(id: Id) -> Self {
        let why = Why::Cancelled;
        JoinError { id, why }
    }

    pub(super) fn shut_down(id: Id) -> Self {
        let why = Why::ShutDown;
        JoinError { id, why }
    }

    pub(super) fn panicked(id: Id, payload: Box<dyn Any + Send>) -> Self {
        let why = Why::Panicked(Mutex::new(payload));
        JoinError { id, why }
    }

    /// The wait may not be; `right` is what the handle that asked for it had.
    pub(super) fn refused(id: Id, kind: JoinErrorKind, right: Option<Right>) -> Self {
        let why = Why::Refused(Box::new((kind, right)));
        JoinError { id, why }
    }

    /// The error for one of several waiters. The first has the panic as it was, and all others have its message.
    pub(super) fn hand_out(&self) -> Self {
        let why = match &self.why {
            Why::Panicked(payload) => {
                let mut payload = payload.lock();
                let message: Box<dyn Any + Send> = match message_of(&**payload) {
                    Some(message) => Box::new(message.to_owned()),
                    None => Box::new("its first waiter has what it panicked with"),
                };
                Why::Panicked(Mutex::new(mem::replace(&mut *payload, message)))
            }
            Why::ShutDown => Why::ShutDown,
            Why::Cancelled => Why::Cancelled,
            Why::Refused(_) => unreachable!("a task that has ended refuses no wait"),
        };
        JoinError { id: self.id, why }
    }

    /// Why there is no result.
    pub fn kind(&self) -> JoinErrorKind {
        match &self.why {
            Why::Cancelled => JoinErrorKind::Cancelled,
            Why::ShutDown => JoinErrorKind::ShutDown,
            Why::Panicked(_) => JoinErrorKind::Panicked,
            Why::Refused(refused) => refused.0,
        }
    }

    /// The task that was waited for.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Whether the task was cancelled, by its handle or by the end of its runtime.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.why, Why::Cancelled | Why::ShutDown)
    }

    /// Whether the task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.why, Why::Panicked(_))
    }

    /// What the task panicked with, for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    ///
    /// If the task did not panic.
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("the task did not panic: {error}"),
        }
    }

    /// What the task panicked with.
    ///
    /// # Errors
    ///
    /// With the error itself, if the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, JoinError> {
        match self.why {
            Why::Panicked(payload) => Ok(payload.into_inner()),
            why => Err(JoinError { why, ..self }),
        }
    }

    /// The handle that asked for the wait, if the wait was refused. The handle is as it was before: it can be
    /// [boosted](JoinHandle::boost) and waited for again, or given to code that may wait.
    ///
    /// ```
    /// use urgency::{Runtime, levels};
    ///
    /// levels! { App: Interactive > Batch }
    ///
    /// let runtime = Runtime::builder().levels::<App>().build()?;
    /// let rows = runtime.at(Batch).spawn(async { 10 });
    /// let rows = runtime.at(Interactive).spawn(async {
    ///     match rows.await {
    ///         Ok(rows) => Ok(rows), // it had ended already
    ///         Err(refused) => {
    ///             let rows = refused.into_handle::<u32>()?;
    ///             rows.boost();
    ///             rows.await
    ///         }
    ///     }
    /// });
    /// assert_eq!(rows.get()??, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// With the error itself: the wait was not refused, or it was the wait of a [`Shared`](super::Shared), which its
    /// owner still has, or the task gives something else than a `T`.
    pub fn into_handle<T: 'static>(self) -> Result<JoinHandle<T>, JoinError> {
        let JoinError { id, why } = self;
        match why {
            Why::Refused(refused) => {
                let (kind, right) = *refused;
                match right.map(Right::into_handle) {
                    Some(Ok(handle)) => Ok(handle),
                    Some(Err(right)) => Err(JoinError::refused(id, kind, Some(right))),
                    None => Err(JoinError::refused(id, kind, None)),
                }
            }
            why => Err(JoinError { id, why }),
        }
    }
}

/// What a task said when it panicked, if it was text.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// "... panicked", and with what, if it was text.
struct Panicked<'a>(&'a (dyn Any + Send));

impl fmt::Display for Panicked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match message_of(self.0) {
            Some(message) => write!(f, "panicked: {message}"),
            None => f.write_str("panicked with a value that is no text"),
        }
    }
}

impl JoinError {
    /// Writes that `subject` panicked, and with what, if it did.
    pub(crate) fn write_panic(
        &self,
        f: &mut fmt::Formatter<'_>,
        subject: impl fmt::Display,
    ) -> Option<fmt::Result> {
        let Why::Panicked(payload) = &self.why else {
            return None;
        };
        Some(write!(f, "{subject} {}", Panicked(&**payload.lock())))
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(written) = self.write_panic(f, "the awaited task") {
            return written;
        }
        match self.kind() {
            JoinErrorKind::Inversion { waiter, awaited } => write!(
                f,
                "work at level `{waiter}` may not wait for a task at level `{awaited}`, which is not at least as \
                 urgent; call boost() on the handle first, or spawn the awaited task at `{waiter}` \
                 or a more urgent level",
            ),
            JoinErrorKind::WaitsForItself => f.write_str(
                "a task waits for its own handle and could never go on; \
                 wait for it in another task",
            ),
            JoinErrorKind::ShutDown => f.write_str(
                "the runtime was shut down before the awaited task finished; wait for the task \
                 before the shutdown, or let the shutdown drain the runtime",
            ),
            _ => f.write_str(
                "the awaited task was cancelled before it finished and has no result; \
                 if the result is needed, do not cancel the task, and let a shutdown drain its runtime",
            ),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("JoinError");
        tuple.field(&self.id).field(&self.kind());
        if let Why::Panicked(payload) = &self.why {
            tuple.field(&message_of(&**payload.lock()));
        }
        tuple.finish()
    }
}

impl Error for JoinError {}

impl From<JoinError> for std::io::Error {
    fn from(error: JoinError) -> Self {
        std::io::Error::other(error)
    }
}
