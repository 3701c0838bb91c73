//! Handles that are aborted.

use super::{Config, measure, request};
use crate::engines;
use std::time::Duration;
use tokio::{task::JoinHandle, time::sleep};
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    measure(
        config,
        |counted| runtime.spawn(request(counted, || sleep(Duration::from_millis(1)))),
        JoinHandle::abort,
        |handle| runtime.block_on(handle).expect("it is not aborted"),
    )
}
