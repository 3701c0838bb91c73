//! TCP request and reply over loopback with 1, 64 and 1000 connections: each connection always has one
//! request of 64 bytes under way.
//!
//! The load client is a process of its own on the same two processors (see `urgency_measure::client`). `cpu_ns` is the
//! server's CPU time per request under load. The contender `threads` (a thread per connection) is for orientation; no
//! bar refers to it.
//!
//! `echo-64-beside` is the same beside another process that computes. The machine has less than a processor for each
//! worker then, and the kernel may keep both workers on the client's.

#[cfg(feature = "ours")]
pub mod ours;
pub mod threads;
pub mod tokio;

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;
use urgency_measure::child::Child;
use urgency_measure::client::lanes::{Lane, Lanes, Pace, Served};
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// The series of the requests.
const REQUEST: &str = "request";

/// How many connections, and for how long.
#[derive(Clone, Copy)]
pub struct Config {
    /// Connections.
    pub connections: usize,
    /// Whether another process computes meanwhile.
    pub beside: bool,
    /// Of a whole run.
    pub lengths: Lengths,
}

impl Config {
    /// Makes room for the connections.
    fn allow_descriptors(&self) {
        let needed = self.connections as u64 + 32;
        machine::allow_descriptors(needed).expect("there are descriptors");
    }

    /// Lets a client load the server at `server`, which runs in this process.
    pub fn measure(&self, server: SocketAddr) -> Sample {
        let _other = self.beside.then(|| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]);
            Child::start("a process that computes", shell).expect("there is a shell")
        });
        let lane = Lane::of_echoes(REQUEST, Pace::Closed, self.connections);
        let served = Served::start(&Lanes::new(server, vec![lane]), || 0);
        loaded::measure(served, self.lengths, summarize)
    }
}

/// What is said about the requests of a closed loop.
pub fn summarize(events: &Events) -> Sample {
    let per_s = events.per_s(REQUEST);
    events.sample_as(REQUEST, "").with("requests_per_s", per_s)
}

/// One experiment per number of connections.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let sizes = [1, 64, scale.pick(1000, 200)];
    let names = ["echo-1", "echo-64", "echo-1000"];
    let lengths = Lengths {
        warm_up: Duration::from_millis(scale.pick(1000, 50)),
        run: Duration::from_millis(scale.pick(2000, 100)),
        alone: Duration::ZERO,
        after: Duration::ZERO,
    };
    let slices = Slices {
        length: Duration::from_millis(scale.pick(200, 50)),
        count: scale.pick(10, 2),
        reach: Duration::from_millis(2),
        summarize,
    };
    let config = |connections, beside| Config {
        connections,
        beside,
        lengths,
    };
    let both = sizes.into_iter().zip(names);
    let alone = both.map(|(size, name)| experiment(name, config(size, false)).sliced(slices));
    // In whole runs: a contender that is stopped does not stop what it runs beside.
    let beside = experiment("echo-64-beside", config(64, true));
    alone.chain([beside]).collect()
}

fn experiment(name: &str, config: Config) -> Experiment {
    let connections = config.connections;
    let beside = if config.beside {
        ", beside another process that computes"
    } else {
        ""
    };
    let experiment = Experiment::new(
        name,
        format!("TCP request and reply of 64 bytes over loopback, {connections} connection(s), 2 workers{beside}"),
    )
    .table("tokio", &["requests_per_s", "p50_ns", "p99_ns", "cpu_ns", "peak_rss_bytes", "client_real_time"])
    .contender("tokio", move || tokio::run(config))
    .contender("threads", move || threads::run(config))
    .bar(Bar::times_at_least("ours", "requests_per_s", 1.05, &["tokio"]))
    .bar(Bar::times_at_most("ours", "p99_ns", 0.9, &["tokio"]))
    .bar(Bar::times_at_most("ours", "cpu_ns", 0.95, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    experiment
}
