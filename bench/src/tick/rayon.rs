//! `rayon::join`, on the pool or through `ThreadPool::install`.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample of the loop on a worker.
pub fn inside(config: Config) -> Sample {
    engines::rayon::pool(2).install(|| config.measure(engines::rayon::Join, |both| both()))
}

/// One sample of the loop on a plain thread.
pub fn outside(config: Config) -> Sample {
    let pool = engines::rayon::pool(2);
    config.measure(engines::rayon::Join, |both| pool.install(both))
}
