//! `urgency::join` on a runtime of two workers.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::ours::run(2, || config.measure(engines::ours::Join))
}
