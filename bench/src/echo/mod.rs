//! TCP request and reply over loopback with 1, 64 and 1000 connections: each connection always has one
//! request of 64 bytes under way.
//!
//! The load client is a process of its own on the same two processors (see `client/`). `cpu_ns` is the
//! server's CPU time per request. The contender `threads` (a thread per connection) is for orientation; no
//! bar refers to it.

#[cfg(feature = "ours")]
pub mod ours;
pub mod threads;
pub mod tokio;

use crate::client::{Load, Pace};
use crate::harness::{Bar, Experiment, Sample, Scale, machine};
use std::net::SocketAddr;

/// How many connections, and for how long.
#[derive(Clone, Copy)]
pub struct Config {
    /// Connections.
    pub connections: usize,
    /// Milliseconds that are recorded, after half as many of warm-up.
    pub run_ms: u64,
}

impl Config {
    /// Lets a client load the server at `server`, which runs in this process.
    pub fn measure(&self, server: SocketAddr) -> Sample {
        let load = Load {
            server,
            connections: self.connections,
            pace: Pace::Closed,
            warm_up_ms: self.run_ms / 2,
            run_ms: self.run_ms,
        };
        let cpu = machine::cpu_time();
        let sample = load.run();
        let cpu = (machine::cpu_time() - cpu).as_nanos() as f64;
        let per_s = sample
            .get("requests_per_s")
            .expect("the closed loop measures throughput");
        // The server also worked during the warm-up, at the same pace.
        let requests = per_s * (self.run_ms + self.run_ms / 2) as f64 / 1000.0;
        sample
            .with("cpu_ns", cpu / requests)
            .with("peak_rss_bytes", machine::peak_rss())
    }
}

/// One experiment per number of connections.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let sizes = [1, 64, scale.pick(1000, 200)];
    let names = ["echo-1", "echo-64", "echo-1000"];
    let run_ms = scale.pick(2000, 100);
    let both = sizes.into_iter().zip(names);
    both.map(|(connections, name)| {
        experiment(
            name,
            Config {
                connections,
                run_ms,
            },
        )
    })
    .collect()
}

fn experiment(name: &str, config: Config) -> Experiment {
    let connections = config.connections;
    let experiment = Experiment::new(
        name,
        format!("TCP request and reply of 64 bytes over loopback, {connections} connection(s), 2 workers"),
    )
    .table("tokio", &["requests_per_s", "p50_ns", "p99_ns", "cpu_ns", "peak_rss_bytes", "client_real_time"])
    .contender("tokio", move || tokio::run(config))
    .contender("threads", move || threads::run(config))
    .bar(Bar::times_at_least("ours", "requests_per_s", 1.0, &["tokio"]))
    .bar(Bar::times_at_most("ours", "p99_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    experiment
}
