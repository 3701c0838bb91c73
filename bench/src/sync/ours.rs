//! Our primitives on Urgency.

use super::programs::programs;
use crate::engines;
use urgency_measure::Sample;

programs! {
    sync: urgency,
    spawn: ::urgency::spawn,
    yields: ::urgency::yield_now,
}

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::ours::runtime(config.workers);
    let sample = config.measure(|| {
        let program = runtime.spawn(run_program(config));
        runtime.block_on(program).expect("nothing is cancelled")
    });
    engines::ours::with_stats(sample, &runtime)
}
