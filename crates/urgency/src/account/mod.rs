//! Accounting: always on, cheap, and a snapshot whenever somebody asks.

pub(crate) mod counters;
mod stats;

pub use stats::{LatencyHistogram, LevelStats, Stats, WorkerLevelStats, WorkerStats};
