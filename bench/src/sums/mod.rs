//! The sum of 10^7 `u64` by divide and conquer, down to leaves of 1 element (all overhead: 10^7 forks) and of
//! 64 (a few nanoseconds of work each).

mod chili;
#[cfg(feature = "ours")]
mod ours;
mod rayon;
mod serial;

use crate::engines::WORKERS;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How much to add up, in what grain, with how many workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Elements.
    pub len: usize,
    /// Elements of a leaf, at most.
    pub leaf: usize,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `sum(numbers, leaf)`.
    pub fn measure(&self, mut sum: impl FnMut(&[u64], usize) -> u64) -> Sample {
        let numbers: Vec<u64> = (0..self.len as u64).collect();
        let expected = (self.len as u64 - 1) * self.len as u64 / 2;
        let times = if self.leaf == 1 { 5 } else { 21 };
        timing::repeat(times, &expected, || {
            sum(
                std::hint::black_box(&numbers),
                std::hint::black_box(self.leaf),
            )
        })
    }
}

/// One experiment per leaf and number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let leaves = [1, 64].into_iter();
    let all = leaves.flat_map(|leaf| WORKERS.map(|workers| (leaf, workers)));
    all.map(|(leaf, workers)| experiment(scale, leaf, workers))
        .collect()
}

fn experiment(scale: Scale, leaf: usize, workers: usize) -> Experiment {
    let config = Config {
        len: scale.pick(10_000_000, 100_000),
        leaf,
        workers,
    };
    let experiment = Experiment::new(
        format!("sum{leaf}-{workers}"),
        format!("divide-and-conquer sum of 10^7 u64, leaves of {leaf}, {workers} worker(s)"),
    )
    .table("rayon", &["time_ns", "cpu_ns", "peak_rss_bytes"])
    .contender("serial", move || serial::run(config))
    .contender("rayon", move || rayon::run(config))
    .contender("chili", move || chili::run(config))
    .bar(Bar::times_at_most("ours", "time_ns", 0.5, &["rayon"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    experiment
}
