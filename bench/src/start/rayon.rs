//! `rayon::join` on a pool of two.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::rayon::pool(2).install(|| config.measure(engines::rayon::Join))
}
