//! A search service: axum, a fork-join scan of 200 MB in memory for each `/search`, `/health` above it, a reindex
//! without end below, and a lock of the standard library between the two.
//!
//! The client is a process of its own: 200 `/health` and so many `/search` a second, open loop, latency from the
//! intended time. The experiments differ in the length of the reindex's leaves, and in the rate of searches.
//! `load_share` is what the searches alone need of both processors, by the processor time of one scan on one
//! thread (`scan_cpu_ns`, measured before the load): the rates are fixed, so all contenders have the same load.
//!
//! Contenders: `ours` has three levels, served strictly; `ours-shares` gives the reindex a tenth. The peers are Tokio
//! with rayon as in `engines/pair.rs`: searches are the urgent compute, the reindex is the batch work. `scan_ns` is
//! what a contender's scan takes before the load, on both processors. `tokio-bound-pools` is there because the kernel
//! often puts both threads of the search pool onto one processor: the other one runs a thread of the reindex, so it
//! is not idle, and a search is over before the kernel balances. A scan is then serial. `go` is the same
//! service in Go (`main.go`), where its toolchain is installed; no bar refers to it.

mod corpus;
mod go;
mod index;
#[cfg(feature = "ours")]
mod ours;
mod tokio_rayon;

use crate::engines::go::is_installed;
use crate::engines::pair::{ARRANGEMENTS, Arrangement, NAMES};
use corpus::Corpus;
use index::Index;
use std::net::SocketAddr;
use std::time::Duration;
use urgency_measure::client::Arrivals;
use urgency_measure::client::lanes::{Lane, Lanes, Pace, Protocol, Served};
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// Two pools, each with a thread bound to each processor.
const BOUND: &str = "tokio-bound-pools";
/// The contenders that bars compare with.
const PEERS: &[&str] = &[NAMES[0], NAMES[1], NAMES[2], BOUND];
/// Health checks per second.
const HEALTH_PER_S: f64 = 200.0;

/// One of the experiments.
#[derive(Clone, Copy)]
pub struct Config {
    scale: Scale,
    /// A leaf of the reindex, in units of 20 us.
    documents: u64,
    /// Searches per second.
    per_s: f64,
    lengths: Lengths,
}

impl Config {
    /// Documents of a leaf.
    fn leaf(&self) -> u64 {
        self.documents
    }
}

/// The load on the server at `server`.
fn lanes(config: Config, corpus: &Corpus, server: SocketAddr) -> Lanes {
    let lane = |name: &str, per_s, expects| Lane {
        name: name.to_owned(),
        protocol: Protocol::Get {
            path: format!("/{name}"),
            expects,
        },
        pace: Pace::Open(per_s, Arrivals::Poisson),
        connections: 64,
    };
    let lanes = vec![
        lane("health", HEALTH_PER_S, "ok".to_owned()),
        lane("search", config.per_s, corpus.answer()),
    ];
    Lanes::new(server, lanes)
}

/// Loads the server at `server`, which runs in this process; `start` starts the reindex.
fn measure(
    config: Config,
    corpus: &'static Corpus,
    index: &'static Index,
    server: SocketAddr,
    start: impl FnOnce(),
) -> Sample {
    let scan = corpus.scan_cpu_ns();
    let served = Served::start(&lanes(config, corpus, server), || index.written());
    start();
    loaded::measure(served, config.lengths, summarize)
        .with("scan_cpu_ns", scan)
        .with("load_share", config.per_s * scan / 2e9)
}

/// What is said about a service's events.
fn summarize(events: &Events) -> Sample {
    let lanes = ["health", "search"].map(|lane| events.sample(lane));
    let silent = |metric: &str| {
        lanes
            .iter()
            .filter_map(|lane| lane.get(metric))
            .sum::<f64>()
    };
    let silent = silent("health_unanswered") + silent("search_unanswered");
    let sample = Sample::new().with("unanswered", silent);
    lanes
        .iter()
        .fold(sample, |all, lane| all.with_all("", lane))
}

const COLUMNS: [&str; 14] = [
    "search_p99_ns",
    "search_p50_ns",
    "search_served_p99_ns",
    "health_served_p99_ns",
    "health_p50_ns",
    "health_p95_ns",
    "health_p99_ns",
    "health_p999_ns",
    "units_per_s",
    "unanswered",
    "threads_peak",
    "peak_rss_bytes",
    "load_share",
    "scan_ns",
];

/// The experiments: by leaf, and by rate.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    [
        ("service-0.1ms", 5, 8.0),
        ("service-1ms", 50, 8.0),
        ("service-10ms", 500, 8.0),
        ("service-40ms", 2000, 8.0),
        ("service-1ms-24", 50, 24.0),
        ("service-1ms-40", 50, 40.0),
        ("service-40ms-24", 2000, 24.0),
        ("service-40ms-40", 2000, 40.0),
    ]
    .into_iter()
    .map(|(name, documents, per_s)| {
        let lengths = Lengths {
            warm_up: Duration::from_millis(scale.pick(1000, 100)),
            run: Duration::from_millis(scale.pick(8000, 400)),
            alone: Duration::ZERO,
            after: Duration::from_millis(scale.pick(200, 20)),
        };
        let config = Config {
            scale,
            documents,
            per_s,
            lengths,
        };
        experiment(name, config)
    })
    .collect()
}

fn experiment(name: &str, config: Config) -> Experiment {
    let leaf = config.documents as f64 * 0.02;
    let per_s = config.per_s;
    let experiment = Experiment::new(
        name,
        format!("axum: 200 /health/s, {per_s} /search/s (a forked scan of 200 MB), a reindex with leaves of {leaf} ms, 2 workers"),
    )
    .table("tokio-two-pools", &COLUMNS);
    let experiment = ARRANGEMENTS
        .into_iter()
        .chain([(BOUND, Arrangement::BoundPools)])
        .fold(experiment, |all, (name, arrangement)| {
            all.contender(name, move || tokio_rayon::run(config, arrangement))
        });
    let experiment = match is_installed() {
        true => experiment.contender("go", move || go::run(config)),
        false => experiment,
    };
    #[cfg(feature = "ours")]
    let experiment = experiment
        .contender("ours", move || ours::run(config, false))
        .contender("ours-shares", move || ours::run(config, true));
    let at_most = |metric, times| Bar::times_at_most("ours", metric, times, PEERS);
    experiment
        .bar(at_most("health_p99_ns", 1.0))
        .bar(at_most("search_p50_ns", 1.0))
        .bar(at_most("search_p99_ns", 1.0))
        .bar(at_most("peak_rss_bytes", 1.1))
        .bar(Bar::at_most("ours", "threads_peak", 12.0))
        .bar(Bar::times_at_least(
            "ours-shares",
            "units_per_s",
            1.0,
            PEERS,
        ))
        .sliced(Slices {
            length: Duration::from_millis(200),
            count: config.scale.pick(50, 2),
            reach: Duration::from_millis(20),
            summarize,
        })
}
