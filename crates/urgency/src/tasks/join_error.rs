//! `JoinError`: why a task gave no result, its panic included, as a value.

use super::WaitError;
use std::{any::Any, error::Error, fmt, sync::Mutex};

/// A task gave no result: it panicked, or it was cancelled.
pub struct JoinError(Kind);

enum Kind {
    Cancelled(WaitError),
    /// Behind a lock, so that the error is `Sync`, as others are.
    Panicked(Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    pub(crate) fn cancelled(error: WaitError) -> Self {
        JoinError(Kind::Cancelled(error))
    }

    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Self {
        JoinError(Kind::Panicked(Mutex::new(payload)))
    }

    /// Whether the task was cancelled, by its handle or by the end of its runtime.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Kind::Cancelled(_))
    }

    /// Whether the task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Kind::Panicked(_))
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
        match self.0 {
            Kind::Panicked(payload) => Ok(payload
                .into_inner()
                .unwrap_or_else(|poisoned| poisoned.into_inner())),
            Kind::Cancelled(_) => Err(self),
        }
    }

    /// What the task said when it panicked, if it was text.
    fn message(payload: &Mutex<Box<dyn Any + Send>>) -> Option<String> {
        let payload = payload
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let text = payload.downcast_ref::<&str>().copied();
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .map(str::to_owned)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Cancelled(error) => error.fmt(f),
            Kind::Panicked(payload) => match Self::message(payload) {
                Some(message) => write!(f, "the task panicked: {message}"),
                None => f.write_str("the task panicked with a payload that is no text"),
            },
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Cancelled(error) => f.debug_tuple("Cancelled").field(error).finish(),
            Kind::Panicked(payload) => {
                let message = Self::message(payload);
                f.debug_tuple("Panicked").field(&message).finish()
            }
        }
    }
}

impl Error for JoinError {}
