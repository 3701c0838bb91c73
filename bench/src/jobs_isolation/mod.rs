//! A quiet job beside a neighbour that offers three times what the machine can do.
//!
//! The quiet job has 200 requests a second (a Poisson process), each with some 0.5 ms of compute in two forked halves.
//! The neighbour is a job with three endless computations for each of 2 processors. Both have the weight 1. A latency
//! counts from the intended arrival to the end of the request's code. The bar: p99 within 1.5 times of alone.
//!
//! - `ours` is a core set under *shares* with pinned workers, `ours-alone` the same without the neighbour; `ours-free` has
//!   workers that the kernel places.
//! - `threads`: requests in a rayon pool of 2 threads, and 6 plain threads that compute; `threads-nice` with these 6
//!   at niceness 19; `threads-cgroup` with the two in groups of equal weight, where the machine permits it
//!   (`cgroup_allowed` is 1).

mod groups;
#[cfg(feature = "ours")]
mod ours;
mod threads;

use crate::engines;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use urgency_measure::client::pacer::{Schedule, Stamps};
use urgency_measure::{Bar, Experiment, Sample, Scale, machine, timing};

/// Processors, workers, threads of a pool.
const CORES: usize = 2;

/// The neighbour's computations.
const COMPUTATIONS: usize = 3 * CORES;

/// Requests in a second.
const PER_S: f64 = 200.0;

/// The compute of half a request, some 0.25 ms.
const HALF: u32 = 25;

/// How many requests there are.
#[derive(Clone, Copy)]
pub struct Config {
    requests: usize,
    warm_up: Duration,
}

/// The requests, and the neighbour.
pub struct Scene {
    schedule: Schedule,
    stamps: Stamps,
    /// What the neighbour has computed, in units.
    units: AtomicU64,
    stop: AtomicBool,
}

impl Scene {
    fn new(config: Config) -> Arc<Scene> {
        let mut random = fastrand::Rng::with_seed(1);
        let mut time = Duration::ZERO;
        let due = (0..config.requests).map(|_| {
            time += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / PER_S);
            time
        });
        let schedule = Schedule::new(due.collect(), config.warm_up);
        Arc::new(Scene {
            stamps: schedule.stamps(),
            schedule,
            units: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        })
    }

    /// Answers a request.
    pub fn answer(&self, request: usize, join: &impl engines::Join) {
        join.join(|| timing::compute(HALF), || timing::compute(HALF));
        self.stamps.done(&self.schedule, request);
    }

    /// One of the neighbour's computations.
    pub fn compute(&self, join: &impl engines::Join) {
        while !self.stop.load(Ordering::Relaxed) {
            join.join(|| timing::compute(1), || timing::compute(1));
            self.units.fetch_add(2, Ordering::Relaxed);
        }
    }

    /// Paces the requests into `socket`, then ends the neighbour.
    pub fn measure(&self, socket: UnixStream) -> Sample {
        let paced = self.schedule.pace(&self.units, socket);
        let latencies = self.schedule.sample(&self.stamps, "", |_| true);
        self.stop.store(true, Ordering::Relaxed);
        paced
            .with_all("", &latencies)
            .with("threads", machine::threads())
            .with("peak_rss_bytes", machine::peak_rss())
    }
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        requests: scale.pick(2_000, 40),
        warm_up: Duration::from_millis(scale.pick(500, 50)),
    };
    let experiment = Experiment::new(
        "jobs-isolation",
        "200 requests/s of some 0.5 ms with a fork, beside a neighbour that offers 300 % of 2 processors",
    )
    .table(
        "threads-alone",
        &["p99_ns", "p50_ns", "p95_ns", "max_ns", "unanswered", "batch_per_s", "threads"],
    )
    .contender("threads-alone", move || threads::alone(config))
    .contender("threads", move || threads::beside(config))
    .contender("threads-nice", move || threads::beside_nice(config))
    .contender("threads-cgroup", move || threads::beside_in_groups(config))
    .bar(Bar::times_at_most("ours", "p99_ns", 1.5, &["ours-alone"]))
    .bar(Bar::times_at_most("ours", "p99_ns", 1.0, &["threads", "threads-nice"]));
    #[cfg(feature = "ours")]
    let experiment = experiment
        .contender("ours-free", move || ours::run(config, false, true))
        .contender("ours-alone", move || ours::run(config, true, false))
        .contender("ours", move || ours::run(config, true, true));
    vec![experiment]
}
