//! One runtime for everything, as the users had it.

use super::{Config, STREAMS, Streams, build, fetch, sample, sentinel};
use crate::engines;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::{task::yield_now, time::sleep};
use urgency_measure::Sample;

/// One sample of the builders.
pub fn sst_build(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    let over = Arc::new(AtomicBool::new(false));
    let builders = [0, 1].map(|_| {
        let over = over.clone();
        runtime.spawn(async move { build(&over, yield_now).await })
    });
    let late = runtime.block_on(runtime.spawn(sentinel(config, sleep)));
    over.store(true, Ordering::Relaxed);
    for builder in builders {
        runtime.block_on(builder).expect("no task panics");
    }
    sample(&late.expect("no task panics"), config.rounds.into())
}

/// One sample of the streams.
pub fn io(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    let all = Arc::new(Streams::start());
    let streams = (0..STREAMS).map(|_| {
        let all = all.clone();
        runtime.spawn(async move { all.stream(config, || fetch(sleep)).await })
    });
    for stream in streams.collect::<Vec<_>>() {
        runtime.block_on(stream).expect("no task panics");
    }
    all.sample(config)
}
