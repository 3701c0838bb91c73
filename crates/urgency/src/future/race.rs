//! The first of several futures.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};

/// Which of two futures won a [`race`], with its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    First(A),
    /// The second one.
    Second(B),
}

/// Waits for the first of two futures. The other one is dropped. If both are ready, `a` wins.
///
/// ```
/// use std::{future::pending, time::Duration};
/// use urgency::{future::{Either, race}, time::sleep};
///
/// let won = urgency::block_on(race(pending::<()>(), sleep(Duration::from_millis(1))));
/// assert_eq!(won, Either::Second(()));
/// ```
pub async fn race<A: IntoFuture, B: IntoFuture>(a: A, b: B) -> Either<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a.into_future()), pin!(b.into_future()));
    poll_fn(|cx| {
        if let Poll::Ready(output) = a.as_mut().poll(cx) {
            return Poll::Ready(Either::First(output));
        }
        b.as_mut().poll(cx).map(Either::Second)
    })
    .await
}

/// Waits for the first of many futures, and says by its place in the sequence which it was. The others are
/// dropped. It never ends if there are none.
///
/// ```
/// use std::time::Duration;
/// use urgency::{future::race_all, time::sleep};
///
/// let sleeps = [3600, 0, 7200].map(|seconds| Box::pin(async move {
///     sleep(Duration::from_secs(seconds)).await;
///     seconds
/// }));
/// assert_eq!(urgency::block_on(race_all(sleeps)), (1, 0));
/// ```
pub fn race_all<I>(futures: I) -> RaceAll<<I::Item as IntoFuture>::IntoFuture>
where
    I: IntoIterator<Item: IntoFuture<IntoFuture: Unpin>>,
{
    RaceAll(futures.into_iter().map(IntoFuture::into_future).collect())
}

/// The future of [`race_all`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct RaceAll<F>(Vec<F>);

impl<F: Future + Unpin> Future for RaceAll<F> {
    type Output = (usize, F::Output);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        for (place, future) in self.0.iter_mut().enumerate() {
            if let Poll::Ready(output) = Pin::new(future).poll(cx) {
                self.0.clear();
                return Poll::Ready((place, output));
            }
        }
        Poll::Pending
    }
}
