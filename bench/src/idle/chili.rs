//! A pool that has run one join.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::chili::pool(2);
    pool.scope().join(|_| (), |_| ());
    config.measure()
}
