//! rayon's parallel iterators.

use super::{Config, Loops, uneven, work};
use crate::engines;
use rayon::prelude::*;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::rayon::pool(config.workers).install(|| config.measure::<Rayon>())
}

struct Rayon;

impl Loops for Rayon {
    fn map(len: u64) -> Vec<u64> {
        (0..len as usize)
            .into_par_iter()
            .map(|n| work(n as u64))
            .collect()
    }

    fn reduce(len: u64) -> u64 {
        let numbers = (0..len).into_par_iter().map(work);
        numbers.reduce(|| 0, u64::wrapping_add)
    }

    fn skewed(len: u64) -> u64 {
        let numbers = (0..len).into_par_iter().map(uneven);
        numbers.reduce(|| 0, u64::wrapping_add)
    }

    fn sort(numbers: &mut [u64]) {
        numbers.par_sort();
    }
}
