//! One runtime of two workers: requests at the higher level, compute at the lower.

use super::{Compute, Config, LEAF, METER, TREE_DEPTH, endless_loop};
use crate::engines::ours::{Batch, Urgent, runtime_with_levels, with_stats};
use crate::{echo, fib};
use std::hint::black_box;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config, compute: Option<Compute>) -> Sample {
    let runtime = runtime_with_levels(2);
    let listener = echo::ours::listen();
    let address = listener.local_addr().expect("a listener has an address");
    runtime
        .at(Urgent)
        .spawn(echo::ours::serve(listener))
        .detach();
    let spawner = &runtime;
    let start = compute.map(|compute| {
        move || match compute {
            Compute::Forks => spawner.at(Batch).spawn_fn(endless_forks).detach(),
            Compute::Loops => {
                (0..2).for_each(|_| spawner.at(Batch).spawn_fn(endless_loop).detach())
            }
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
