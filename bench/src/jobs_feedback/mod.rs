//! Two jobs whose parallelism changes in opposite phases (the AMCilk paper, section V-C), on 2 cores.
//!
//! A job alternates ten times between a phase with enough forked work for all cores (200 ms of it) and a phase in which it
//! computes for 1 ms and pauses for 1.5, 60 times. In the paper the low phase is a series of small loops that keep 8 of
//! 38 cores; the least that a job can use of 2 cores without pauses is one, which is its half, so nothing would be left
//! to give away. `steps` is how often a job's number of workers rises while it is in its high phase, for each phase, and
//! `settle_ns` the median time from the beginning of a high phase until both workers serve it.
//!
//! - `ours` is the core policy *feedback*, `ours-shares` the default, `ours-static` equal halves, `ours-none` no
//!   partition.

mod ours;

use urgency::policy::cores::{Feedback, Shares, StaticEqual, Unpartitioned};
use urgency_measure::{Bar, Experiment, Scale};

/// Workers.
const CORES: usize = 2;

/// How long the phases are.
#[derive(Clone, Copy)]
pub struct Config {
    /// How often a job alternates.
    pub alternations: usize,
    /// The work of a high phase, in milliseconds of a core.
    pub high_ms: u64,
    /// How often a job computes and pauses in a low phase.
    pub pauses: usize,
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        alternations: scale.pick(10, 2),
        high_ms: scale.pick(200, 10),
        pauses: scale.pick(60, 3),
    };
    let halves = || StaticEqual::new(CORES).expect("a number above 0");
    let experiment = Experiment::new(
        "jobs-feedback",
        "two jobs with phases of high and low parallelism in turn, 2 cores",
    )
    .table(
        "ours-static",
        &[
            "time_ns",
            "steps",
            "settle_ns",
            "decisions",
            "peak_rss_bytes",
        ],
    )
    .contender("ours-static", move || ours::run(config, halves()))
    .contender("ours-none", move || ours::run(config, Unpartitioned))
    .contender("ours-shares", move || ours::run(config, Shares::default()))
    .contender("ours", move || ours::run(config, Feedback::default()))
    .bar(Bar::times_at_most("ours", "time_ns", 0.8, &["ours-static"]))
    .bar(Bar::times_at_most(
        "ours-shares",
        "time_ns",
        0.8,
        &["ours-static"],
    ));
    vec![experiment]
}
