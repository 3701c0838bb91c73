//! `interval`: ticks in a rhythm.
//!
//! A tick is due a period after the one before. If a tick was not asked for in time, [`MissedTickBehavior`] says when
//! the next ticks are due. [`Interval::missed`] says how many were due already.

use super::{Instant, Sleep, far, sleep_until};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
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
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks every `period`; the first tick is due at `start`.
///
/// # Panics
/// If `period` is zero.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "an interval's period is zero, and must be longer; use yield_now to let others run"
    );
    Interval {
        next: sleep_until(start),
        period,
        behavior: MissedTickBehavior::default(),
        missed: 0,
    }
}

/// A tick that is asked for later than this after it was due was missed.
const TOLERANCE: Duration = Duration::from_millis(5);

/// When ticks are due after one that was missed.
///
/// Ticks are due every 10 ms here, and the second one was asked for 25 ms too late:
///
/// ```text
/// due        0   10   20   30   40   50   60
/// Burst      0             35 35 35 40 50 60      makes up for what was missed
/// Delay      0             35    45    55         goes on from there
/// Skip       0             35    40 50 60         keeps the rhythm
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// Missed ticks come one after the other, at once; the rhythm stays.
    #[default]
    Burst,
    /// The next tick is due a period after the missed one was given; the rhythm moves.
    Delay,
    /// The next tick is due when the rhythm says so, and what was missed is left out.
    Skip,
}

impl MissedTickBehavior {
    /// When the tick after the one that was due at `due` and given at `now` is due.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        let late = now.duration_since(due);
        let next = if late <= TOLERANCE {
            due.checked_add(period)
        } else {
            match self {
                MissedTickBehavior::Burst => due.checked_add(period),
                MissedTickBehavior::Delay => now.checked_add(period),
                MissedTickBehavior::Skip => {
                    let into = late.as_nanos() % period.as_nanos();
                    let into =
                        Duration::new((into / 1_000_000_000) as u64, (into % 1_000_000_000) as u32);
                    now.checked_add(period - into)
                }
            }
        };
        next.unwrap_or_else(|| far(now))
    }
}

/// Ticks in a rhythm: see [`interval`].
#[derive(Debug)]
pub struct Interval {
    next: Sleep,
    period: Duration,
    behavior: MissedTickBehavior,
    missed: u64,
}

impl Interval {
    /// Waits for the next tick and returns when it was due. Dropping the future loses no tick.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The `poll_*` form of [`tick`](Interval::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.next).poll(cx));
        let (due, now) = (self.next.deadline(), Instant::now());
        self.missed = missed(now.saturating_duration_since(due), self.period);
        Pin::new(&mut self.next).reset(self.behavior.next(due, now, self.period));
        Poll::Ready(due)
    }

    /// How many further ticks were due already when [`tick`](Interval::tick) returned last: 0 for a consumer that is in
    /// time. What becomes of them is for the [`MissedTickBehavior`] to say.
    ///
    /// ```
    /// use urgency::time::{Duration, Instant, interval_at};
    ///
    /// let period = Duration::from_millis(10);
    /// let mut frames = interval_at(Instant::now(), period);
    /// std::thread::sleep(3 * period);
    /// urgency::block_on(async {
    ///     frames.tick().await;
    ///     assert!(frames.missed() >= 3);
    /// });
    /// ```
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// What happens after a tick that was missed.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.behavior
    }

    /// Sets what happens after a tick that was missed.
    ///
    /// ```
    /// use urgency::time::{Duration, Instant, MissedTickBehavior, interval_at};
    ///
    /// urgency::block_on(async {
    ///     let start = Instant::now() - Duration::from_millis(95);
    ///     let mut ticks = interval_at(start, Duration::from_millis(10));
    ///     ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ///     assert_eq!(ticks.tick().await, start);
    ///     assert!(ticks.tick().await >= start + Duration::from_millis(100));
    /// });
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.behavior = behavior;
    }

    /// Lets the next tick be due one period from now, and the others follow it.
    ///
    /// ```
    /// use urgency::time::{Duration, Instant, interval};
    ///
    /// let runtime = urgency::runtime::Builder::new_current_thread().start_paused(true).build()?;
    /// runtime.block_on(async {
    ///     let (start, second) = (Instant::now(), Duration::from_secs(1));
    ///     let mut ticks = interval(second);
    ///     ticks.tick().await; // the first one is due at once
    ///     urgency::time::sleep(second / 2).await;
    ///     ticks.reset();
    ///     assert_eq!(ticks.tick().await, start + second * 3 / 2);
    /// });
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn reset(&mut self) {
        Pin::new(&mut self.next).reset(super::after(self.period));
    }

    /// Lets the next tick be due now, and the others follow it.
    pub fn reset_immediately(&mut self) {
        Pin::new(&mut self.next).reset(Instant::now());
    }

    /// Lets the next tick be due so much from now, and the others follow it.
    ///
    /// ```
    /// use urgency::time::{self, Duration, Instant, MissedTickBehavior, interval};
    ///
    /// let runtime = urgency::runtime::Builder::new_current_thread().start_paused(true).build()?;
    /// runtime.block_on(async {
    ///     let start = Instant::now();
    ///     let second = Duration::from_secs(1);
    ///     let mut ticks = interval(second);
    ///     assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    ///     ticks.tick().await; // the first one is due at once
    ///     ticks.reset_after(5 * second);
    ///     assert_eq!(ticks.tick().await, start + 5 * second);
    ///     ticks.reset_at(start + 7 * second);
    ///     assert_eq!(ticks.tick().await, start + 7 * second);
    ///     ticks.reset_immediately();
    ///     assert_eq!(ticks.tick().await, start + 7 * second);
    /// });
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn reset_after(&mut self, after: Duration) {
        Pin::new(&mut self.next).reset(super::after(after));
    }

    /// Lets the next tick be due at this time, and the others follow it.
    pub fn reset_at(&mut self, deadline: Instant) {
        Pin::new(&mut self.next).reset(deadline);
    }
}

/// How many further ticks were due when one was given so late.
fn missed(late: Duration, period: Duration) -> u64 {
    u64::try_from(late.as_nanos() / period.as_nanos().max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_missed_tick_the_behavior_says_when_the_next_is_due() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let next = |behavior: MissedTickBehavior, now| {
            behavior.next(start, start + ms(now), ms(10)) - start
        };
        for behavior in [
            MissedTickBehavior::Burst,
            MissedTickBehavior::Delay,
            MissedTickBehavior::Skip,
        ] {
            assert_eq!(next(behavior, 4), ms(10), "not missed");
        }
        assert_eq!(next(MissedTickBehavior::Burst, 37), ms(10));
        assert_eq!(next(MissedTickBehavior::Delay, 37), ms(47));
        assert_eq!(next(MissedTickBehavior::Skip, 37), ms(40));
        assert_eq!(next(MissedTickBehavior::Skip, 40), ms(50));
    }

    #[test]
    fn an_interval_says_how_many_ticks_it_missed() {
        let period = Duration::from_secs(1000);
        let start = Instant::now();
        let late = |late| missed(Duration::from_secs(late), period);
        assert_eq!([0, 999, 1000, 5700].map(late), [0, 0, 1, 5]);
        let mut ticks = interval_at(start, period);
        crate::block_on(ticks.tick());
        assert_eq!(ticks.missed(), 0, "in time");
    }
}
