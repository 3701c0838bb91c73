//! Closures that block, and async tasks.

use super::Config;
use crate::engines::ours::{runtime, with_stats};
use std::sync::Arc;
use urgency::sync::Barrier;
use urgency_measure::Sample;

/// One sample with closures.
pub fn stacks(config: Config) -> Sample {
    let runtime = runtime(config.workers);
    let sample = config.measure(|| {
        let barrier = Arc::new(Barrier::new(config.parties as usize));
        let party = |_| {
            let barrier = barrier.clone();
            runtime.spawn_fn(move || {
                let meet = |_| {
                    urgency::join(|| barrier.blocking_wait(), || ());
                    1
                };
                (0..config.meetings).map(meet).sum::<u64>()
            })
        };
        let parties: Vec<_> = (0..config.parties).map(party).collect();
        let met = parties
            .into_iter()
            .map(|party| party.get().expect("nothing is cancelled"));
        met.sum()
    });
    with_stats(sample, &runtime)
}

/// One sample with tasks.
pub fn tasks(config: Config) -> Sample {
    let runtime = runtime(config.workers);
    let sample = config.measure(|| {
        let barrier = Arc::new(Barrier::new(config.parties as usize));
        let party = |_| {
            let barrier = barrier.clone();
            runtime.spawn(async move {
                for _ in 0..config.meetings {
                    barrier.wait().await;
                }
                config.meetings
            })
        };
        let parties: Vec<_> = (0..config.parties).map(party).collect();
        let met = parties
            .into_iter()
            .map(|party| party.get().expect("nothing is cancelled"));
        met.sum()
    });
    with_stats(sample, &runtime)
}
