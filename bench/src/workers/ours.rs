//! `urgency::join`, in a runtime of two levels.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample of forks.
pub fn fib(config: Config) -> Sample {
    let runtime = engines::ours::runtime_with_levels(config.workers);
    let sample = runtime.run(|| config.measure_fib(crate::fib::ours::fib));
    engines::ours::with_stats(sample, &runtime)
}
