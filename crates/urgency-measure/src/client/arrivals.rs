//! When requests are due in the open loop: an endless, ascending sequence of times, whatever the server does.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How the gaps between requests are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Independent of each other: exponential gaps.
    Poisson,
    /// Equal gaps.
    Uniform,
    /// So many at once, and equal gaps; the rate is the bursts'.
    #[value(skip)]
    Bursts(u32),
}

/// The due times of one thread.
#[derive(Debug)]
pub struct Due {
    arrivals: Arrivals,
    mean_gap_ns: f64,
    start: Instant,
    due_ns: f64,
    /// Due at that time, after the next one.
    more: u32,
    random: fastrand::Rng,
}

impl Due {
    /// `per_s` requests per second from `start`; the same seed gives the same times.
    pub fn new(per_s: f64, arrivals: Arrivals, start: Instant, seed: u64) -> Self {
        let mut due = Due {
            arrivals,
            mean_gap_ns: 1e9 / per_s,
            start,
            due_ns: 0.0,
            more: 0,
            random: fastrand::Rng::with_seed(seed),
        };
        match arrivals {
            Arrivals::Poisson => due.advance(),
            Arrivals::Uniform => {
                // Threads should not all send at the same moment.
                due.due_ns = due.random.f64() * due.mean_gap_ns;
                due.advance();
            }
            // The first one in the middle of a gap.
            Arrivals::Bursts(count) => {
                due.due_ns = due.mean_gap_ns / 2.0;
                due.more = count.saturating_sub(1);
            }
        }
        due
    }

    /// When the next request is due.
    pub fn next(&self) -> Instant {
        self.start + Duration::from_nanos(self.due_ns as u64)
    }

    /// The next request was taken.
    pub fn advance(&mut self) {
        if let Some(more) = self.more.checked_sub(1) {
            self.more = more;
            return;
        }
        let gap = match self.arrivals {
            Arrivals::Uniform => 1.0,
            Arrivals::Bursts(count) => {
                self.more = count.saturating_sub(1);
                1.0
            }
            Arrivals::Poisson => -(1.0 - self.random.f64()).ln(),
        };
        self.due_ns += gap * self.mean_gap_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(arrivals: Arrivals, count: usize) -> Vec<f64> {
        let start = Instant::now();
        let mut due = Due::new(1000.0, arrivals, start, 4);
        let mut last = due.next();
        let mut gap = || {
            due.advance();
            let gap = due.next() - last;
            last = due.next();
            gap.as_secs_f64() * 1000.0
        };
        (0..count).map(|_| gap()).collect()
    }

    #[test]
    fn uniform_gaps_are_equal() {
        assert!(
            gaps(Arrivals::Uniform, 1000)
                .iter()
                .all(|gap| (gap - 1.0).abs() < 1e-5)
        );
    }

    #[test]
    fn a_burst_comes_at_once_and_the_next_a_gap_later() {
        let mut gaps = gaps(Arrivals::Bursts(3), 7);
        gaps.iter_mut().for_each(|gap| *gap = gap.round());
        assert_eq!(gaps, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_the_exponential_distribution() {
        let gaps = gaps(Arrivals::Poisson, 20_000);
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let longer = gaps.iter().filter(|gap| **gap > 2.0).count() as f64 / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.04, "mean {mean}");
        // e^-2 of the gaps are longer than twice the mean.
        assert!((longer - 0.135).abs() < 0.012, "share {longer}");
    }
}
