//! Urgency.

use super::programs::programs;
use crate::engines;
use urgency::runtime::Builder;
use urgency_measure::Sample;

programs!(urgency);

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = match config.is_current_thread {
        true => Builder::new_current_thread().build(),
        false => Ok(engines::ours::runtime(2)),
    };
    let runtime = runtime.expect("threads can be started");
    let sample = config.measure(|| runtime.block_on(body(config)));
    engines::ours::with_stats(sample, &runtime)
}
