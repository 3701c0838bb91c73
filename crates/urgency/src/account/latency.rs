//! A histogram of times, as programs see it: quantiles for people, buckets and sums for alerts.
//!
//! The buckets are the ones of `counters`, eight for each power of two. A program that exports them chooses its own,
//! coarser bounds: [`LatencyHistogram::at_most`] counts below any of them. Histograms of one runtime can be added up
//! (over levels) and subtracted (a snapshot from a later one).

use super::counters::Histogram;
use crate::sys::clock;
use std::{fmt, iter::Sum, ops::AddAssign, time::Duration};

/// Times from ready to running. Each is known to about 12 %; their number and their sum are exact.
///
/// ```
/// use std::time::Duration;
///
/// let runtime = urgency::Runtime::builder().workers(1).build()?;
/// for _ in 0..10 {
///     runtime.spawn(async {}).get().unwrap();
/// }
/// let latency = &runtime.stats().levels[0].latency;
/// assert_eq!(latency.len(), 10);
/// assert_eq!(latency.at_most(Duration::MAX), 10);
/// assert!(latency.sum() <= 10 * latency.quantile(1.0));
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct LatencyHistogram {
    /// By bucket; empty if nothing was added.
    counts: Vec<u64>,
    /// In ticks.
    sum: u64,
}

impl LatencyHistogram {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        LatencyHistogram {
            counts: histogram.counts().collect(),
            sum: histogram.sum(),
        }
    }

    /// How many times were recorded.
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether none was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sum of all times: what a rate of waiting is made of.
    pub fn sum(&self) -> Duration {
        clock::to_duration(self.sum)
    }

    /// The mean of all times; zero if none was recorded. It is as exact as the sum.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(1).build()?;
    /// runtime.spawn(async {}).get().unwrap();
    /// let latency = &runtime.stats().levels[0].latency;
    /// assert!(latency.mean() <= latency.max());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn mean(&self) -> Duration {
        clock::to_duration(self.sum.checked_div(self.len()).unwrap_or(0))
    }

    /// The longest time, as [`quantile(1.0)`](Self::quantile) has it: no less, and up to about 12 % more. Zero if none
    /// was recorded.
    pub fn max(&self) -> Duration {
        self.quantile(1.0)
    }

    /// The time that the share `q` (0 to 1) of the contexts did not exceed; zero if none was recorded.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(1).build()?;
    /// runtime.spawn(async {}).get().unwrap();
    /// let latency = &runtime.stats().levels[0].latency;
    /// assert_eq!(latency.len(), 1);
    /// assert!(latency.quantile(0.5) <= latency.quantile(0.99));
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn quantile(&self, q: f64) -> Duration {
        let wanted = (q.clamp(0.0, 1.0) * self.len() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let mut buckets = self.buckets();
        let reached = buckets.find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(Duration::ZERO, |(bound, _)| bound)
    }

    /// The buckets that are not empty, in the order of their bounds: the longest time of each, and how many times are
    /// in it.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let buckets = self.counts.iter().copied().enumerate();
        buckets
            .filter(|&(_, count)| count != 0)
            .map(|(index, count)| (clock::to_duration(Histogram::upper(index)), count))
    }

    /// How many times were at most `bound`, to about 12 % of it: what an alert and Prometheus' cumulative buckets ask
    /// for. Never fewer for a longer bound, and all for [`Duration::MAX`].
    pub fn at_most(&self, bound: Duration) -> u64 {
        let below = self.buckets().take_while(|&(upper, _)| upper <= bound);
        below.map(|(_, count)| count).sum()
    }

    /// The times that were recorded after `earlier`, a snapshot of the same histogram.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(1).build()?;
    /// runtime.spawn(async {}).get().unwrap();
    /// let before = runtime.stats().levels[0].latency.clone();
    /// runtime.spawn(async {}).get().unwrap();
    /// assert_eq!(runtime.stats().levels[0].latency.since(&before).len(), 1);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn since(&self, earlier: &Self) -> Self {
        let earlier_counts = earlier.counts.iter().chain(std::iter::repeat(&0));
        let counts = self.counts.iter().zip(earlier_counts);
        LatencyHistogram {
            counts: counts
                .map(|(now, then)| now.saturating_sub(*then))
                .collect(),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }
}

/// What a person reads of it: 384 buckets for each level would bury the rest of a snapshot.
impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatencyHistogram")
            .field("len", &self.len())
            .field("sum", &self.sum())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

impl AddAssign<&LatencyHistogram> for LatencyHistogram {
    fn add_assign(&mut self, other: &Self) {
        let longer = self.counts.len().max(other.counts.len());
        self.counts.resize(longer, 0);
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        self.sum += other.sum;
    }
}

impl Sum for LatencyHistogram {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(LatencyHistogram::default(), |mut sum, one| {
            sum += &one;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> LatencyHistogram {
        let histogram = Histogram::default();
        clock::calibrate();
        for &micros in times {
            histogram.record(clock::ticks(micros as f64 * 1000.0));
        }
        LatencyHistogram::of(&histogram)
    }

    #[test]
    fn buckets_count_every_time_once_below_rising_bounds() {
        let all = of(&[1, 1, 50, 1000, 1000, 1000, 70_000]);
        let buckets: Vec<_> = all.buckets().collect();
        assert_eq!(
            buckets.iter().map(|(_, count)| count).sum::<u64>(),
            all.len()
        );
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0), "{buckets:?}");
        let micros = |n| all.at_most(Duration::from_micros(n));
        assert_eq!(
            [micros(2), micros(60), micros(1200), micros(1_000_000)],
            [2, 3, 6, 7]
        );
        assert_eq!(all.at_most(Duration::ZERO), 0);
        let sum = all.sum().as_micros().abs_diff(73_052);
        assert!(
            sum < 100,
            "the sum is exact but for the clock's rounding: {:?}",
            all.sum()
        );
        let mean = all.mean().as_micros();
        assert!(mean.abs_diff(73_052 / 7) < 100 / 7, "{mean} µs");
        let max = all.max();
        let bounds = Duration::from_micros(69_999)..=Duration::from_micros(70_000 * 9 / 8);
        assert!(bounds.contains(&max), "{max:?}");
    }

    #[test]
    fn sums_and_differences_are_inverse() {
        let (before, later) = (of(&[3, 400]), of(&[9, 9, 80_000]));
        let mut both = before.clone();
        both += &later;
        assert_eq!(both.len(), 5);
        let since = both.since(&before);
        assert!(since.buckets().eq(later.buckets()));
        assert_eq!(since.sum(), later.sum());
        let none = before.since(&both);
        assert!(none.is_empty() && none.sum().is_zero());
        let empty = LatencyHistogram::default();
        assert_eq!(empty.quantile(0.5), Duration::ZERO);
        assert_eq!((empty.mean(), empty.max()), Default::default());
        let nothing_before = both.since(&empty);
        assert_eq!(nothing_before.len(), 5);
    }
}
