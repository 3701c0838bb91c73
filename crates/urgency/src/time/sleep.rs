//! `sleep`: a future that is ready at a point in time.
//!
//! # States
//!
//! - *unregistered*: not polled since it was made, or since its timer fired. A sleep that was neither polled nor reset
//!   has not *begun*, and is not elapsed, as with Tokio.
//! - *registered*: a timer of a driver has the waker, or a timer of the spare clock if no driver can be had. A reset
//!   moves the timer, which keeps the waker: code that polls only what was woken (`FuturesUnordered`) relies on it. The
//!   timer's key finds nothing once the timer fired.
//! - *over*: it was ready.
//!
//! A sleep belongs to the runtime in which it is first polled. If that runtime is shut down before the deadline, the
//! next poll registers the sleep with the runtime of the current thread. If the current thread's runtime was shut down,
//! too, its tasks are to end, and so does the task that sleeps: its poll is pending for ever, or, where it blocks on
//! the sleep, it unwinds. To return would claim that the time is over.

use super::{Instant, after, spare_clock};
use crate::reactor::{
    driver::{Driver, DriverShut},
    timers::TimerKey,
};
use crate::runtime::coop;
use crate::sched::doors::caller::{ends_with_runtime, has_ended, unwind_with_runtime};
use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Is ready when `duration` is over, counted from this call.
///
/// A duration beyond what the clock can represent ends after a century, which a paused clock may reach
/// ([`pause`](super::pause)). Zero is ready at once.
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
        has_begun: false,
        has_moved: false,
        has_paused: false,
        is_over: false,
    }
}

/// A future that is ready at a point in time: see [`sleep`].
///
/// It never is ready early. Dropping it cancels its timer. It can be polled again after it was ready, and
/// [`reset`](Sleep::reset) to another time at any moment.
///
/// In a task whose runtime was shut down it ends that task: see [`Runtime`](crate::Runtime).
///
/// # Panics
/// Polling panics if its runtime was shut down and the calling code is no task of it; and if the process has neither
/// descriptors nor a thread left to wait with.
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    deadline: Instant,
    timer: Option<Timer>,
    has_begun: bool,
    /// A reset has moved its timer. The driver may not have seen yet that the new time is past.
    has_moved: bool,
    /// Its time was over, and others of its task's level went first (`runtime/coop.rs`).
    has_paused: bool,
    is_over: bool,
}

/// Where the waker is.
enum Timer {
    Driver(Arc<Driver>, TimerKey),
    Spare(TimerKey),
}

impl Timer {
    fn add(deadline: std::time::Instant, waker: &Waker) -> Result<Timer, DriverShut> {
        match crate::runtime::driver() {
            Ok(driver) => {
                let key = driver.add_timer(deadline, waker)?;
                Ok(Timer::Driver(driver, key))
            }
            Err(no_driver) => match spare_clock::add(deadline, waker) {
                Ok(key) => Ok(Timer::Spare(key)),
                Err(no_thread) => cannot_wait(format_args!("{no_driver}; {no_thread}")),
            },
        }
    }

    /// `false`: it fired already.
    fn rewake(&self, waker: &Waker) -> bool {
        match self {
            Timer::Driver(driver, key) => driver.rewake_timer(*key, waker),
            Timer::Spare(key) => spare_clock::rewake(*key, waker),
        }
    }

    /// `false`: it fired already.
    fn reset(&self, deadline: std::time::Instant) -> bool {
        match self {
            Timer::Driver(driver, key) => driver.reset_timer(*key, deadline),
            Timer::Spare(key) => spare_clock::reset(*key, deadline),
        }
    }

    fn cancel(self) {
        match self {
            Timer::Driver(driver, key) => driver.cancel_timer(key),
            Timer::Spare(key) => spare_clock::cancel(key),
        }
    }
}

#[cold]
fn cannot_wait(why: impl fmt::Display) -> ! {
    panic!("a timer cannot be waited for: {why}")
}

impl Sleep {
    /// When it is ready.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether its time has come: the next poll is ready.
    ///
    /// A sleep that was neither polled nor [`reset`](Sleep::reset) is not elapsed, whatever the time.
    pub fn is_elapsed(&self) -> bool {
        self.has_begun && Instant::now() >= self.deadline
    }

    /// Makes it ready at another time. What it would have woken at the time before it wakes then. After it was ready it
    /// must be polled again to wake anybody.
    ///
    /// ```
    /// use std::pin::pin;
    /// use urgency::time::{Duration, Instant, sleep};
    ///
    /// let mut rest = pin!(sleep(Duration::from_secs(3600)));
    /// rest.as_mut().reset(Instant::now());
    /// urgency::block_on(rest);
    /// ```
    pub fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        let reset = |timer: &Timer| timer.reset(deadline.into_std());
        self.has_moved = self.timer.as_ref().is_some_and(reset);
        if !self.has_moved {
            self.cancel();
        }
        self.deadline = deadline;
        self.has_begun = true;
        self.has_paused = false;
        self.is_over = false;
    }

    fn cancel(&mut self) {
        self.timer.take().into_iter().for_each(Timer::cancel);
    }

    /// As a poll; but if the runtime of the calling code was shut down, that is an error and no panic.
    ///
    /// # Panics
    /// If the process has neither descriptors nor a thread left to wait with.
    pub(crate) fn poll_unless_shut(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), DriverShut>> {
        if self.is_over {
            return Poll::Ready(Ok(()));
        }
        self.has_begun = true;
        if let Some(timer) = &self.timer {
            let is_past = self.has_moved && Instant::now() >= self.deadline;
            if !is_past && !has_ended() && timer.rewake(cx.waker()) {
                return Poll::Pending;
            }
            self.cancel();
            self.has_moved = false;
        }
        if Instant::now() >= self.deadline {
            if !self.has_paused && coop::is_used_up(cx.waker()) {
                self.has_paused = true;
                return Poll::Pending;
            }
            coop::take();
            self.is_over = true;
            return Poll::Ready(Ok(()));
        }
        if has_ended() {
            return Poll::Ready(Err(DriverShut));
        }
        self.timer = Some(Timer::add(self.deadline.into_std(), cx.waker())?);
        Poll::Pending
    }
}

impl Sleep {
    /// As a poll. If the runtime of the calling code has ended, and that code is no task of it, `ended` says what is
    /// ready.
    fn poll_or_else(
        &mut self,
        cx: &mut Context<'_>,
        ended: impl FnOnce(&mut Self, &mut Context<'_>, DriverShut) -> Poll<()>,
    ) -> Poll<()> {
        match self.poll_unless_shut(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(_)) if ends_with_runtime() => Poll::Pending,
            Poll::Ready(Err(error)) => {
                unwind_with_runtime();
                ended(self, cx, error)
            }
        }
    }

    /// As a poll, for a wait that outlasts the runtime of the calling code: after the end of that the spare clock has
    /// the timer.
    ///
    /// # Panics
    /// If the process has no thread left to wait with.
    pub(crate) fn poll_beyond_the_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_or_else(cx, |this, cx, _| {
            let timer = spare_clock::add(this.deadline.into_std(), cx.waker());
            this.timer = Some(Timer::Spare(timer.unwrap_or_else(|why| cannot_wait(why))));
            Poll::Pending
        })
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_or_else(cx, |_, _, error| cannot_wait(error))
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel();
    }
}

debug_struct!(Sleep, |it| deadline: it.deadline, is_over: it.is_over);
