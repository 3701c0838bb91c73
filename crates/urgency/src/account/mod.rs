//! Accounting: always on and cheap. A program asks for a snapshot, `runtime::Stats`, whenever it wants one.

pub(crate) mod counters;
mod latency;
pub(crate) mod overruns;
pub(crate) mod shown;

pub use latency::LatencyHistogram;
pub use overruns::Overrun;
