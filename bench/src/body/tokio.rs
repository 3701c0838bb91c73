//! Tokio.

use super::programs::programs;
use crate::engines;
use ::tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    runtime::Builder,
};
use urgency_measure::Sample;

programs!(tokio);

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = match config.is_current_thread {
        true => Builder::new_current_thread().enable_all().build(),
        false => Ok(engines::tokio::runtime(2)),
    };
    let runtime = runtime.expect("descriptors can be had");
    config.measure(|| runtime.block_on(body(config)))
}
