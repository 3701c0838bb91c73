//! Two real-time tasks with deadlines (the AMCilk paper, section V-B), on 2 cores.
//!
//! The first task has a period of 10 to 600 ms, and a sixth of a core's work in it. In some phases of 1 to 10
//! iterations, drawn at random, it wants a third of its period, and half a core. The second task likes a period of 50
//! ms, has 60 ms of work in it, and tolerates a period of 125 ms: on one core it takes 60 ms, on two 30. Both fork. An
//! iteration of the first must end within the period that the task wants at that time. The second learns from the
//! policy how long its compressed period is (some 66 ms, on its one core), comes as often, and must end within it.
//!
//! - `ours` is the core policy *elastic*: the second task gives a core away at its next scheduling point. Its workers
//!   are pinned, as the paper's; `ours-free` is the same with workers that the kernel places.
//! - `ours-job-boundary` is the baseline: a core leaves a task only when the task's iteration has ended.
//!
//! The bar: no iteration of an admitted task misses its deadline.

mod ours;

use crate::jobs_flow::UNIT;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use urgency::policy::cores::Boundary;
use urgency::time::Instant;
use urgency_measure::latencies::Latencies;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// Workers.
const CORES: usize = 2;

/// The first task's periods, in milliseconds.
const PERIODS: [u64; 7] = [10, 20, 50, 100, 200, 400, 600];

/// The second task's: as it likes, and the longest.
const SECOND: Duration = Duration::from_millis(50);
const SECOND_LONGEST: Duration = Duration::from_millis(125);

/// The first task.
#[derive(Clone, Copy)]
pub struct Config {
    period: Duration,
    iterations: u32,
}

/// What became of a task's iterations.
#[derive(Default)]
pub struct Ends {
    missed: AtomicU32,
    late: std::sync::Mutex<Latencies>,
}

impl Config {
    /// In which iterations the first task wants a third of its period.
    fn bursts(self) -> Vec<bool> {
        let mut random = fastrand::Rng::with_seed(1);
        let mut all = vec![false; self.iterations as usize];
        for _ in 0..self.iterations.div_ceil(100) {
            let (from, count) = (random.usize(..all.len()), random.usize(1..=10));
            all.iter_mut()
                .skip(from)
                .take(count)
                .for_each(|it| *it = true);
        }
        all
    }
}

impl Ends {
    /// An iteration that was released then has ended now.
    pub fn ended(&self, released: Instant, deadline: Instant) {
        let (now, took) = (Instant::now(), released.elapsed());
        self.missed
            .fetch_add(u32::from(now > deadline), Ordering::Relaxed);
        let mut late = self.late.lock().expect("nothing panics under this lock");
        late.record(took);
    }

    /// The share of the iterations that missed their deadlines, and how long they took.
    pub fn sample(&self, prefix: &str) -> Sample {
        let late = self.late.lock().expect("nothing panics under this lock");
        let missed = f64::from(self.missed.load(Ordering::Relaxed));
        late.sample(prefix)
            .with(
                format!("{prefix}missed_share"),
                missed / late.asked() as f64,
            )
            .with(format!("{prefix}missed"), missed)
    }
}

/// So many units of compute ([`UNIT`]) as a tree of forks with leaves of two.
pub fn tree(units: u32) {
    match units {
        0..=2 => timing::use_processor(UNIT * units),
        _ => {
            let half = units / 2;
            urgency::join(|| tree(half), || tree(units - half));
        }
    }
}

/// How many units of compute take so long on one core.
pub fn units(time: Duration) -> u32 {
    (time.as_nanos() / UNIT.as_nanos()) as u32
}

/// One experiment for each period.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let each = |ms: u64| {
        let config = Config {
            period: Duration::from_millis(ms),
            iterations: scale.pick((4_000 / ms).max(20) as u32, 3),
        };
        Experiment::new(
            format!("jobs-elastic-{ms}"),
            format!("two real-time tasks on 2 cores, the first with a period of {ms} ms"),
        )
        .table(
            "ours-job-boundary",
            &[
                "missed_share",
                "missed",
                "p50_ns",
                "p99_ns",
                "max_ns",
                "second_missed_share",
                "second_max_ns",
            ],
        )
        .contender("ours-job-boundary", move || {
            ours::run(config, Boundary::Job, true)
        })
        .contender("ours", move || ours::run(config, Boundary::Point, true))
        .contender("ours-free", move || {
            ours::run(config, Boundary::Point, false)
        })
        .bar(Bar::at_most("ours", "missed", 0.0))
        .bar(Bar::at_most("ours", "second_missed", 0.0))
    };
    PERIODS.map(each).into()
}
