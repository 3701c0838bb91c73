//! `timeout`: a limit on how long a future may take.
//!
//! The future is polled first, so that one that is ready in time, or at the very moment of the deadline,
//! wins. The timer is registered only if the future is pending. When the limit is over, the future is
//! dropped with the `Timeout`, which cancels it.

use super::{Instant, Sleep, after, sleep_until};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// The result of `future`, unless it takes longer than `duration`, counted from this call.
///
/// # Errors
/// [`Elapsed`] when the time is over. The future is cancelled by being dropped with the `Timeout`.
///
/// # Which work a limit ends
/// Code that computes in the polls of `future` is not interrupted. A computation in a closure of its own
/// ([`spawn_fn`](crate::spawn_fn)), which `future` awaits, goes on beside the limit, at the same level as well. It ends
/// early only if it looks at something that is set when the limit is over, such as a
/// [`CancellationToken`](crate::life::CancellationToken).
///
/// ```
/// use std::{future::pending, time::Duration};
/// use urgency::time::timeout;
///
/// urgency::block_on(async {
///     assert_eq!(timeout(Duration::from_secs(60), async { 5 }).await, Ok(5));
///     assert!(timeout(Duration::from_millis(1), pending::<()>()).await.is_err());
/// });
/// ```
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    timeout_at(after(duration), future)
}

/// The result of `future`, unless it takes longer than until `at`.
///
/// # Errors
/// As [`timeout`].
pub fn timeout_at<F: IntoFuture>(at: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        limit: sleep_until(at),
    }
}

/// A future with a limit: see [`timeout`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Timeout<F> {
    /// Pinned when the whole is. There is no `Drop`; other access by `&mut` needs the whole unpinned.
    future: F,
    limit: Sleep,
}

impl<F> Timeout<F> {
    /// The future, for a look.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// The future, to change it.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// The future, without its limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `future` is only ever accessed pinned from here on, and moves with the whole only; `limit`
        // is Unpin.
        let (future, limit) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &mut this.limit)
        };
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(limit).poll(cx).map(|()| Err(Elapsed(())))
    }
}

/// The time limit was over before the result was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

error_text!(
    Elapsed,
    "the time limit was over before the result was there; the future was cancelled"
);

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> Self {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}
