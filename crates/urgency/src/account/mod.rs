//! Accounting: always on, cheap, and a snapshot whenever somebody asks.

pub(crate) mod counters;
pub(crate) mod overruns;
mod stats;

pub use overruns::Overrun;
pub use stats::{LatencyHistogram, LevelStats, Stats, WorkerLevelStats, WorkerStats};
