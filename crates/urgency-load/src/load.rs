//! A load: what is asked, of which server, over how many connections.

use crate::class::{Class, Cpus, Waiting};
use crate::protocol::Protocol;
use crate::{Error, Popularity, Server, Workload};
use serde::Serialize;

/// Everything about a load but its pace and its length.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// The server.
    pub server: Server,
    /// Connections, 1 to 10000.
    pub connections: usize,
    /// Threads of the client, 1 to 64; connections are shared among them.
    pub threads: usize,
    /// Requests under way on one connection at most, 1 to 10000.
    pub pipeline: usize,
    /// The commands that are sent.
    pub protocol: Protocol,
    /// What is asked.
    pub workload: Workload,
    /// The processors of the client's threads; none means wherever the client may run.
    pub cpus: Option<Cpus>,
    /// The scheduling class to ask for.
    pub class: Class,
    /// What the client's threads do while there is nothing to do.
    pub waiting: Waiting,
}

impl Load {
    /// 50 connections, one thread, 16 requests under way on each at most, 90 % gets, 100000 keys of 32 bytes
    /// with popularity zipf:0.99, values of 100 bytes, all of them verified.
    pub fn new(server: Server) -> Self {
        Load {
            server,
            connections: 50,
            threads: 1,
            pipeline: 16,
            protocol: Protocol::Text,
            workload: Workload {
                keys: 100_000,
                key_size: 32,
                popularity: Popularity::Zipf(0.99),
                gets: 0.9,
                values: "100".parse().expect("100 is a size"),
                verify: true,
                seed: 1,
            },
            cpus: None,
            class: Class::RealTime,
            waiting: Waiting::Sleep,
        }
    }

    /// Refuses what is not possible.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] with the option, its value and what is allowed.
    pub fn check(&self) -> Result<(), Error> {
        if !(1..=10_000).contains(&self.connections) {
            let allowed = "1 to 10000 connections";
            return Err(Error::option("--connections", self.connections, allowed));
        }
        if !(1..=64).contains(&self.threads) || self.threads > self.connections {
            let allowed = "1 to 64 threads, and not more than --connections";
            return Err(Error::option("--threads", self.threads, allowed));
        }
        if !(1..=10_000).contains(&self.pipeline) {
            let allowed = "1 to 10000 requests";
            return Err(Error::option("--pipeline", self.pipeline, allowed));
        }
        self.workload.check()
    }
}
