//! `urgency::join`, on a stack of the runtime or through `Runtime::run`.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample of the loop on a worker.
pub fn inside(config: Config) -> Sample {
    engines::ours::run(2, || config.measure(engines::ours::Join, |both| both()))
}

/// One sample of the loop on a plain thread.
pub fn outside(config: Config) -> Sample {
    let runtime = engines::ours::runtime(2);
    let sample = config.measure(engines::ours::Join, |both| runtime.run(both));
    engines::ours::with_stats(sample, &runtime)
}
