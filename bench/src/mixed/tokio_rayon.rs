//! The usual pair: Tokio serves, a rayon pool beside it computes, with the niceness of the rest or the most.

use super::{Compute, Config, LEAF, METER, TREE_DEPTH, endless_loop};
use crate::{echo, engines, fib};
use rayon::ThreadPool;
use std::hint::black_box;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config, compute: Compute) -> Sample {
    beside(config, compute, engines::rayon::pool(2))
}

/// One sample with a nice pool.
pub fn nice(config: Config, compute: Compute) -> Sample {
    beside(config, compute, engines::rayon::nice_pool(2))
}

fn beside(config: Config, compute: Compute, pool: ThreadPool) -> Sample {
    let runtime = engines::tokio::runtime(2);
    let listener = runtime.block_on(echo::tokio::listen());
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(echo::tokio::serve(listener));
    let start = || match compute {
        Compute::Forks => pool.spawn(|| endless_forks()),
        Compute::Loops => (0..2).for_each(|_| pool.spawn(endless_loop)),
    };
    let sample = config.measure(address, Some(start));
    // The pool never becomes idle; it ends with the process.
    std::mem::forget(pool);
    sample
}

/// Computes trees without end.
pub fn endless_forks() -> ! {
    loop {
        tree(TREE_DEPTH);
    }
}

fn tree(depth: u32) {
    if depth == 0 {
        assert_eq!(fib::rayon::fib(black_box(LEAF)), 987, "wrong result");
        return METER.count();
    }
    rayon::join(|| tree(depth - 1), || tree(depth - 1));
}
