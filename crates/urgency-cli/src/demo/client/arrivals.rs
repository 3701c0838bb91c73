//! When requests are due: an endless, ascending sequence of times since the start.

use crate::demo::options::Arrivals;
use std::time::Duration;

/// The times of one run.
pub struct Times {
    mean_gap_s: f64,
    arrivals: Arrivals,
    random: fastrand::Rng,
    due_s: f64,
}

impl Times {
    /// `rate` requests per second; `seed` chooses among random arrivals, so that contenders get the same ones.
    pub fn new(rate: f64, arrivals: Arrivals, seed: u64) -> Self {
        Times {
            mean_gap_s: rate.recip(),
            arrivals,
            random: fastrand::Rng::with_seed(seed),
            due_s: 0.0,
        }
    }
}

impl Iterator for Times {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let gap = match self.arrivals {
            Arrivals::Uniform => 1.0,
            Arrivals::Poisson => -(1.0 - self.random.f64()).ln(),
        };
        self.due_s += gap * self.mean_gap_s;
        Some(Duration::from_secs_f64(self.due_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_arrivals_have_equal_gaps() {
        let due: Vec<_> = Times::new(4.0, Arrivals::Uniform, 1).take(3).collect();
        assert_eq!(due, [250, 500, 750].map(Duration::from_millis));
    }

    #[test]
    fn random_arrivals_have_the_rate_that_was_asked_for() {
        for seed in 0..5 {
            let minute = Duration::from_secs(60);
            let times = Times::new(500.0, Arrivals::Poisson, seed);
            let count = times.take_while(|due| *due < minute).count();
            // The standard deviation is 173.
            assert!((29_000..31_000).contains(&count), "{count}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals_and_another_one_others() {
        let first = |seed| {
            Times::new(500.0, Arrivals::Poisson, seed)
                .take(9)
                .collect::<Vec<_>>()
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
