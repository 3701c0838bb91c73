//! `Instant`: a point in time, by the clock of the runtime.
//!
//! It is the system's monotonic clock, unless the runtime's was paused ([`pause`](super::pause)). A program that pauses
//! none pays one load for that.

use crate::{reactor::clock, runtime};
use std::{
    fmt,
    ops::{Add, AddAssign, Sub, SubAssign},
    time::Duration,
};

/// A point in time. It is a [`std::time::Instant`], but for runtimes whose clock was paused.
///
/// ```
/// use urgency::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let minute = Duration::from_secs(60);
/// let limit = start + minute;
/// assert!(limit > Instant::now());
/// assert_eq!((limit.duration_since(start), start.duration_since(limit)), (minute, Duration::ZERO));
/// assert_eq!(start.checked_duration_since(limit), None);
/// assert_eq!((start.checked_add(minute), limit.checked_sub(minute)), (Some(limit), Some(start)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(std::time::Instant);

impl Instant {
    /// Now, by the clock of the calling code's runtime.
    pub fn now() -> Self {
        let real = std::time::Instant::now();
        if !clock::was_ever_paused() {
            return Instant(real);
        }
        Instant(runtime::driver().map_or(real, |driver| driver.clock_now()))
    }

    /// The same point in time.
    pub fn from_std(std: std::time::Instant) -> Self {
        Instant(std)
    }

    /// The same point in time.
    pub fn into_std(self) -> std::time::Instant {
        self.0
    }

    /// The time from `earlier` to this; zero if that is later.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// The time from `earlier` to this, unless that is later.
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// As [`duration_since`](Self::duration_since).
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }

    /// The time from this to now; zero if this is still to come.
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }

    /// The point in time so much later, if the clock can represent it.
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_add(duration).map(Instant)
    }

    /// The point in time so much earlier, if the clock can represent it.
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(duration).map(Instant)
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Self {
        Instant(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0 - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        self.0 -= duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
