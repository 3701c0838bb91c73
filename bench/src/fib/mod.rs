//! fib(38), one fork a call, no cut-off: what a fork costs that is not stolen. 63 million forks; nothing else takes
//! time.

mod chili;
#[cfg(feature = "ours")]
pub mod ours;
pub mod rayon;
mod serial;

use crate::engines::by_workers;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// What to compute, with how many workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// The argument of fib.
    pub n: u32,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `fib` and adds `fork_ns`, the time per fork.
    pub fn measure(&self, mut fib: impl FnMut(u32) -> u64) -> Sample {
        let sample = timing::repeat(1, &value(self.n), || fib(std::hint::black_box(self.n)));
        // fib(n) makes fib(n + 1) - 1 calls that fork.
        sample.with_each("fork_ns", value(self.n + 1) - 1)
    }
}

/// The result, in a loop.
pub fn value(n: u32) -> u64 {
    let (mut value, mut next) = (0, 1);
    for _ in 0..n {
        (value, next) = (next, value + next);
    }
    value
}

/// One experiment per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    by_workers(scale, experiment)
}

fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        n: scale.pick(38, 22),
        workers,
    };
    let experiment = Experiment::new(
        format!("fib-{workers}"),
        format!("fork cost: fib(38) without cut-off, {workers} worker(s)"),
    )
    .table("rayon", &["time_ns", "fork_ns", "cpu_ns", "peak_rss_bytes"])
    .contender("serial", move || serial::run(config))
    .contender("rayon", move || rayon::run(config))
    .contender("chili", move || chili::run(config))
    .bar(Bar::times_at_most("ours", "time_ns", 0.35, &["rayon"]))
    .bar(Bar::times_at_most("ours", "time_ns", 1.0, &["chili"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    if workers == 2 {
        return experiment.bar(Bar::times_at_most("ours", "time_ns", 1.3, &["serial"]));
    }
    experiment
}
