//! Unbalanced tree search, the benchmark's standard tree T1: geometric with a fixed shape, root seed 19,
//! expected branching 4 down to depth 10: 4,130,071 nodes, 3,305,118 of them leaves. A node is a SHA-1 state;
//! the number of children is drawn from it, and child i's state is the hash of the parent's state and i. So
//! nobody can know how large a subtree is without walking it.
//!
//! The children of a node are forked by halving, each child a fork of its own.

mod chili;
pub mod forks;
pub mod serial;
mod tree;

use crate::engines::{self, by_workers, fork_join_contenders};
pub use tree::Node;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// The tree and the number of workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Depth from which nodes have no children (T1: 10).
    pub depth: u32,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `count`, which counts the nodes below and including the one given.
    pub fn measure(&self, mut count: impl FnMut(Node) -> u64) -> Sample {
        let nodes = match self.depth {
            10 => 4_130_071,
            // Only the standard tree has a published size; the smoke test's is what the serial program counts.
            _ => serial::count(Node::root(self.depth)),
        };
        timing::repeat(1, &nodes, || count(Node::root(self.depth)))
    }
}

/// One experiment per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    by_workers(scale, experiment)
}

fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        depth: scale.pick(10, 5),
        workers,
    };
    let experiment = Experiment::new(
        format!("uts-{workers}"),
        format!("unbalanced tree search, tree T1, a job per node, {workers} worker(s)"),
    )
    .table("rayon", &["time_ns", "cpu_ns", "peak_rss_bytes"]);
    fork_join_contenders!(experiment, config)
}
