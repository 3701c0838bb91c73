//! `urgency::join`.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::ours::run(config.workers, || config.measure(sum))
}

fn sum(numbers: &[u64], leaf: usize) -> u64 {
    if numbers.len() <= leaf {
        return numbers.iter().sum();
    }
    let (low, high) = numbers.split_at(numbers.len() / 2);
    let (a, b) = urgency::join(|| sum(low, leaf), || sum(high, leaf));
    a + b
}
