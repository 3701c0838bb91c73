//! One runtime for everything, as the users had it.

use super::{Config, STREAMS, build, decode, fetch, sample, sentinel};
use crate::engines;
use crate::harness::{Sample, timing::Latencies};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::{task::yield_now, time::sleep};

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
    let all = Arc::new(Mutex::new(Latencies::new()));
    let start = Instant::now();
    let streams = (0..STREAMS).map(|_| {
        let all = all.clone();
        runtime.spawn(async move {
            for _ in 0..config.rounds {
                let late = fetch(sleep).await;
                decode(late, &all);
            }
        })
    });
    for stream in streams.collect::<Vec<_>>() {
        runtime.block_on(stream).expect("no task panics");
    }
    let time = start.elapsed().as_nanos() as f64;
    let all = all.lock().expect("nobody panics");
    sample(&all, u64::from(config.rounds) * STREAMS as u64).with("time_ns", time)
}
