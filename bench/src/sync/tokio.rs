//! Tokio's primitives on Tokio.

use super::programs::programs;
use crate::engines;
use urgency_measure::Sample;

programs! {
    sync: tokio,
    spawn: ::tokio::spawn,
    yields: ::tokio::task::yield_now,
}

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(config.workers);
    config.measure(|| {
        let program = runtime.spawn(run_program(config));
        runtime.block_on(program).expect("no task panics")
    })
}
