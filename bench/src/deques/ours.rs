//! Closures that block, and async tasks.

use super::Config;
use crate::engines::ours::{runtime, with_stats};
use std::sync::Arc;
use urgency::{Runtime, sync::Barrier, task::JoinHandle};
use urgency_measure::Sample;

/// One sample with closures.
pub fn stacks(config: Config) -> Sample {
    run(config, |runtime, barrier| {
        runtime.spawn_fn(move || {
            let meet = |_| {
                urgency::join(|| barrier.blocking_wait(), || ());
                1
            };
            (0..config.meetings).map(meet).sum()
        })
    })
}

/// One sample with tasks.
pub fn tasks(config: Config) -> Sample {
    run(config, |runtime, barrier| {
        runtime.spawn(async move {
            for _ in 0..config.meetings {
                barrier.wait().await;
            }
            config.meetings
        })
    })
}

/// One sample with parties that `party` starts.
fn run(config: Config, party: impl Fn(&Runtime, Arc<Barrier>) -> JoinHandle<u64>) -> Sample {
    let runtime = runtime(config.workers);
    let sample = config.measure(|| {
        let barrier = Arc::new(Barrier::new(config.parties as usize));
        let parties = (0..config.parties).map(|_| party(&runtime, barrier.clone()));
        let parties: Vec<_> = parties.collect();
        let met = parties.into_iter().map(JoinHandle::get);
        met.map(|met| met.expect("nothing is cancelled")).sum()
    });
    with_stats(sample, &runtime)
}
