//! Requests that compute, above batch work without end: the scenes that decide which runtime to choose.
//!
//! A *scene* is data ([`SCENES`]): lanes of requests, most urgent first, each with a rate and an amount of work; batch
//! work below all of them; a number of workers; whether batch and requests share a lock; a limit of processor time.
//! The client is a process of its own (open loop, latency from the intended time). A request says its lane and its
//! number, and the number says how much it computes: 50 us or less is one leaf, more is forked into leaves of 50 us.
//! Sizes are log-uniform. The batch is a tree of leaves of 1 ms, without end.
//!
//! - *compute-30*, *-60*, *-80*: requests of 0.2 to 20 ms, so many per cent of two processors.
//! - *compute-60-x2*, *-x4*: the same with two and four times as many workers as processors, in each pool.
//! - *levels-3*: echoes above requests of 0.2 to 1 ms above requests of 10 to 40 ms above the batch.
//! - *lock-60*: each request, and each leaf of the batch after its work, needs one lock: for 20 and for 200 us.
//! - *burst*: 1,000 requests of 50 us at once, each on its own connection, five times a second; echoes above.
//! - *quota-30*: compute-30 under `cpu.max` of 1.5 processors. Batch work of two threads uses that up, and then the
//!   kernel stops all threads until the period of 100 ms ends. So there are contenders with less of it as well. Where
//!   no cgroup is permitted there is no such scene.
//!
//! Contenders: `ours`, one runtime with a level for each lane and one for the batch. `tokio-pools`: Tokio, and a rayon
//! pool for each of these levels that computes, the niceness from 0 for the most urgent to 19 for the batch.
//! `tokio-blocking`: a request is computed serially in `spawn_blocking`, the batch in the pool with niceness 19. `go`:
//! a goroutine for each connection and fork; it has no levels.
//!
//! `units_per_s` is all that is computed, for requests and for the batch: requests are the same for all, so more is
//! more of the batch. (The batch alone would flatter a contender that answers late: a slice lasts until all is
//! answered.) `waste_share` is processor time that no unit of work explains: scheduling, sockets, spinning, and
//! whatever makes a unit slower than it was alone.

mod go;
#[cfg(feature = "ours")]
mod ours;
mod quota;
mod tokio_rayon;
mod work;

use crate::engines::go::is_installed;
use quota::Quota;
use std::net::SocketAddr;
use std::time::Duration;
use urgency_measure::client::Arrivals;
use urgency_measure::client::lanes::{Lane, Lanes, MESSAGE, Pace, Served};
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale, frame, machine};

/// One of the scenes.
#[derive(Clone, Copy)]
pub struct Scene {
    name: &'static str,
    about: &'static str,
    /// Kinds of requests, most urgent first.
    lanes: &'static [Kind],
    /// Workers of the runtime, of Tokio and of each pool.
    workers: usize,
    /// Whether requests and batch take the lock.
    locks: bool,
    /// Processors' time that there is.
    quota: Option<f64>,
    lengths: Lengths,
    columns: &'static [&'static str],
}

/// A kind of requests.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    pace: Pace,
    connections: usize,
    /// Microseconds of work, at least and at most.
    work: (f64, f64),
    p99: &'static str,
}

/// Workers of a scene that says nothing else: one for each processor.
const WORKERS: usize = 2;

/// Requests of 0.2 to 20 ms that need this share of two processors. Their mean is 19.8 ms / ln 100.
const fn compute(load: f64) -> Kind {
    Kind {
        name: "request",
        pace: Pace::Open(load * 2e6 / 4299.5, Arrivals::Poisson),
        connections: 64,
        work: (200.0, 20_000.0),
        p99: "request_p99_ns",
    }
}

const ECHO: Kind = Kind {
    name: "echo",
    pace: Pace::Open(500.0, Arrivals::Poisson),
    connections: 32,
    work: (0.0, 0.0),
    p99: "echo_p99_ns",
};

const PLAIN: Scene = Scene {
    name: "",
    about: "",
    lanes: &[],
    workers: WORKERS,
    locks: false,
    quota: None,
    lengths: Lengths {
        warm_up: Duration::ZERO,
        run: Duration::ZERO,
        alone: Duration::ZERO,
        after: Duration::ZERO,
    },
    columns: &[
        "request_p99_ns",
        "request_p50_ns",
        "request_p95_ns",
        "request_p999_ns",
        "units_per_s",
        "waste_share",
        "unanswered",
        "threads_peak",
    ],
};

const SCENES: [Scene; 9] = [
    Scene {
        name: "compute-30",
        about: "requests that fork 0.2 to 20 ms each, 30 % load",
        lanes: &[compute(0.3)],
        ..PLAIN
    },
    Scene {
        name: "compute-60",
        about: "requests that fork 0.2 to 20 ms each, 60 % load",
        lanes: &[compute(0.6)],
        ..PLAIN
    },
    Scene {
        name: "compute-80",
        about: "requests that fork 0.2 to 20 ms each, 80 % load",
        lanes: &[compute(0.8)],
        ..PLAIN
    },
    Scene {
        name: "compute-60-x2",
        about: "compute-60 with two workers for each processor",
        lanes: &[compute(0.6)],
        workers: 2 * WORKERS,
        ..PLAIN
    },
    Scene {
        name: "compute-60-x4",
        about: "compute-60 with four workers for each processor",
        lanes: &[compute(0.6)],
        workers: 4 * WORKERS,
        ..PLAIN
    },
    Scene {
        name: "levels-3",
        about: "500 echoes/s above 300 requests/s of 0.2 to 1 ms above 40/s of 10 to 40 ms",
        lanes: &[
            ECHO,
            Kind {
                name: "short",
                pace: Pace::Open(300.0, Arrivals::Poisson),
                connections: 64,
                work: (200.0, 1000.0),
                p99: "short_p99_ns",
            },
            Kind {
                name: "long",
                pace: Pace::Open(40.0, Arrivals::Poisson),
                connections: 64,
                work: (10_000.0, 40_000.0),
                p99: "long_p99_ns",
            },
        ],
        columns: &[
            "short_p99_ns",
            "short_p50_ns",
            "short_p95_ns",
            "echo_p50_ns",
            "echo_p99_ns",
            "long_p50_ns",
            "long_p99_ns",
            "units_per_s",
            "waste_share",
            "unanswered",
            "threads_peak",
        ],
        ..PLAIN
    },
    Scene {
        name: "lock-60",
        about: "requests that fork 0.2 to 20 ms each under 60 % load, and a lock that the batch takes as well",
        lanes: &[compute(0.6)],
        locks: true,
        ..PLAIN
    },
    Scene {
        name: "burst",
        about: "1000 requests of 50 us at once, five times a second, below 500 echoes/s",
        lanes: &[
            ECHO,
            Kind {
                name: "burst",
                pace: Pace::Open(5.0, Arrivals::Bursts(1000)),
                connections: 1000,
                work: (50.0, 50.0),
                p99: "burst_p99_ns",
            },
        ],
        columns: &[
            "burst_p99_ns",
            "burst_p50_ns",
            "burst_p95_ns",
            "echo_p50_ns",
            "echo_p95_ns",
            "echo_p99_ns",
            "echo_p999_ns",
            "units_per_s",
            "waste_share",
            "unanswered",
            "threads_peak",
        ],
        ..PLAIN
    },
    Scene {
        name: "quota-30",
        about: "compute-30 with 1.5 processors' time in each 100 ms",
        lanes: &[compute(0.3)],
        quota: Some(1.5),
        ..PLAIN
    },
];

impl Scene {
    /// The request that a client wrote: its lane, and units of its work.
    fn request(&self, message: &[u8; MESSAGE]) -> (usize, u64) {
        let (number, rest) = message.split_first_chunk().expect("it is longer");
        let lane = usize::from(rest[0]);
        let units = work::amount(u64::from_le_bytes(*number), self.lanes[lane].work);
        (lane, units)
    }

    /// Loads the server at `server`, which runs in this process; `start` starts the batch.
    fn measure(&self, server: SocketAddr, start: impl FnOnce()) -> Sample {
        let unit = frame::unit_ns();
        let served = self.load(server, work::units);
        // The client is outside of it.
        let _quota = self.quota.map(Quota::enter);
        let (units, cpu) = (work::units(), machine::cpu_time());
        start();
        let sample = loaded::measure(served, self.lengths, summarize);
        let explained = (work::units() - units) as f64 * unit;
        let used = (machine::cpu_time() - cpu).as_nanos() as f64;
        sample
            .with("waste_share", 1.0 - explained / used)
            .with("unit_ns", unit)
    }

    /// Starts the client of the server at `server`.
    fn load<U: Fn() -> u64>(&self, server: SocketAddr, units: U) -> Served<U> {
        let connections: usize = self.lanes.iter().map(|kind| kind.connections).sum();
        // Both ends of each connection, and what else there is.
        machine::allow_descriptors(connections as u64 + 64).expect("there are descriptors");
        let lane = |kind: &Kind| Lane::of_echoes(kind.name, kind.pace, kind.connections);
        let lanes = self.lanes.iter().map(lane).collect();
        Served::start(&Lanes::new(server, lanes), units)
    }
}

/// What is said about a scene's events: each lane by its name.
fn summarize(events: &Events) -> Sample {
    let mut silent = 0.0;
    let sample = events.kinds().fold(Sample::new(), |all, lane| {
        let said = events.sample(lane);
        silent += said.get(&format!("{lane}_unanswered")).unwrap_or(0.0);
        all.with_all("", &said)
    });
    sample.with("unanswered", silent)
}

/// The contenders that bars compare with.
const PEERS: &[&str] = &["tokio-pools", "tokio-blocking"];
/// The same where there is a limit of processor time.
const PEERS_OF_LIMITED: &[&str] = &["tokio-pools", "tokio-pools-1", "tokio-blocking"];

/// The experiments.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let lengths = Lengths {
        warm_up: Duration::from_millis(scale.pick(500, 50)),
        run: Duration::from_millis(scale.pick(8000, 200)),
        alone: Duration::ZERO,
        after: Duration::ZERO,
    };
    let slices = Slices {
        length: Duration::from_millis(scale.pick(400, 200)),
        count: scale.pick(20, 2),
        reach: Duration::from_millis(20),
        summarize,
    };
    SCENES
        .into_iter()
        .filter(|scene| scene.quota.is_none() || quota::is_permitted())
        .map(|scene| experiment(Scene { lengths, ..scene }).sliced(slices))
        .collect()
}

fn experiment(scene: Scene) -> Experiment {
    let about = format!(
        "{}; batch work below, {} workers",
        scene.about, scene.workers
    );
    let mut experiment = Experiment::new(scene.name, about)
        .table("tokio-pools", scene.columns)
        .contender("tokio-pools", move || {
            tokio_rayon::pools(scene, scene.workers)
        })
        .contender("tokio-blocking", move || tokio_rayon::blocking(scene));
    if is_installed() && scene.quota.is_none() {
        experiment = experiment.contender("go", move || go::run(scene));
    }
    let peers = match scene.quota {
        None => PEERS,
        Some(_) => {
            experiment =
                experiment.contender("tokio-pools-1", move || tokio_rayon::pools(scene, 1));
            PEERS_OF_LIMITED
        }
    };
    #[cfg(feature = "ours")]
    {
        experiment = experiment.contender("ours", move || ours::run(scene, scene.workers));
        if scene.quota.is_some() {
            experiment = experiment.contender("ours-1", move || ours::run(scene, 1));
        }
    }
    let tails = scene.lanes.iter();
    tails
        .map(|kind| Bar::times_at_most("ours", kind.p99, 0.5, peers))
        .fold(experiment, Experiment::bar)
        .bar(Bar::times_at_least("ours", "units_per_s", 1.0, peers))
}
