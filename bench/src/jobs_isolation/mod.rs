//! A quiet job beside a neighbour that offers three times what the machine can do.
//!
//! The quiet job has 200 requests a second (a Poisson process), each with some 0.5 ms of compute in two forked halves.
//! The neighbour is a job with three endless computations for each of 2 processors. Both have the weight 1. A latency
//! counts from the intended arrival to the end of the request's code. The bar: p99 within 1.5 times of alone.
//!
//! The neighbour's computations fork pieces of 10 µs, and in `jobs-isolation-40ms` pieces of some 40 ms, which come to
//! no scheduling point.
//!
//! - `ours` is a core set under *shares* with pinned workers, `ours-alone` the same without the neighbour, and
//!   `ours-alone-share` that with the one core that is the quiet job's share beside it; `ours-free` has workers that
//!   the kernel places.
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
use urgency_measure::client::pacer::{Paced, Pacer, poisson};
use urgency_measure::client::stamps::Stamps;
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// Processors, workers, threads of a pool.
const CORES: usize = 2;

/// The neighbour's computations.
const COMPUTATIONS: usize = 3 * CORES;

/// Requests in a second.
const PER_S: f64 = 200.0;

/// The compute of half a request, some 0.25 ms.
const HALF: u32 = 25;

/// The series of the requests.
const REQUEST: &str = "request";

/// What is measured, and for how long.
#[derive(Clone, Copy)]
pub struct Load {
    lengths: Lengths,
    /// The length of the neighbour's pieces, in units of some 10 µs.
    piece: u32,
}

/// The requests, and the neighbour.
pub struct Scene {
    load: Load,
    stamps: Stamps,
    /// What the neighbour has computed, in units.
    units: AtomicU64,
    stop: AtomicBool,
}

impl Scene {
    fn new(load: Load) -> Arc<Scene> {
        Arc::new(Scene {
            load,
            stamps: Stamps::default(),
            units: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        })
    }

    /// Answers a request.
    pub fn answer(&self, request: usize, join: impl engines::Join) {
        join.join(|| timing::compute(HALF), || timing::compute(HALF));
        self.stamps.done(request);
    }

    /// One of the neighbour's computations.
    pub fn compute(&self, join: impl engines::Join) {
        while !self.stop.load(Ordering::Relaxed) {
            let piece = || {
                timing::compute(self.load.piece);
                let units = u64::from(self.load.piece);
                self.units.fetch_add(units, Ordering::Relaxed);
            };
            join.join(piece, piece);
        }
    }

    /// Paces the requests into `socket`, then ends the neighbour.
    pub fn measure(self: &Arc<Self>, socket: UnixStream) -> Sample {
        let pacer = Pacer::new(self.clone(), socket, poisson(PER_S, 1));
        let sample = loaded::measure(pacer, self.load.lengths, summarize);
        self.stop.store(true, Ordering::Relaxed);
        sample
    }
}

impl Paced for Scene {
    fn expect(&self, first: usize, due: &[u64]) {
        self.stamps.expect_all(first, due);
    }

    fn is_done(&self) -> bool {
        self.stamps.are_done()
    }

    fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    fn events(&self) -> (Events, Sample) {
        (self.stamps.events(REQUEST), Sample::new())
    }
}

/// What is said about the requests.
fn summarize(events: &Events) -> Sample {
    events.sample_as(REQUEST, "")
}

/// The experiments: by the length of the neighbour's pieces.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    vec![
        experiment("jobs-isolation", "10 us", 1, scale),
        experiment(
            "jobs-isolation-40ms",
            "40 ms",
            scale.pick(4_000, 400),
            scale,
        ),
    ]
}

fn experiment(name: &str, length: &str, piece: u32, scale: Scale) -> Experiment {
    let lengths = Lengths {
        warm_up: Duration::from_millis(scale.pick(500, 50)),
        run: Duration::from_millis(scale.pick(9_500, 150)),
        alone: Duration::ZERO,
        after: Duration::ZERO,
    };
    let load = Load { lengths, piece };
    let slices = Slices {
        length: Duration::from_millis(scale.pick(200, 100)),
        count: scale.pick(40, 2),
        reach: Duration::from_millis(5),
        summarize,
    };
    let experiment = Experiment::new(
        name,
        format!(
            "200 requests/s of some 0.5 ms with a fork, beside a neighbour that offers 300 % of 2 processors, in pieces of {length}"
        ),
    )
    .table(
        "threads-alone",
        &["p99_ns", "p50_ns", "p95_ns", "max_ns", "unanswered", "units_per_s", "threads_peak"],
    )
    .contender("threads-alone", move || threads::alone(load))
    .contender("threads", move || threads::beside(load))
    .contender("threads-nice", move || threads::beside_nice(load))
    .contender("threads-cgroup", move || threads::beside_in_groups(load))
    .bar(Bar::times_at_most("ours", "p99_ns", 1.5, &["ours-alone"]))
    .bar(Bar::times_at_most("ours", "p99_ns", 1.0, &["threads", "threads-nice"]));
    #[cfg(feature = "ours")]
    let experiment = experiment
        .contender("ours-free", move || ours::run(load, false, true, CORES))
        .contender("ours-alone", move || ours::run(load, true, false, CORES))
        .contender("ours-alone-share", move || ours::run(load, true, false, 1))
        .contender("ours", move || ours::run(load, true, true, CORES));
    experiment.sliced(slices)
}
