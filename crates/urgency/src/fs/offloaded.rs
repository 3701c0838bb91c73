//! A blocking operation as a future.
//!
//! The closure runs at the level of the code that started it, on a stack of its own, and is declared blocking as a
//! whole. A panic in it is resumed in the code that awaits it.
//!
//! The operation waits for a device, so code of any level may wait for the operation: that is no priority inversion.
//! The operation becomes as urgent as its waiter.
//!
//! The operation does not inherit its starter's deadline: code that has begun and goes on past its deadline can still
//! use the system.
//!
//! To start an operation is no scheduling point: a file starts its operations half way between two states, and a
//! standard stream with its lock held. A stack that was abandoned there would keep the file or the stream from urgent
//! work.

use crate::{
    JoinHandle,
    life::without_deadline,
    runtime::Handle,
    spawn::{NewAt, spawn_fn_with},
};
use std::{
    io,
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll},
};

/// A blocking operation that was started when this was made, for instance by [`read`](super::read()); awaiting it gives
/// the result.
///
/// Dropping it does not undo the operation: it goes on, and its result is dropped.
///
/// # Errors
/// The operation's errors; or that the runtime was shut down before the result was there.
#[must_use = "the operation may fail"]
pub struct Offloaded<T: Send + 'static>(JoinHandle<io::Result<T>>);

impl<T: Send + 'static> Offloaded<T> {
    /// Starts `operation`.
    pub(crate) fn new(operation: impl FnOnce() -> io::Result<T> + Send + 'static) -> Self {
        let handle = Handle::current();
        let here = NewAt::here(handle.job());
        let operation = move || crate::blocking(operation);
        let spawn = || spawn_fn_with(handle.job(), here, operation, |_| ());
        Offloaded(without_deadline(spawn))
    }
}

impl<T: Send + 'static> Future for Offloaded<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        match self.0.poll_device(cx) {
            Poll::Ready(Ok(result)) => Poll::Ready(result),
            Poll::Ready(Err(error)) => Poll::Ready(Err(match error.try_into_panic() {
                Ok(payload) => resume_unwind(payload),
                Err(error) => error.into(),
            })),
            Poll::Pending => {
                // A closure of `At::run` has a level and is no task.
                self.0.boost();
                Poll::Pending
            }
        }
    }
}

debug_struct!([T: Send + 'static] Offloaded<T>, |it| is_finished: it.0.is_finished());
