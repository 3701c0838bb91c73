//! `sleep`: a future that is ready at a point in time.
//!
//! # States
//!
//! - *unregistered*: not polled since it was made or reset.
//! - *registered*: a timer of a driver has the waker. Its key finds nothing once the timer fired.
//! - *over*: it was ready.
//!
//! A sleep belongs to the runtime in which it is first polled. If that runtime is shut down before the
//! deadline, the next poll registers it with the runtime of the current thread; if there is none that
//! still runs, the poll panics, since returning would claim that the time is over.

use super::{Instant, after};
use crate::{
    io::driver::{Driver, DriverShut},
    time::timers::TimerKey,
};
use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// Is ready when `duration` is over, counted from this call.
///
/// A duration beyond what the clock can represent never ends. Zero is ready at once.
///
/// ```
/// use urgency::time::{Duration, Instant, sleep};
///
/// let start = Instant::now();
/// urgency::block_on(sleep(Duration::from_millis(5)));
/// assert!(start.elapsed() >= Duration::from_millis(5));
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(after(duration))
}

/// Is ready at `deadline`, or at once if that is past.
///
/// ```
/// use urgency::time::{Instant, sleep_until};
///
/// urgency::block_on(sleep_until(Instant::now()));
/// ```
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        deadline,
        timer: None,
        is_over: false,
    }
}

/// A future that is ready at a point in time: see [`sleep`].
///
/// It never is ready early. Dropping it cancels its timer. It can be polled again after it was ready, and
/// [`reset`](Sleep::reset) to another time at any moment.
///
/// # Panics
/// Polling panics if no driver can be had: its runtime was shut down and there is no other, or the
/// process is out of descriptors.
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    deadline: Instant,
    timer: Option<(Arc<Driver>, TimerKey)>,
    is_over: bool,
}

impl Sleep {
    /// When it is ready.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it was ready already.
    pub fn is_elapsed(&self) -> bool {
        self.is_over
    }

    /// Makes it ready at another time. It must be polled again to wake anybody then.
    ///
    /// ```
    /// use urgency::time::{Duration, Instant, sleep};
    ///
    /// let mut rest = sleep(Duration::from_secs(3600));
    /// rest.reset(Instant::now());
    /// urgency::block_on(rest);
    /// ```
    pub fn reset(&mut self, deadline: Instant) {
        self.cancel();
        self.deadline = deadline;
        self.is_over = false;
    }

    fn cancel(&mut self) {
        if let Some((driver, key)) = self.timer.take() {
            driver.cancel_timer(key);
        }
    }

    /// As a poll; but if the runtime of the calling code was shut down, that is an error and no panic.
    ///
    /// # Panics
    /// If there is no driver, because the process is out of descriptors.
    pub(crate) fn poll_unless_shut(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), DriverShut>> {
        if self.is_over {
            return Poll::Ready(Ok(()));
        }
        if let Some((driver, key)) = &self.timer {
            if driver.rewake_timer(*key, cx.waker()) {
                return Poll::Pending;
            }
            self.timer = None;
        }
        if Instant::now() >= self.deadline {
            self.is_over = true;
            return Poll::Ready(Ok(()));
        }
        let driver = match crate::runtime::driver() {
            Ok(driver) => driver,
            Err(error) => Self::no_driver(error),
        };
        let key = driver.add_timer(self.deadline.into_std(), cx.waker())?;
        self.timer = Some((driver, key));
        Poll::Pending
    }

    #[cold]
    fn no_driver(error: impl fmt::Display) -> ! {
        panic!("a timer cannot be waited for: {error}")
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.poll_unless_shut(cx);
        polled.map(|over| over.unwrap_or_else(|error| Self::no_driver(error)))
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}
