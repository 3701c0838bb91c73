//! A pool that has run one join.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::rayon::pool(2);
    pool.join(|| (), || ());
    config.measure()
}
