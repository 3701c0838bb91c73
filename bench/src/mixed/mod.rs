//! The demo's scenario: interactive requests beside endless compute on the same two processors.
//!
//! A client in a process of its own sends 500 requests a second over 32 connections, open loop (a Poisson
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
//! which takes no privilege. `ours-flat` is a runtime without levels.
//!
//! `compute_share` is the rate of computing under load over the rate without (before and after it, or after each
//! slice, in the same process).

mod compute;
#[cfg(feature = "ours")]
pub mod ours;
mod threads;
mod tokio_alone;
pub mod tokio_rayon;

pub use compute::{LEAF, METER, TREE_DEPTH, endless_loop, serial_leaf};
use std::net::SocketAddr;
use std::time::Duration;
use urgency_measure::client::Arrivals;
use urgency_measure::client::lanes::{Lane, Lanes, Pace, Served};
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// The load and its duration.
#[derive(Clone, Copy)]
pub struct Config {
    per_s: f64,
    lengths: Lengths,
}

/// What runs beside the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compute {
    /// Endless fork-join computations, or the runtime's usual form.
    Forks,
    /// Endless sequential loops, one per processor.
    Loops,
}

/// The series of the requests.
const REQUEST: &str = "request";

impl Config {
    /// Starts the compute, if there is some, and loads the server at `server`.
    pub fn measure(&self, server: SocketAddr, start: Option<impl FnOnce()>) -> Sample {
        let pace = Pace::Open(self.per_s, Arrivals::Poisson);
        let lane = Lane::of_echoes(REQUEST, pace, 32);
        let served = Served::start(&Lanes::new(server, vec![lane]), || METER.units());
        if let Some(start) = start {
            start();
        }
        loaded::measure(served, self.lengths, summarize)
    }
}

/// What is said about the requests.
fn summarize(events: &Events) -> Sample {
    events.sample_as(REQUEST, "")
}

const COLUMNS: [&str; 10] = [
    "p99_ns",
    "p50_ns",
    "served_p99_ns",
    "served_p50_ns",
    "p95_ns",
    "p999_ns",
    "compute_share",
    "unanswered",
    "threads_peak",
    "peak_rss_bytes",
];

/// Beside fork-join compute and beside sequential loops.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        per_s: 500.0,
        lengths: Lengths {
            warm_up: Duration::from_millis(scale.pick(500, 50)),
            run: Duration::from_millis(scale.pick(4000, 200)),
            alone: Duration::from_millis(scale.pick(750, 50)),
            after: Duration::ZERO,
        },
    };
    let slices = Slices {
        length: Duration::from_millis(scale.pick(200, 50)),
        count: scale.pick(25, 2),
        reach: Duration::from_millis(2),
        summarize,
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
    .bar(Bar::times_at_most("ours", "p50_ns", 1.0, peers))
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
            .contender("ours", move || ours::run(config, Some(Compute::Forks)))
            .contender("ours-flat", move || ours::flat(config, Compute::Forks)),
        loops
            .contender("ours-idle", move || ours::run(config, None))
            .contender("ours", move || ours::run(config, Some(Compute::Loops)))
            .contender("ours-flat", move || ours::flat(config, Compute::Loops)),
    );
    vec![forks.sliced(slices), loops.sliced(slices)]
}
