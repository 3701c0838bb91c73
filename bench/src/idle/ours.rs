//! A runtime that has run one join and one task.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::ours::runtime(2);
    runtime.run(|| urgency::join(|| (), || ()));
    runtime
        .block_on(runtime.spawn(async {}))
        .expect("an empty task does not panic");
    engines::ours::with_stats(config.measure(), &runtime)
}
