//! The demo's scenario: interactive requests beside endless compute on the same two processors.
//!
//! A client in a process of its own sends 500 requests a second over 8 connections, open loop (a Poisson
//! process), and measures from the intended time of each. The server echoes them, at the higher level where
//! there are levels. Meanwhile two processors' worth of compute never ends:
//!
//! - *mixed*: fork-join compute, without end: a tree of 256 leaves, each a fib(16) that forks at every call.
//!   Where fork-join is not to be had (`tokio-tasks`: four tasks that compute 0.1 ms and yield,
//!   `tokio-blocking`: two closures in `spawn_blocking`, `threads`: two plain threads) it is the serial fib.
//! - *mixed-loops*: sequential loops, one per processor, that never check in. (Tokio alone as tasks is left
//!   out: such tasks would take all its workers for ever, and no request would be answered.)
//!
//! `tokio-rayon` is the usual pair, and `tokio-rayon-nice` the same with the pool's threads at niceness 19,
//! which takes no privilege.
//!
//! `compute_share` is the rate of computing under load over the rate alone (before and after, in the same process).

mod compute;
#[cfg(feature = "ours")]
pub mod ours;
mod threads;
mod tokio_alone;
pub mod tokio_rayon;

use crate::client::{Load, Pace};
use crate::harness::{Bar, Experiment, Sample, Scale, machine};
pub use compute::{LEAF, METER, TREE_DEPTH, endless_loop, serial_leaf};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The load and its duration.
#[derive(Clone, Copy)]
pub struct Config {
    /// Requests per second.
    pub per_s: f64,
    /// Milliseconds of load that are recorded.
    pub run_ms: u64,
    /// How long to compute alone, half of it before the load and half after.
    pub alone: Duration,
}

/// What runs beside the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compute {
    /// Endless fork-join computations, or the runtime's usual form.
    Forks,
    /// Endless sequential loops, one per processor.
    Loops,
}

impl Config {
    /// Starts the compute, measures its rate under load, and alone before and after.
    pub fn measure(&self, server: SocketAddr, start: Option<impl FnOnce()>) -> Sample {
        let Some(start) = start else {
            return self.load(server).run().with_all("", &memory());
        };
        start();
        std::thread::sleep(self.alone / 5);
        let before = rate_of(|| std::thread::sleep(self.alone / 2)).1;
        let (sample, loaded) = rate_of(|| self.load(server).run());
        let after = rate_of(|| std::thread::sleep(self.alone / 2)).1;
        let alone = before.midpoint(after);
        assert!(alone > 0.0, "the compute did not run alone");
        sample
            .with_all("", &memory())
            .with("compute_share", loaded / alone)
            .with("alone_per_s", alone)
    }

    fn load(&self, server: SocketAddr) -> Load {
        Load {
            server,
            connections: 8,
            pace: Pace::Open(self.per_s),
            warm_up_ms: self.run_ms / 8,
            run_ms: self.run_ms,
        }
    }
}

fn memory() -> Sample {
    Sample::new()
        .with("threads", machine::threads())
        .with("peak_rss_bytes", machine::peak_rss())
}

/// Units of compute per second while `wait` lasts.
fn rate_of<R>(wait: impl FnOnce() -> R) -> (R, f64) {
    let (start, units) = (Instant::now(), METER.units());
    let result = wait();
    let units = METER.units() - units;
    (result, units as f64 / start.elapsed().as_secs_f64())
}

const COLUMNS: [&str; 7] = [
    "p99_ns",
    "p50_ns",
    "p95_ns",
    "p999_ns",
    "compute_share",
    "unanswered",
    "client_real_time",
];

/// Beside fork-join compute and beside sequential loops.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        per_s: 500.0,
        run_ms: scale.pick(4000, 200),
        alone: Duration::from_millis(scale.pick(1500, 100)),
    };
    let peers = &[
        "tokio-rayon",
        "tokio-rayon-nice",
        "tokio-tasks",
        "tokio-blocking",
        "threads",
    ];
    let forks = Experiment::new(
        "mixed",
        "interactive requests, 500/s open loop, beside endless fork-join compute, 2 workers",
    )
    .table("ours-idle", &COLUMNS)
    .contender("tokio-idle", move || tokio_alone::idle(config))
    .contender("tokio-rayon", move || {
        tokio_rayon::run(config, Compute::Forks)
    })
    .contender("tokio-rayon-nice", move || {
        tokio_rayon::nice(config, Compute::Forks)
    })
    .contender("tokio-tasks", move || tokio_alone::tasks(config))
    .contender("tokio-blocking", move || tokio_alone::blocking(config))
    .contender("threads", move || threads::run(config))
    .bar(Bar::times_at_most("ours", "p50_ns", 1.5, &["ours-idle"]))
    .bar(Bar::times_at_most("ours", "p99_ns", 3.0, &["ours-idle"]))
    .bar(Bar::times_at_most("ours", "p99_ns", 1.0 / 3.0, peers))
    .bar(Bar::at_least("ours", "compute_share", 0.95));
    let peers = &[
        "tokio-rayon",
        "tokio-rayon-nice",
        "tokio-blocking",
        "threads",
    ];
    let loops = Experiment::new(
        "mixed-loops",
        "the same beside sequential loops that never check in",
    )
    .table("ours-idle", &COLUMNS)
    .contender("tokio-rayon", move || {
        tokio_rayon::run(config, Compute::Loops)
    })
    .contender("tokio-rayon-nice", move || {
        tokio_rayon::nice(config, Compute::Loops)
    })
    .contender("tokio-blocking", move || tokio_alone::blocking(config))
    .contender("threads", move || threads::run(config))
    .bar(Bar::at_most("ours", "p50_ns", 300_000.0))
    .bar(Bar::times_at_most("ours", "p99_ns", 0.5, peers));
    #[cfg(feature = "ours")]
    let (forks, loops) = (
        forks
            .contender("ours-idle", move || ours::run(config, None))
            .contender("ours", move || ours::run(config, Some(Compute::Forks))),
        loops
            .contender("ours-idle", move || ours::run(config, None))
            .contender("ours", move || ours::run(config, Some(Compute::Loops))),
    );
    vec![forks, loops]
}
