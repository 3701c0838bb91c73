//! The load client: requests at their times over many connections, on plain threads around `epoll`.
//!
//! - **Open loop**: a request is due at a time that does not depend on the server. Its latency counts from the time at
//!   which it was *due*, so a server that stalls once shows in the latencies of all requests that came due meanwhile
//!   (no coordinated omission). A request without a reply counts with the time that it has waited.
//! - **Closed loop**: a reply makes the next request due.
//!
//! A client must not be starved by what it measures, so it is a process of its own or has processors of its own, in
//! the class SCHED_FIFO where that is permitted ([`crate::class`]). It runs on none of the runtimes that it measures.
//!
//! Floors: `server.rs` (where it is, one stream to it), `arrivals.rs` (when requests are due), `connection.rs` (the
//! requests of one connection), [`Thread`] (`thread.rs`: the loop over many connections). What is asked, when, and
//! what a reply means is a [`Traffic`]: memcached's protocol in `urgency-load`, echoes and pages in [`lanes`].
//! [`pacer`] is the open loop inside of the measured process, [`stamps`] what becomes of its arrivals.

mod arrivals;
mod connection;
pub mod lanes;
pub mod pacer;
mod server;
pub mod stamps;
mod thread;

pub use arrivals::{Arrivals, Due};
pub use server::{Chunk, Server, Stream};
pub use thread::Thread;

use std::time::Instant;
use std::{fmt, io};

/// When a reply came, and when its request was due and sent.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From when its latency counts.
    pub due: Instant,
    /// When it was made into bytes, just before the socket was given them.
    pub sent: Instant,
    /// When the kernel had the end of its reply: over loopback, when the server sent it. Where the kernel does not say,
    /// when the reply was read.
    pub replied: Instant,
    /// When its reply was read.
    pub now: Instant,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To this connection. If it has as many requests under way as it may, the request waits for it.
    On(usize),
    /// To a connection of this group that has none under way. If all have, the request waits for the first.
    Free(usize),
}

/// What is asked, when, and what a reply means. Each [`Thread`] has its own.
pub trait Traffic {
    /// A request.
    type Request: Copy + fmt::Debug;
    /// What ends a run.
    type Error: From<Trouble>;

    /// Whether a connection that the server closed, though not in the middle of a reply, is opened again and its
    /// requests are sent again, as by any client with a pool.
    const REOPENS: bool = false;

    /// Until when requests are due.
    fn end(&self) -> Instant;

    /// Whether there will be no further request, although the end has not come.
    fn is_done(&self) -> bool {
        false
    }

    /// Whether all has to stop now, without waiting for replies.
    fn is_stopped(&self) -> bool {
        false
    }

    /// When the next request of the open loop is due; none if there is none before the end.
    fn next_due(&self) -> Option<Instant>;

    /// Takes the request of the open loop that is due. It is `late` by now.
    fn take(&mut self, due: Instant, now: Instant) -> (Place, Self::Request);

    /// The closed loop's next request on this connection: asked once for each that may be under way, and then after
    /// each reply.
    fn next_on(&mut self, connection: usize, now: Instant) -> Option<Self::Request>;

    /// Appends the request's bytes, and may note in it what is known only now.
    fn write(&mut self, request: &mut Self::Request, to: &mut Vec<u8>);

    /// Takes the reply from the start of `bytes`: how many these were, or none if it is not whole yet.
    ///
    /// # Errors
    ///
    /// What ends the run: a reply that is none.
    fn receive(
        &mut self,
        request: &Self::Request,
        times: Times,
        bytes: &[u8],
    ) -> Result<Option<usize>, Self::Error>;

    /// A request has no reply at the end of the grace.
    fn unanswered(&mut self, request: &Self::Request, due: Instant, now: Instant);

    /// Called in each turn of the loop, some 20 times a second at the least.
    fn turn(&mut self, _now: Instant) {}
}

/// What can go wrong between a client and a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The server could not be reached.
    Connect {
        /// The server.
        server: Server,
        /// The system's reason.
        cause: io::Error,
    },
    /// The server closed a connection on which replies were awaited, or on which none should have ended.
    Closed {
        /// The server.
        server: Server,
        /// Replies that this connection had brought since it was opened.
        replies: u64,
        /// Requests whose replies are missing.
        awaited: usize,
    },
    /// A connection broke.
    Broken {
        /// The server.
        server: Server,
        /// The system's reason.
        cause: io::Error,
    },
    /// The server said something without having been asked.
    Unasked {
        /// The server.
        server: Server,
        /// What it said.
        bytes: Vec<u8>,
    },
    /// The system refused what the client needs.
    System {
        /// What it was.
        what: &'static str,
        /// The system's reason.
        cause: io::Error,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Connect { server, cause } => {
                write!(f, "the server at {server} cannot be reached: {cause}")
            }
            Trouble::Closed {
                server,
                replies,
                awaited,
            } => write!(
                f,
                "the server at {server} closed a connection after {replies} replies, with {awaited} replies missing"
            ),
            Trouble::Broken { server, cause } => {
                write!(f, "a connection to {server} broke: {cause}")
            }
            Trouble::Unasked { server, bytes } => write!(
                f,
                "the server at {server} said {:?} without having been asked",
                String::from_utf8_lossy(bytes)
            ),
            Trouble::System { what, cause } => write!(f, "{what}: {cause}"),
        }
    }
}

impl std::error::Error for Trouble {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Trouble::Connect { cause, .. }
            | Trouble::Broken { cause, .. }
            | Trouble::System { cause, .. } => Some(cause),
            Trouble::Closed { .. } | Trouble::Unasked { .. } => None,
        }
    }
}
