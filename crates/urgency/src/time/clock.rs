//! A clock that can stand still, for tests of what takes long: [`pause`], [`resume`], [`advance`].
//!
//! Each runtime has its own, in its driver. It is only there once it was paused; without it, the driver's times are the
//! system's. All times are nanoseconds since the driver was made.
//!
//! # States
//!
//! - *paused*: it shows `base`.
//! - *running*: it shows `base`, and what has passed since `since`.
//!
//! While it is paused and the runtime has nothing to do but wait for a timer, the driver moves it on to that timer
//! (`Driver::expire`). To see that, it looks at the runtime each [`LOOK`] of real time.

use super::instant::note_pause;
use crate::reactor::driver::Driver;
use std::{sync::Arc, time::Duration};

/// After so many nanoseconds a driver with a paused clock looks again whether its runtime is idle.
pub(crate) const LOOK: u64 = 100_000;

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: u64,
    since: Option<u64>,
}

impl Clock {
    /// Stands still at `now`.
    pub(crate) fn paused(now: u64) -> Self {
        Clock {
            base: now,
            since: None,
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.since.is_none()
    }

    /// What it shows at a real time.
    pub(crate) fn now(&self, real: u64) -> u64 {
        let passed = self.since.map_or(0, |since| real.saturating_sub(since));
        self.base.saturating_add(passed)
    }

    /// The real time at which to look for a timer that is due at `at`.
    pub(crate) fn real(&self, at: u64, real_now: u64) -> u64 {
        match self.since {
            Some(since) => since.saturating_add(at.saturating_sub(self.base)),
            None if at <= self.base => real_now,
            None => real_now.saturating_add(LOOK),
        }
    }

    /// Stands still from now on.
    pub(crate) fn pause(&mut self, real: u64) {
        *self = Clock::paused(self.now(real));
    }

    /// Runs from now on.
    pub(crate) fn resume(&mut self, real: u64) {
        self.since = Some(real);
    }

    /// Goes on to a later time.
    pub(crate) fn move_to(&mut self, at: u64) {
        self.base = self.base.max(at);
    }
}

/// Stops the clock of a driver. False if it was stopped before.
pub(crate) fn pause_of(driver: &Driver) -> bool {
    note_pause();
    driver.pause_clock()
}

fn driver(what: &str) -> Arc<Driver> {
    match crate::runtime::driver() {
        Ok(driver) => driver,
        Err(error) => panic!("the clock cannot be {what}: {error}"),
    }
}

/// Stops the clock of the calling code's runtime, for tests.
///
/// From now on [`Instant::now`](super::Instant::now) stands still. Timers of the runtime fire when the clock is moved
/// by [`advance`]; and if nothing else is to be done in the runtime, the clock goes on to the next timer by itself.
/// What other threads and devices do takes as long as ever, and the clock does not wait for it.
///
/// # Panics
///
/// If the clock is paused already.
///
/// ```
/// use urgency::time::{self, Duration, Instant};
///
/// let runtime = urgency::Runtime::builder().workers(1).build()?;
/// runtime.block_on(async {
///     time::pause();
///     let start = Instant::now();
///     time::sleep(Duration::from_secs(3600)).await; // at once
///     assert_eq!(start.elapsed(), Duration::from_secs(3600));
/// });
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[track_caller]
pub fn pause() {
    assert!(pause_of(&driver("paused")), "the clock is paused already");
}

/// Lets a paused clock go on from the time that it shows.
///
/// # Panics
///
/// If the clock is not paused.
#[track_caller]
pub fn resume() {
    assert!(driver("resumed").resume_clock(), "the clock is not paused");
}

/// Moves a paused clock on, fires the timers that are due then, and lets others run once.
///
/// # Panics
///
/// If the clock is not paused.
pub async fn advance(duration: Duration) {
    assert!(
        driver("moved on").advance_clock(duration),
        "the clock is not paused; call `pause` before"
    );
    crate::yield_now().await;
}
