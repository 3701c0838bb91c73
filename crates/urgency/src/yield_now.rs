//! Yielding: to the tail of one's level.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Lets the other ready contexts of this level go first: the task goes to the tail of its level's queue.
///
/// # Examples
///
/// ```
/// urgency::spawn(async {
///     for _ in 0..10 {
///         urgency::yield_now().await;
///     }
/// })
/// .get()?;
/// # Ok::<(), urgency::WaitError>(())
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow(false)
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct YieldNow(bool);

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
