//! `urgency::par`.

use super::{Config, Loops, uneven, work};
use crate::engines;
use urgency::par;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::ours::run(config.workers, || config.measure::<Ours>())
}

struct Ours;

impl Loops for Ours {
    fn map(len: u64) -> Vec<u64> {
        par::map(0..len, work)
    }

    fn reduce(len: u64) -> u64 {
        let sum = |sum: u64, n| sum.wrapping_add(work(n));
        par::fold(0..len, || 0, sum, u64::wrapping_add)
    }

    fn skewed(len: u64) -> u64 {
        let sum = |sum: u64, n| sum.wrapping_add(uneven(n));
        par::fold(0..len, || 0, sum, u64::wrapping_add)
    }

    fn sort(numbers: &mut [u64]) {
        par::sort(numbers);
    }
}
