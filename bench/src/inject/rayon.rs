//! `ThreadPool::spawn` from outside; rayon has no levels.

use super::Config;
use crate::engines;
use crate::fib::rayon::fib;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::rayon::pool(2);
    config.measure(|n| pool.install(|| fib(n)), |job| pool.spawn(job))
}
