//! `urgency::spawn` and `JoinHandle`, from a task on a worker.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::ours::runtime(2);
    let sample = config.measure(|| {
        runtime
            .block_on(runtime.spawn(sum(config.tasks)))
            .expect("nothing is cancelled")
    });
    engines::ours::with_stats(sample, &runtime)
}

async fn sum(tasks: u64) -> u64 {
    let handles: Vec<_> = (0..tasks)
        .map(|index| urgency::spawn(async move { index }))
        .collect();
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.expect("nothing is cancelled");
    }
    sum
}
