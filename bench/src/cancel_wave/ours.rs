//! Handles that are cancelled.

use super::{Config, measure, request};
use crate::engines;
use std::time::Duration;
use urgency::{JoinHandle, time::sleep};
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::ours::runtime(2);
    let sample = measure(
        config,
        |counted| runtime.spawn(request(counted, || sleep(Duration::from_millis(1)))),
        JoinHandle::abort,
        |handle| handle.get().expect("it is not cancelled"),
    );
    engines::ours::with_stats(sample, &runtime)
}
