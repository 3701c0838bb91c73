//! The same futures, at two levels.

use super::{Config, STREAMS, Streams, build, fetch, sample, sentinel};
use crate::engines::{self, ours::Batch, ours::Urgent};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use urgency::{time::sleep, yield_now};
use urgency_measure::Sample;

/// One sample of the builders.
pub fn sst_build(config: Config) -> Sample {
    let runtime = engines::ours::runtime_with_levels(2);
    let over = Arc::new(AtomicBool::new(false));
    let builders = [0, 1].map(|_| {
        let over = over.clone();
        runtime
            .at(Batch)
            .spawn(async move { build(&over, yield_now).await })
    });
    let late = runtime.at(Urgent).spawn(sentinel(config, sleep)).get();
    over.store(true, Ordering::Relaxed);
    for builder in builders {
        builder.get().expect("nothing is cancelled");
    }
    let sample = sample(&late.expect("nothing is cancelled"), config.rounds.into());
    engines::ours::with_stats(sample, &runtime)
}

/// One sample of the streams: the fetches are urgent.
pub fn io(config: Config) -> Sample {
    let runtime = engines::ours::runtime_with_levels(2);
    let all = Arc::new(Streams::start());
    let streams = (0..STREAMS).map(|_| {
        let all = all.clone();
        let fetched = || {
            let fetch = urgency::at(Urgent).spawn(fetch(sleep));
            async { fetch.await.expect("nothing is cancelled") }
        };
        runtime
            .at(Batch)
            .spawn(async move { all.stream(config, fetched).await })
    });
    for stream in streams.collect::<Vec<_>>() {
        stream.get().expect("nothing is cancelled");
    }
    engines::ours::with_stats(all.sample(config), &runtime)
}
