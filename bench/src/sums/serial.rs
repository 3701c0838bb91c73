//! The serial program: the same recursion.

use super::Config;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.measure(sum)
}

fn sum(numbers: &[u64], leaf: usize) -> u64 {
    if numbers.len() <= leaf {
        return numbers.iter().sum();
    }
    let (low, high) = numbers.split_at(numbers.len() / 2);
    sum(low, leaf) + sum(high, leaf)
}
