//! What the demo's processes say to each other: one JSON value per line, over the children's standard streams.
//!
//! - The server prints [`ServerSays::Ready`] when it listens. It reads [`ServerHears`] and answers each; the
//!   end of its input ends it, so no server outlives its parent.
//! - The client is one of [`urgency_measure::client::lanes`] and says what these say.
//! - A process that draws frames prints [`FramesSaid`] and ends.
//!
//! Whatever a child prints to standard error are its last words, shown if it fails.

use super::{
    contender::Contender,
    options::{Kind, ServeAt},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::SocketAddr};
use urgency_measure::Latencies;

/// The task of a server process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerSpec {
    /// What serves.
    pub contender: Contender,
    /// Workers, or computing threads.
    pub workers: usize,
    /// The level of the requests, under Urgency.
    pub level: ServeAt,
    /// What the compute will be.
    pub kind: Kind,
    /// The port on 127.0.0.1; 0 for any free one.
    pub port: u16,
}

/// Requests to a server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerHears {
    /// Begin to compute. Answered by a metering.
    Compute,
    /// How far is the compute?
    Meter,
    /// What did the runtime count?
    Account,
}

/// Answers of a server process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ServerSays {
    /// It listens here.
    Ready(SocketAddr),
    /// The state of the compute at a moment.
    Metered(Metering),
    /// What the runtime counted since it was started.
    Account(Account),
}

/// The state of the compute at a moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Metering {
    /// Units computed since the start.
    pub units: u64,
    /// Nanoseconds since the start of the process.
    pub at_ns: u64,
}

/// Counts by name; empty for what counts nothing.
pub type Account = BTreeMap<String, u64>;

/// The task of a process that draws frames.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FramesSpec {
    /// What draws.
    pub contender: Contender,
    /// Workers, or threads of each pool.
    pub workers: usize,
    /// Milliseconds that are not recorded.
    pub warm_up_ms: u64,
    /// Milliseconds that are.
    pub run_ms: u64,
}

/// What a process that drew frames says at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FramesSaid {
    /// Frames that were due.
    pub due: u64,
    /// Frames that were drawn before the next one was due.
    pub on_time: u64,
    /// All frames that were drawn.
    pub frames: Latencies,
    /// All buffers of audio.
    pub audio: Latencies,
    /// Grains of decoding.
    pub grains: u64,
    /// The time they took, in nanoseconds.
    pub ns: u64,
}

impl FramesSaid {
    /// Frames that were late, skipped, or never drawn.
    pub fn missed(&self) -> u64 {
        self.due - self.on_time.min(self.due)
    }
}
