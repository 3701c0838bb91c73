//! The computation at the lower level, the jobs at the higher one, as closures on stacks of their own or as
//! async tasks.

use super::Config;
use crate::engines::ours::{Batch, Urgent, runtime_with_levels, with_stats};
use crate::fib::ours::fib;
use urgency::Runtime;
use urgency_measure::Sample;

/// One sample with jobs that are closures.
pub fn closures(config: Config) -> Sample {
    let runtime = runtime_with_levels(2);
    let hand_in = |job| runtime.at(Urgent).spawn_fn(job).detach();
    with_stats(config.measure(|n| compute(&runtime, n), hand_in), &runtime)
}

/// One sample with jobs that are async tasks.
pub fn tasks(config: Config) -> Sample {
    let runtime = runtime_with_levels(2);
    let hand_in = |job: super::Job| runtime.at(Urgent).spawn(async { job() }).detach();
    with_stats(config.measure(|n| compute(&runtime, n), hand_in), &runtime)
}

fn compute(runtime: &Runtime, n: u32) -> u64 {
    runtime
        .at(Batch)
        .spawn_fn(move || fib(n))
        .get()
        .expect("the computation is not cancelled")
}
