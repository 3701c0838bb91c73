//! A runtime that has run one task.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    runtime
        .block_on(runtime.spawn(async {}))
        .expect("an empty task does not panic");
    config.measure()
}
