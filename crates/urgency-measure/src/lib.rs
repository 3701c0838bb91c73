//! # urgency-measure: how Urgency is measured
//!
//! One harness under `urgency demo`, `urgency load compare`, `urgency load cache` and `urgency-bench`, so that a number
//! means the same everywhere. It is a tool of the project: nothing of it depends on Urgency, and no runtime takes part
//! in a measurement but the measured one.
//!
//! Floors, each of which imports only from those before it:
//!
//! 1. [`machine`] (clocks, memory, limits), [`class`] (processors and scheduling classes), [`others`] (what other
//!    programs used meanwhile), [`rounds`] (the order of contenders, the median), [`table`], [`child`] (a process that
//!    talks in lines), [`arguments`] (of command lines), [`output`] (what they give).
//! 2. [`sample`] (metrics of one run), [`latencies`] (a distribution), [`events`] (latencies one by one), [`timing`]
//!    and [`frame`] (work that is compared), [`picture`] (the one drawer).
//! 3. [`gate`] and [`loaded`] (a contender under load), [`client`] (the load).
//! 4. [`slices`] (contenders that alternate within one run; what the host spoilt is left out).
//! 5. [`experiment`]: experiments with their contenders and bars as a command, `urgency-bench`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod arguments;
pub mod child;
pub mod class;
pub mod client;
pub mod events;
pub mod experiment;
pub mod frame;
pub mod gate;
pub mod latencies;
pub mod loaded;
pub mod machine;
pub mod others;
pub mod output;
pub mod picture;
pub mod rounds;
pub mod sample;
pub mod slices;
pub mod table;
pub mod timing;

pub use events::Events;
pub use experiment::{Bar, Experiment, Scale};
pub use latencies::Latencies;
pub use sample::Sample;
