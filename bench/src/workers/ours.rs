//! `urgency::spawn`, `urgency::yield_now` and `urgency::join`, in a runtime of two levels.

use super::{Config, SPAWNERS, YIELDERS};
use crate::engines;
use urgency_measure::Sample;

/// One sample of tasks that spawn others.
pub fn spawn(config: Config) -> Sample {
    let one = move || async move {
        for _ in 0..config.spawns {
            urgency::spawn(async {})
                .await
                .expect("nothing is cancelled");
        }
        config.spawns
    };
    run(config, SPAWNERS, SPAWNERS * config.spawns, one)
}

/// One sample of tasks that yield.
pub fn yields(config: Config) -> Sample {
    let one = move || async move {
        for _ in 0..config.yields {
            urgency::yield_now().await;
        }
        config.yields
    };
    run(config, YIELDERS, YIELDERS * config.yields, one)
}

/// One sample of forks.
pub fn fib(config: Config) -> Sample {
    let runtime = engines::ours::runtime_with_levels(config.workers);
    let sample = runtime.run(|| config.measure_fib(crate::fib::ours::fib));
    engines::ours::with_stats(sample, &runtime)
}

/// `tasks` tasks at once, each of which returns how many operations it has done.
fn run<F: Future<Output = u64> + Send + 'static>(
    config: Config,
    tasks: u64,
    operations: u64,
    task: impl Fn() -> F + Copy + Send + 'static,
) -> Sample {
    let runtime = engines::ours::runtime_with_levels(config.workers);
    let sample = config.measure(operations, || {
        let all = async move {
            let handles: Vec<_> = (0..tasks).map(|_| urgency::spawn(task())).collect();
            let mut done = 0;
            for handle in handles {
                done += handle.await.expect("nothing is cancelled");
            }
            done
        };
        runtime
            .block_on(runtime.spawn(all))
            .expect("nothing is cancelled")
    });
    engines::ours::with_stats(sample, &runtime)
}
