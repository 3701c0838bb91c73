//! The server's time: whole seconds, read when it is asked for.
//!
//! memcached has a thread that counts seconds. Here nothing ticks: a connection reads the kernel's coarse
//! monotonic clock (a few nanoseconds, no system call) once for each batch of requests. An idle server never
//! wakes up to see what time it is.
//!
//! Times are seconds since shortly before the start, so they fit 32 bits and are never 0; an expiry of 0 is "never".

use rustix::time::{ClockId, clock_gettime};
use std::{
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

/// The server's age at its start. Something must be earlier than the start, to stand for what is long past.
const FIRST: i64 = 2;

/// A longer expiry is a date.
const RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;

/// An expiry that is past.
const LONG_AGO: u32 = 1;

/// See the module's text.
#[derive(Debug)]
pub struct Clock {
    /// What the monotonic clock showed at time 0.
    zero: i64,
    /// What the calendar showed at time 0.
    unix_zero: i64,
    /// By how much tests have moved the time.
    moved: AtomicI64,
    /// The time at which tests have stopped it, or 0.
    stopped: AtomicI64,
}

fn monotonic() -> i64 {
    clock_gettime(ClockId::MonotonicCoarse).tv_sec
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix = unix.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
        Clock {
            zero: monotonic() - FIRST,
            unix_zero: unix - FIRST,
            moved: AtomicI64::new(0),
            stopped: AtomicI64::new(0),
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> u32 {
        let stopped = self.stopped.load(Relaxed);
        let time = if stopped == 0 {
            monotonic() - self.zero
        } else {
            stopped
        };
        // A server does not run for 136 years.
        u32::try_from(time + self.moved.load(Relaxed)).unwrap_or(LONG_AGO)
    }

    /// Seconds since the start.
    pub fn uptime(&self) -> u32 {
        self.now().saturating_sub(FIRST as u32)
    }

    /// Seconds since 1970 at the server's `time`.
    pub fn unix(&self, time: u32) -> i64 {
        self.unix_zero + i64::from(time)
    }

    /// The time that a client means: 0 is never, a negative number is past, up to 30 days are from now, and
    /// more is a date in seconds since 1970.
    #[inline]
    pub fn expiry(&self, asked: i64, now: u32) -> u32 {
        let time = match asked {
            0 => return 0,
            i64::MIN..0 => return LONG_AGO,
            1..=RELATIVE_MAX => i64::from(now) + asked,
            _ => (asked - self.unix_zero).max(i64::from(LONG_AGO)),
        };
        u32::try_from(time).unwrap_or(u32::MAX)
    }

    /// Moves the time; for tests.
    pub fn shift(&self, seconds: i64) {
        self.moved.fetch_add(seconds, Relaxed);
    }

    /// Stops the time or lets it go on; for tests.
    pub fn stop(&self, stop: bool) {
        let at = if stop { monotonic() - self.zero } else { 0 };
        self.stopped.store(at, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_delay_up_to_thirty_days_and_a_date_beyond() {
        let clock = Clock::new();
        let now = clock.now();
        assert_eq!(clock.expiry(0, now), 0);
        assert_eq!(clock.expiry(-1, now), LONG_AGO);
        assert_eq!(clock.expiry(60, now), now + 60);
        assert_eq!(clock.expiry(RELATIVE_MAX, now), now + RELATIVE_MAX as u32);
        assert_eq!(clock.expiry(RELATIVE_MAX + 1, now), LONG_AGO, "in 1970");
        assert_eq!(clock.expiry(clock.unix(now + 7), now), now + 7);
        assert_eq!(clock.expiry(i64::MAX, now), u32::MAX);
    }

    #[test]
    fn tests_can_move_the_time_and_stop_it() {
        let clock = Clock::new();
        let before = clock.now();
        clock.shift(1000);
        assert!(clock.now() >= before + 1000);
        clock.stop(true);
        let stopped = clock.now();
        clock.shift(5);
        assert_eq!(clock.now(), stopped + 5);
        clock.stop(false);
        assert!(clock.now() >= stopped);
    }
}
