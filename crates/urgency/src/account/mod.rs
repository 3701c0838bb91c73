//! Accounting: always on and cheap. The snapshot is `runtime::Stats`.

pub(crate) mod counters;
mod latency;
pub(crate) mod overruns;

pub use latency::LatencyHistogram;
pub use overruns::Overrun;
