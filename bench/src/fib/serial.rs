//! The serial program.

use super::Config;
use urgency_measure::{Sample, timing::serial_fib};

/// One sample.
pub fn run(config: Config) -> Sample {
    config.measure(serial_fib)
}
