//! Two levels, default policy.

use super::{BASE, Config, serial_fib};
use crate::echo;
use crate::engines::ours::{Batch, Urgent, runtime_with_levels, with_stats};
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = runtime_with_levels(config.workers);
    let listener = echo::ours::listen();
    let address = listener.local_addr().expect("a listener has an address");
    runtime
        .at(Urgent)
        .spawn(echo::ours::serve(listener))
        .detach();
    let sample = config.measure(address, |n| {
        let computed = runtime.at(Batch).spawn_fn(move || fib(n));
        computed.get().expect("fib does not panic")
    });
    with_stats(sample, &runtime)
}

fn fib(n: u32) -> u64 {
    if n <= BASE {
        return serial_fib(n);
    }
    let (a, b) = urgency::join(|| fib(n - 1), || fib(n - 2));
    a + b
}
