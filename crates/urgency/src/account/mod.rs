//! Accounting: always on, cheap, and a snapshot whenever the program asks.

pub(crate) mod counters;
mod latency;
pub(crate) mod overruns;
mod stats;

pub use latency::LatencyHistogram;
pub use overruns::Overrun;
pub use stats::{LevelStats, Stats, WorkerLevelStats, WorkerStats};
