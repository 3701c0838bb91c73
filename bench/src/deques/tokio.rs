//! Tokio's tasks, at Tokio's barrier.

use super::Config;
use crate::engines;
use std::sync::Arc;
use tokio::sync::Barrier;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(config.workers);
    config.measure(|| {
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
            .map(|party| runtime.block_on(party).expect("nothing panics"));
        met.sum()
    })
}
