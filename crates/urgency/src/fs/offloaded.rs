//! A blocking operation as a future.
//!
//! The closure runs at the level of whoever started it, on a stack of its own, and is declared blocking as
//! a whole. A panic in it is resumed in whoever awaits it.

use crate::Handle;
use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// A blocking operation that was started when this was made; awaiting it gives the result.
///
/// Dropping it does not undo it: the operation goes on and nobody learns its result.
///
/// # Errors
/// Those of the operation; or that the runtime was shut down before the result was there.
#[must_use = "the operation may fail"]
pub struct Offloaded<T: Send + 'static>(Handle<io::Result<T>>);

impl<T: Send + 'static> Offloaded<T> {
    /// Starts `operation`.
    pub(crate) fn new(operation: impl FnOnce() -> io::Result<T> + Send + 'static) -> Self {
        Offloaded(crate::spawn_fn(move || crate::blocking(operation)))
    }
}

impl<T: Send + 'static> Future for Offloaded<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(result) => Poll::Ready(result),
            Err(error) => Poll::Ready(Err(io::Error::other(error))),
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Offloaded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offloaded")
            .field("is_finished", &self.0.is_finished())
            .finish()
    }
}
