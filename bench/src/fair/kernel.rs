//! The compute kernels of the paper's evaluation (Fairness in Responsive Parallelism, section 6.2.2).
//!
//! Sizes follow one rule: at full scale each kernel alone takes 1 to 2 s on one worker of the machine on
//! which Urgency is developed (the paper's take 6 to 35 s serially). UTS has no added work per node: its hash
//! is dear enough.

use super::{bfs::Bfs, sample_sort::SampleSort, strassen::Strassen};
use crate::uts::Node;
use crate::{engines, fib, uts};
use std::hint::black_box;
use urgency_measure::Scale;

/// A computation with its input.
pub trait Kernel: Send {
    /// Computes, once.
    fn run(&mut self);

    /// Panics if the result is wrong.
    fn verify(&self);
}

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Fibonacci, a fork a call.
    Fib,
    /// Unbalanced tree search.
    Uts,
    /// Strassen's matrix product.
    Matmul,
    /// Breadth-first search.
    Bfs,
    /// Sample sort.
    Sort,
}

impl Which {
    /// All of them, the compute-bound ones first.
    pub const ALL: [Which; 5] = [
        Which::Fib,
        Which::Uts,
        Which::Matmul,
        Which::Bfs,
        Which::Sort,
    ];

    /// Its name within the names of experiments.
    pub fn name(self) -> &'static str {
        match self {
            Which::Fib => "fib",
            Which::Uts => "uts",
            Which::Matmul => "matmul",
            Which::Bfs => "bfs",
            Which::Sort => "sort",
        }
    }

    /// Whether memory rather than the processor bounds its speed.
    pub fn is_memory_bound(self) -> bool {
        matches!(self, Which::Bfs | Which::Sort)
    }

    /// Its input.
    pub fn prepare(self, scale: Scale) -> Box<dyn Kernel> {
        match self {
            Which::Fib => Box::new(Fib::new(Self::fib_of(scale), fib::ours::fib)),
            Which::Uts => Box::new(Uts::new(Self::depth(scale), engines::ours::Join)),
            Which::Matmul => Box::new(Strassen::new(scale.pick(2048, 256))),
            Which::Bfs => Box::new(Bfs::new(scale.pick(1 << 23, 1 << 14))),
            Which::Sort => Box::new(SampleSort::new(scale.pick(1 << 25, 1 << 17))),
        }
    }
}

impl Which {
    /// Its input, and its program on rayon.
    ///
    /// # Panics
    ///
    /// For a kernel that is more than forks.
    pub fn prepare_on_rayon(self, scale: Scale) -> Box<dyn Kernel> {
        match self {
            Which::Fib => Box::new(Fib::new(Self::fib_of(scale), fib::rayon::fib)),
            Which::Uts => Box::new(Uts::new(Self::depth(scale), engines::rayon::Join)),
            other => panic!("{} is written for Urgency only", other.name()),
        }
    }

    fn fib_of(scale: Scale) -> u32 {
        scale.pick(41, 25)
    }

    fn depth(scale: Scale) -> u32 {
        scale.pick(11, 6)
    }
}

struct Fib {
    n: u32,
    fib: fn(u32) -> u64,
    result: u64,
}

impl Fib {
    fn new(n: u32, fib: fn(u32) -> u64) -> Self {
        Fib { n, fib, result: 0 }
    }
}

impl Kernel for Fib {
    fn run(&mut self) {
        self.result = (self.fib)(black_box(self.n));
    }

    fn verify(&self) {
        assert_eq!(self.result, fib::value(self.n), "wrong result");
    }
}

struct Uts<J> {
    depth: u32,
    nodes: u64,
    join: J,
}

impl<J: engines::Join> Uts<J> {
    fn new(depth: u32, join: J) -> Self {
        Uts {
            depth,
            nodes: 0,
            join,
        }
    }
}

impl<J: engines::Join> Kernel for Uts<J> {
    fn run(&mut self) {
        self.nodes = uts::forks::count(self.join, Node::root(self.depth));
    }

    fn verify(&self) {
        let nodes = uts::serial::count(Node::root(self.depth));
        assert_eq!(self.nodes, nodes, "wrong result");
    }
}
