//! `interval`: ticks on a fixed grid.
//!
//! The n-th tick is due at `start + n * period`, whatever came before. A tick that was missed because
//! nobody asked in time is not made up: the next call returns the latest tick that is due, and the grid
//! stays. So a late consumer neither falls behind for ever nor gets a burst.
//! [`Interval::missed`] says how many ticks it did not get.

use super::{Sleep, far, sleep_until};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// Ticks every `period`; the first tick is due at once.
///
/// # Panics
/// If `period` is zero.
///
/// ```
/// use std::time::Duration;
/// use urgency::time::interval;
///
/// urgency::block_on(async {
///     let mut ticks = interval(Duration::from_millis(1));
///     let first = ticks.tick().await;
///     let second = ticks.tick().await;
///     assert!(second - first >= Duration::from_millis(1));
/// });
/// ```
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks every `period`; the first tick is due at `start`.
///
/// # Panics
/// If `period` is zero.
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "an interval's period is zero, and must be longer; use yield_now to let others run"
    );
    Interval {
        next: sleep_until(start),
        period,
        missed: 0,
    }
}

/// Ticks on a fixed grid: see [`interval`].
///
/// Missed ticks are skipped, never made up: see [`tick`](Interval::tick).
#[derive(Debug)]
pub struct Interval {
    next: Sleep,
    period: Duration,
    missed: u64,
}

impl Interval {
    /// Waits for the next tick and returns when it was due.
    ///
    /// If several were due since the last call, all but the latest are skipped: the time returned is then
    /// several periods after the one before, and [`missed`](Interval::missed) says how many were skipped. Dropping the
    /// future loses no tick.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The `poll_*` form of [`tick`](Interval::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.next).poll(cx));
        let (due, missed) = latest(self.next.deadline(), self.period, Instant::now());
        self.missed = missed;
        self.next
            .reset(due.checked_add(self.period).unwrap_or_else(|| far(due)));
        Poll::Ready(due)
    }

    /// How many ticks were skipped directly before the one that [`tick`](Interval::tick) returned last: 0 for a
    /// consumer that is in time. A frame loop that adds them up knows how many frames it owes.
    ///
    /// ```
    /// use std::{thread, time::{Duration, Instant}};
    /// use urgency::time::interval_at;
    ///
    /// let period = Duration::from_millis(10);
    /// let mut frames = interval_at(Instant::now() - 3 * period, period);
    /// urgency::block_on(async {
    ///     frames.tick().await;
    ///     assert!(frames.missed() >= 3); // those that were due before
    /// });
    /// ```
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Lets the next tick be due one period from now, and the others follow it.
    pub fn reset(&mut self) {
        self.next.reset(super::after(self.period));
    }
}

/// The latest point of the grid through `due` that is not after `now`, and how many there are from `due` to it; `due`
/// itself if that is after `now`.
fn latest(due: Instant, period: Duration, now: Instant) -> (Instant, u64) {
    let late = now.saturating_duration_since(due).as_nanos();
    let period = period.as_nanos();
    let missed = late / period;
    let skipped = missed * period;
    // It is not after `now`, so it can be represented.
    let latest = due
        + Duration::new(
            (skipped / 1_000_000_000) as u64,
            (skipped % 1_000_000_000) as u32,
        );
    (latest, u64::try_from(missed).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks_are_skipped_and_counted_and_the_grid_stays() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let at = |n| start + ms(n);
        assert_eq!(latest(start, ms(10), at(0)), (at(0), 0));
        assert_eq!(latest(start, ms(10), at(9)), (at(0), 0));
        assert_eq!(latest(start, ms(10), at(10)), (at(10), 1));
        assert_eq!(latest(start, ms(10), at(57)), (at(50), 5));
        assert_eq!(latest(at(20), ms(10), at(5)), (at(20), 0), "not due yet");
    }

    #[test]
    fn an_interval_says_how_many_ticks_it_missed_before_the_last_one() {
        let period = Duration::from_secs(1000);
        let mut ticks = interval_at(Instant::now() - 7 * period, period);
        crate::block_on(ticks.tick());
        assert_eq!(ticks.missed(), 7);
        ticks.reset();
        assert_eq!(ticks.missed(), 7, "of the last tick");
        let mut in_time = interval(period);
        crate::block_on(in_time.tick());
        assert_eq!(in_time.missed(), 0);
    }
}
