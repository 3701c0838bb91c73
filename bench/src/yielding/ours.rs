//! `urgency::yield_now`.

use super::Config;
use crate::engines;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::ours::runtime(2);
    let sample = config.measure(|| {
        runtime
            .block_on(runtime.spawn(all(config)))
            .expect("nothing is cancelled")
    });
    engines::ours::with_stats(sample, &runtime)
}

async fn all(config: Config) -> u64 {
    let one = move |_| {
        urgency::spawn(async move {
            for _ in 0..config.yields {
                urgency::yield_now().await;
            }
            config.yields
        })
    };
    let handles: Vec<_> = (0..config.tasks).map(one).collect();
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.expect("nothing is cancelled");
    }
    sum
}
