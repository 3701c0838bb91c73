//! `urgency::scope` and `Scope::spawn`.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample of the children program.
pub fn children(config: Config) -> Sample {
    engines::ours::run(config.workers, || config.measure_children(fill))
}

fn fill(slots: &mut [u64]) {
    urgency::scope(|scope| {
        for (index, slot) in slots.iter_mut().enumerate() {
            scope.spawn(move || *slot = index as u64 + 1);
        }
    });
}

/// One sample of the fib program.
pub fn fib(config: Config) -> Sample {
    engines::ours::run(config.workers, || config.measure_fib(by_scope))
}

fn by_scope(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (mut a, mut b) = (0, 0);
    urgency::scope(|scope| {
        scope.spawn(|| a = by_scope(n - 1));
        b = by_scope(n - 2);
    });
    a + b
}
