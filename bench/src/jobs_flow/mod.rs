//! Flow times of parallel jobs that arrive at random (the AMCilk paper, section V-A), on 2 cores.
//!
//! A job is a series of rounds, as in the source of the paper's generator: a fork-join tree of 31 inner nodes with a
//! unit of compute each after its children, some 10 us, and a unit of serial compute. How many rounds says the table of
//! the Bing sizes, or for "finance-like" jobs the same table with three times the base. 2,000 jobs of the source's
//! sizes would take some 200 s a sample, so a job has a fifteenth of the source's rounds: 5 to 100 with Bing's sizes,
//! 30 in the mean.
//!
//! Jobs arrive as a Poisson process at 60, 75 and 90 % of the time of 2 cores. A flow time counts from the intended
//! arrival to the end of the job's code. A unit is a time on a processor (`timing::use_processor`). So the host's
//! clock, which changes by half within minutes, does not change the load: at 90 % a hundredth of load is a tenth of the
//! mean. `used_share` is the load with what the contender itself needs for forks, jobs and threads.
//!
//! - `ours` is a core set under *shares*, `ours-drep` and the others the same under other core policies; its workers
//!   are pinned. `ours-free` is under *shares*, with workers that the kernel places.
//! - `rayon-pools` builds a pool for each job, `rayon` has one for all, and in `tokio` each fork is a task.
//! - `simulated-..` is the simulator with the same arrivals and measured costs.

#[cfg(feature = "ours")]
pub mod ours;
mod peers;
mod simulated;

use crate::engines;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;
use std::{io::Read as _, thread};
#[cfg(feature = "ours")]
use urgency_measure::Bar;
use urgency_measure::client::pacer::{ARRIVAL, Paced, Pacer, arrival, socket};
use urgency_measure::client::stamps::Stamps;
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::{Experiment, Sample, Scale, timing};
use urgency_sim::jobs::{JobCosts, JobsMachine, Round, Shape, Sizes, Workload, flow};

/// Processors, workers, threads of a pool.
const CORES: usize = 2;

/// How many jobs run at once; others wait.
const AT_ONCE: usize = 64;

/// The depth of a round's tree.
const DEPTH: u32 = 5;

/// A unit of compute, for `timing::use_processor`.
pub const UNIT: Duration = Duration::from_nanos(Round::BING.inner);

/// The compute of a round, in units.
const UNITS_OF_ROUND: u64 = 1 << DEPTH;

/// The series of the jobs.
pub const JOB: &str = "job";

/// What arrives.
#[derive(Clone, Copy)]
pub struct Config {
    sizes: Sizes,
    load: f64,
    jobs: usize,
}

/// The jobs, and what came of each.
pub struct Jobs {
    rounds: Vec<u32>,
    stamps: Stamps,
    units: AtomicU64,
}

impl Config {
    /// The simulated machine.
    fn machine() -> JobsMachine {
        JobsMachine {
            cores: CORES,
            containers: AT_ONCE,
            costs: JobCosts::MEASURED,
            ..JobsMachine::default()
        }
    }

    fn workload(self) -> Workload {
        let machine = Config::machine();
        flow(self.sizes, Shape::Rounds, self.jobs, self.load, &machine)
    }

    /// Paces the jobs; `submit` starts one.
    pub fn measure(self, submit: impl FnMut(&Arc<Jobs>, usize) + Send) -> Sample {
        let workload = self.workload();
        let rounds = |job: &urgency_sim::jobs::JobSpec| job.phases[0].rounds as u32;
        let jobs = Jobs {
            rounds: workload.jobs.iter().map(rounds).collect(),
            stamps: Stamps::default(),
            units: AtomicU64::new(0),
        };
        let due = |job: &urgency_sim::jobs::JobSpec| Duration::from_nanos(job.arrival);
        let due: Vec<_> = workload.jobs.iter().map(due).collect();
        let last = due.last().map_or(f64::NAN, |last| last.as_nanos() as f64);
        let sample = pace(Arc::new(jobs), due, submit);
        let used = sample.get("cpu_ns").unwrap_or(f64::NAN) * self.jobs as f64;
        sample.with("used_share", used / (last * CORES as f64))
    }
}

/// Lets the jobs of a program arrive at these times from the beginning; `submit` starts one. Their series is [`JOB`].
pub fn pace<P: Paced>(
    program: Arc<P>,
    due: Vec<Duration>,
    mut submit: impl FnMut(&Arc<P>, usize) + Send,
) -> Sample {
    let (submitted, mut arrived) = socket();
    let just_after = |&last: &Duration| last + Duration::from_nanos(1);
    let lengths = Lengths {
        warm_up: Duration::ZERO,
        run: due.last().map_or(Duration::ZERO, just_after),
        alone: Duration::ZERO,
        after: Duration::ZERO,
    };
    // One stretch has them all: queues take longer to build up than a slice.
    let draw = move |length| due.iter().copied().take_while(|&at| at < length).collect();
    thread::scope(|threads| {
        let theirs = program.clone();
        threads.spawn(move || {
            let mut bytes = [0; ARRIVAL];
            while arrived.read_exact(&mut bytes).is_ok() {
                submit(&theirs, arrival(bytes));
            }
        });
        loaded::measure(Pacer::new(program, submitted, draw), lengths, summarize)
    })
}

impl Paced for Jobs {
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
        let expected: u64 = self.rounds.iter().map(|&rounds| u64::from(rounds)).sum();
        let (expected, did) = (expected * UNITS_OF_ROUND, self.units());
        assert!(
            did == expected || !self.is_done(),
            "{did} of {expected} units"
        );
        (self.stamps.events(JOB), Sample::new())
    }
}

/// What is said about the jobs.
fn summarize(events: &Events) -> Sample {
    events.sample_as(JOB, "")
}

impl Jobs {
    /// A job, whose forks are `join`'s.
    pub fn run(&self, job: usize, join: impl engines::Join) {
        for _ in 0..self.rounds[job] {
            tree(join, DEPTH);
            timing::use_processor(UNIT);
        }
        self.ended(job);
    }

    /// All rounds of the job are done.
    pub fn ended(&self, job: usize) {
        let units = u64::from(self.rounds[job]) * UNITS_OF_ROUND;
        self.units.fetch_add(units, Ordering::Relaxed);
        self.stamps.done(job);
    }

    /// How many rounds the job has.
    pub fn rounds(&self, job: usize) -> u32 {
        self.rounds[job]
    }
}

/// A round's tree: a unit of compute in each inner node, after its children.
fn tree(join: impl engines::Join, depth: u32) {
    if depth > 0 {
        join.join(|| tree(join, depth - 1), || tree(join, depth - 1));
        timing::use_processor(UNIT);
    }
}

/// One experiment for each load.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    // A nominal unit of the table is 64 us of a round.
    let bing = Sizes { base: 640_000 };
    let finance = Sizes {
        base: 3 * bing.base,
    };
    let mut all = Vec::new();
    for (name, about, sizes) in [
        ("bing", "jobs of Bing's sizes", bing),
        ("finance", "\"finance-like\" jobs", finance),
    ] {
        for percent in [60, 75, 90] {
            let config = Config {
                sizes,
                load: f64::from(percent) / 100.0,
                jobs: scale.pick(2_000, 20),
            };
            all.push(experiment(
                format!("jobs-flow-{name}-{percent}"),
                format!("flow times of {about}, Poisson, at {percent} % of 2 cores"),
                config,
            ));
        }
    }
    all
}

fn experiment(name: String, about: String, config: Config) -> Experiment {
    let mut experiment = Experiment::new(name, about)
        .table(
            "rayon",
            &[
                "mean_ns",
                "p50_ns",
                "p95_ns",
                "p99_ns",
                "cpu_ns",
                "used_share",
                "peak_rss_bytes",
            ],
        )
        .contender("rayon", move || peers::shared_pool(config))
        .contender("rayon-pools", move || peers::pool_per_job(config))
        .contender("tokio", move || peers::tokio(config));
    for (name, policy) in simulated::POLICIES {
        experiment = experiment.contender(name, move || simulated::run(config, policy));
    }
    #[cfg(feature = "ours")]
    {
        let peers = &["rayon", "rayon-pools", "tokio"];
        experiment = experiment
            .contender("ours-free", move || ours::free(config))
            .bar(Bar::times_at_most("ours", "mean_ns", 1.0, peers));
        for ((name, policy), (simulated, _)) in ours::POLICIES.into_iter().zip(&simulated::POLICIES)
        {
            let simulated = std::slice::from_ref(simulated);
            experiment = experiment
                .contender(name, move || ours::run(config, policy))
                .bar(Bar::times_at_most(name, "mean_ns", 1.1, simulated))
                .bar(Bar::times_at_least(name, "mean_ns", 0.9, simulated));
        }
    }
    experiment
}
