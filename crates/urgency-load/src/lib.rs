//! # urgency-load: a load generator for servers that speak memcached's protocol
//!
//! A tool for any such server, not only for Urgency's. `urgency load cache` is its command line; this library
//! is what it is made of.
//!
//! - **Open loop**: requests at a given rate, Poisson or uniform, sent whatever the server does. Latency
//!   counts from the time at which a request was *due*, so a server that stalls once shows in the latencies
//!   of all requests that came due meanwhile (no coordinated omission).
//! - **Closed loop**: as fast as the server answers.
//! - **Verified**: each value read is compared with what was written, byte by byte, and may not be older than
//!   what had been acknowledged ([`value`]).
//! - **Honest about itself**: the client says how late it came to its own requests and how busy it was ([`Health`]).
//! - **Search**: the highest rate that meets a quality of service, such as `p95<10ms` ([`search`]).
//!
//! The timing depends on no runtime: plain threads around `epoll`, in the class SCHED_FIFO where that is
//! permitted ([`class`]). That client is [`urgency_measure::client`]'s; what is asked of it is here.
//!
//! Floors: `workload`, `value`, `protocol`, `search` decide, without a socket or a clock of their
//! own; `traffic` (one thread) asks; [`Client`] runs the threads together; [`command`] is the
//! command line.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod command;
pub mod protocol;
pub mod search;
pub mod value;
pub mod workload;

mod client;
mod error;
mod judge;
mod load;
mod outcome;
mod record;
mod shared;
mod traffic;

pub use client::{Client, Progress, Timing, allow_descriptors};
pub use error::Error;
pub use load::Load;
pub use outcome::{Health, Latency, Outcome};
pub use record::{Counts, LAG, REQUEST};
pub use traffic::Pace;
pub use urgency_measure::class::{self, Waiting};
pub use urgency_measure::client::{Arrivals, Server, Trouble};
pub use workload::{Popularity, ValueSizes, Workload};
