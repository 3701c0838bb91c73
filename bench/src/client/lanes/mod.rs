//! The open loop that others drive: several kinds of requests at once, in stretches of load.
//!
//! A *lane* is one kind of request with its rate and its connections. The process reads lines `<start> <end>`
//! (nanoseconds of the monotonic clock) from standard input; for each it sends requests at times drawn beforehand
//! (Poisson, the same for every server), waits for the replies, and prints `drained`. When its input ends it prints
//! every latency as JSON.
//!
//! Latency counts from the *intended* time. A request goes on a connection of its lane that has none under way; if
//! all have, it waits in the client, and that counts. A request without a reply [`GRACE`] after the stretch is
//! logged as unanswered, with the time it has waited, and its connection is replaced.

mod connection;
mod driver;
mod pulse;

pub use driver::Client;
pub use pulse::main;

use crate::harness::events::UNANSWERED;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

/// How long after a stretch of load replies may come.
const GRACE: Duration = Duration::from_secs(3);

/// One kind of request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// The series of its events.
    pub name: String,
    /// What is sent and expected.
    pub protocol: Protocol,
    /// Requests per second.
    pub per_s: f64,
    /// Connections.
    pub connections: usize,
}

/// What is sent, and what the reply must be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Protocol {
    /// 64 bytes that come back.
    Echo,
    /// A GET over HTTP/1.1, and the body that it must bring.
    Get {
        /// The path.
        path: String,
        /// The body.
        expects: String,
    },
}

/// What a client of lanes does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lanes {
    /// The server.
    pub server: SocketAddr,
    /// The kinds of requests.
    pub lanes: Vec<Lane>,
}

/// The series of a lane's requests that had no reply.
pub fn unanswered(lane: &str) -> String {
    format!("{lane}{UNANSWERED}")
}
