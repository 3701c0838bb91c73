//! Each side a task.

use super::{Config, pair};
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    config.measure(|| {
        runtime
            .block_on(runtime.spawn(all(config)))
            .expect("no task panics")
    })
}

async fn all(config: Config) -> u64 {
    let one = move |_| {
        let (caller, echo) = pair();
        drop(tokio::spawn(echo.echo()));
        tokio::spawn(caller.call(config.trips))
    };
    let handles: Vec<_> = (0..config.pairs).map(one).collect();
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.expect("no task panics");
    }
    sum
}
