//! `rayon::join`.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::rayon::pool(config.workers).install(|| config.measure(fib))
}

/// Fibonacci, one fork a call; other experiments use it as a computation without end or cut-off.
pub fn fib(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}
