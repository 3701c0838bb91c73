//! The serial program.

use super::Config;
use crate::harness::{Sample, timing::serial_fib};

/// One sample.
pub fn run(config: Config) -> Sample {
    config.measure(serial_fib)
}
