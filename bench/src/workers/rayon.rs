//! `rayon::join`.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn fib(config: Config) -> Sample {
    let pool = engines::rayon::pool(config.workers);
    pool.install(|| config.measure_fib(crate::fib::rayon::fib))
}
