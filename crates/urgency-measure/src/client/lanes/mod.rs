//! The client that others drive: several kinds of requests at once, in stretches of load.
//!
//! A *lane* is one kind of request with its pace and its connections. The client's process (`asking.rs`) reads lines
//! `<start> <end>` (nanoseconds of the monotonic clock) from standard input; for each it sends requests at times drawn
//! beforehand (the same for every server), waits for the replies, and prints `drained`. When its input ends it prints
//! every latency as JSON. [`Client`] (`driver.rs`) is the other side.
//!
//! Latency counts from the *intended* time. A request goes on a connection of its lane that has none under way; if
//! all have, it waits in the client, and that counts. ([`Lanes::pipeline`] changes that.) A request without a reply
//! [`GRACE`] after the stretch is logged as unanswered, with the time it has waited, and its connection is replaced.
//!
//! Beside the latency of an open lane's request stands the server's own ([`served`]): from just before the client
//! gives the request to the kernel until the kernel has the reply. The client's own lateness, on both ways, is the
//! difference.
//!
//! In the closed loop each connection of the lane always has one request under way.

mod asking;
pub mod chain;
mod driver;

pub use asking::main;
pub use driver::{Client, Done, Heard, Served};

use super::{Arrivals, Server};
use crate::events::{SERVED, UNANSWERED};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

/// How long after a stretch of load replies may come.
pub const GRACE: Duration = Duration::from_secs(3);
/// Bytes of an echo.
pub const MESSAGE: usize = 64;

/// When a lane's requests are due.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// So many per second, whatever the server does.
    Open(f64, Arrivals),
    /// The next one on a connection when the reply to the last has come.
    Closed,
}

/// One kind of request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// The series of its events.
    pub name: String,
    /// What is sent and expected.
    pub protocol: Protocol,
    /// When.
    pub pace: Pace,
    /// Connections.
    pub connections: usize,
}

impl Lane {
    /// A lane of echoes.
    pub fn of_echoes(name: &str, pace: Pace, connections: usize) -> Self {
        Lane {
            name: name.to_owned(),
            protocol: Protocol::Echo,
            pace,
            connections,
        }
    }
}

/// What is sent, and what the reply must be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Protocol {
    /// [`MESSAGE`] bytes that come back: eight have the request's number, least first, the next one its lane's.
    Echo,
    /// A key, and what the server computes of it (see [`chain`]).
    Chain,
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
    /// Requests that may be under way on one connection. If more than one, an open lane's connections have them in
    /// turn.
    pub pipeline: usize,
    /// Chooses among random arrivals.
    pub seed: u64,
    /// Whether it says four times a second how it goes.
    pub reports: bool,
}

impl Lanes {
    /// These lanes, quietly.
    pub fn new(server: SocketAddr, lanes: Vec<Lane>) -> Self {
        Lanes {
            server,
            lanes,
            pipeline: 1,
            seed: 7,
            reports: false,
        }
    }

    fn server(&self) -> Server {
        Server::Tcp(self.server.to_string())
    }
}

/// The series of a lane's requests that had no reply.
pub fn unanswered(lane: &str) -> String {
    format!("{lane}{UNANSWERED}")
}

/// The series of a lane's replies by the server's own time.
pub fn served(lane: &str) -> String {
    format!("{lane}{SERVED}")
}
