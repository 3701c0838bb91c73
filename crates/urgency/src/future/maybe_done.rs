//! A future that keeps its result: what [`join!`](crate::join) waits for.

use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

/// A future, then its result, then nothing.
#[doc(hidden)]
#[derive(Debug)]
pub enum MaybeDone<F: Future> {
    /// Not ready yet.
    Waits(F),
    /// Ready, and not taken.
    Done(F::Output),
    /// Taken.
    Taken,
}

impl<F: Future> MaybeDone<F> {
    /// Not polled yet.
    pub fn new(future: F) -> Self {
        MaybeDone::Waits(future)
    }

    /// Polls the future, if it is not ready yet.
    pub fn poll_done(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the future is pinned with the whole, and only dropped in its place; its result is never pinned.
        let this = unsafe { self.as_mut().get_unchecked_mut() };
        let MaybeDone::Waits(future) = this else {
            return Poll::Ready(());
        };
        // SAFETY: as above.
        let result = std::task::ready!(unsafe { Pin::new_unchecked(future) }.poll(cx));
        self.set(MaybeDone::Done(result));
        Poll::Ready(())
    }

    /// The result, if it is there.
    pub fn take(self: Pin<&mut Self>) -> Option<F::Output> {
        // SAFETY: only a result is moved.
        let this = unsafe { self.get_unchecked_mut() };
        if !matches!(this, MaybeDone::Done(_)) {
            return None;
        }
        match mem::replace(this, MaybeDone::Taken) {
            MaybeDone::Done(result) => Some(result),
            _ => unreachable!("looked at above"),
        }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> MaybeDone<F> {
    /// The error, if the result is there and is one.
    pub fn take_error(self: Pin<&mut Self>) -> Option<E> {
        if !matches!(*self, MaybeDone::Done(Err(_))) {
            return None;
        }
        self.take()?.err()
    }
}
