//! A plain thread per connection beside two that compute.

use super::{Config, endless_loop};
use crate::echo;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let start = || {
        for _ in 0..2 {
            std::thread::spawn(endless_loop);
        }
    };
    config.measure(echo::threads::serve(), Some(start))
}
