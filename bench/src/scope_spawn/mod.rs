//! What a closure spawned in a scope costs.
//!
//! Two programs. *children*: 10^6 children of one scope, each of which writes one slot; memory must stay
//! bounded although the spawning closure is far ahead of the workers. *fib*: a scope and one spawn per call,
//! the shape of Cilk programs; its spawns nest deeply and are joined soon. `child_ns` is the time per spawned
//! closure; `growth_bytes` is the peak of resident memory beyond what was resident before.

#[cfg(feature = "ours")]
mod ours;
mod rayon;

use crate::engines::WORKERS;
use urgency_measure::{Bar, Experiment, Sample, Scale, machine, timing};

/// How many children, and the number of workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Children of the one scope.
    pub children: usize,
    /// The argument of fib.
    pub n: u32,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `fill`, which spawns a child per slot that writes the slot's index plus 1.
    pub fn measure_children(&self, mut fill: impl FnMut(&mut [u64])) -> Sample {
        let mut slots = vec![1; self.children];
        slots.fill(0);
        let before = machine::rss();
        let expected = (self.children as u64 + 1) * self.children as u64 / 2;
        let sample = timing::repeat(3, &expected, || {
            slots.fill(0);
            fill(&mut slots);
            slots.iter().sum()
        });
        let growth = (machine::peak_rss() - before).max(0.0);
        let sample = sample.with_each("child_ns", self.children as u64);
        sample.with("growth_bytes", growth)
    }

    /// Times `fib`, which spawns one child per call that is no leaf.
    pub fn measure_fib(&self, mut fib: impl FnMut(u32) -> u64) -> Sample {
        let (mut value, mut next) = (0, 1);
        for _ in 0..self.n {
            (value, next) = (next, value + next);
        }
        let before = machine::rss();
        let sample = timing::repeat(1, &value, || fib(std::hint::black_box(self.n)));
        let growth = (machine::peak_rss() - before).max(0.0);
        let sample = sample.with_each("child_ns", next - 1);
        sample.with("growth_bytes", growth)
    }
}

/// Both programs, per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    WORKERS
        .iter()
        .flat_map(|&workers| both(scale, workers))
        .collect()
}

fn both(scale: Scale, workers: usize) -> [Experiment; 2] {
    let config = Config {
        children: scale.pick(1_000_000, 10_000),
        n: scale.pick(32, 16),
        workers,
    };
    let columns = ["child_ns", "cpu_ns", "growth_bytes"];
    let children = Experiment::new(
        format!("scope-children-{workers}"),
        format!("10^6 children of one scope, {workers} worker(s)"),
    )
    .table("rayon", &columns)
    .contender("rayon", move || rayon::children(config))
    .bar(Bar::times_at_most("ours", "child_ns", 0.25, &["rayon"]))
    .bar(Bar::at_most("ours", "growth_bytes", 16.0 * 1024.0 * 1024.0));
    let fib = Experiment::new(
        format!("scope-fib-{workers}"),
        format!("fib(32), a scope and a spawn per call, {workers} worker(s)"),
    )
    .table("rayon", &columns)
    .contender("rayon", move || rayon::fib(config))
    .bar(Bar::times_at_most("ours", "child_ns", 0.25, &["rayon"]));
    #[cfg(feature = "ours")]
    let children = children.contender("ours", move || ours::children(config));
    #[cfg(feature = "ours")]
    let fib = fib.contender("ours", move || ours::fib(config));
    [children, fib]
}
