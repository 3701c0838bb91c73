//! `Scope::join_with_heartbeat_every::<1>`.

use super::Config;
use crate::engines;
use chili::Scope;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::chili::pool(config.workers);
    let mut scope = pool.scope();
    config.measure(|numbers, leaf| sum(&mut scope, numbers, leaf))
}

fn sum(scope: &mut Scope<'_>, numbers: &[u64], leaf: usize) -> u64 {
    if numbers.len() <= leaf {
        return numbers.iter().sum();
    }
    let (low, high) = numbers.split_at(numbers.len() / 2);
    let (a, b) = scope.join_with_heartbeat_every::<1, _, _, _, _>(
        |scope| sum(scope, low, leaf),
        |scope| sum(scope, high, leaf),
    );
    a + b
}
