//! One runtime of two workers: requests at the higher level, compute at the lower; or both at the only one.

use super::{Compute, Config, LEAF, METER, TREE_DEPTH, endless_loop};
use crate::engines::ours::{Batch, Urgent, runtime, runtime_with_levels, with_stats};
use crate::{echo, fib};
use std::hint::black_box;
use urgency::{LevelId, Runtime};
use urgency_measure::Sample;

/// One sample, with two levels.
pub fn run(config: Config, compute: Option<Compute>) -> Sample {
    measure(config, runtime_with_levels(2), Urgent, Batch, compute)
}

/// One sample, with one level.
pub fn flat(config: Config, compute: Compute) -> Sample {
    let only = LevelId::MOST_URGENT;
    measure(config, runtime(2), only, only, Some(compute))
}

fn measure(
    config: Config,
    runtime: Runtime,
    requests: impl Into<LevelId>,
    below: impl Into<LevelId>,
    compute: Option<Compute>,
) -> Sample {
    let listener = echo::ours::listen();
    let address = listener.local_addr().expect("a listener has an address");
    runtime
        .at(requests)
        .spawn(echo::ours::serve(listener))
        .detach();
    let below = runtime.at(below);
    let start = compute.map(|compute| {
        move || match compute {
            Compute::Forks => below.spawn_fn(endless_forks).detach(),
            Compute::Loops => (0..2).for_each(|_| below.spawn_fn(endless_loop).detach()),
        }
    });
    let sample = with_stats(config.measure(address, start), &runtime);
    // The compute never ends; the runtime ends with the process.
    std::mem::forget(runtime);
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
        assert_eq!(fib::ours::fib(black_box(LEAF)), 987, "wrong result");
        return METER.count();
    }
    urgency::join(|| tree(depth - 1), || tree(depth - 1));
}
