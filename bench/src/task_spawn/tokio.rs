//! `tokio::spawn` and `JoinHandle`, from a task on a worker.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    config.measure(|| {
        runtime
            .block_on(runtime.spawn(sum(config.tasks)))
            .expect("no task panics")
    })
}

async fn sum(tasks: u64) -> u64 {
    let handles: Vec<_> = (0..tasks)
        .map(|index| tokio::spawn(async move { index }))
        .collect();
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.expect("no task panics");
    }
    sum
}
