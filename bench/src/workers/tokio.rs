//! `tokio::spawn`, `tokio::task::yield_now`.

use super::{Config, SPAWNERS, YIELDERS};
use crate::engines;
use urgency_measure::Sample;

/// One sample of tasks that spawn others.
pub fn spawn(config: Config) -> Sample {
    let one = move || async move {
        for _ in 0..config.spawns {
            tokio::spawn(async {}).await.expect("no task panics");
        }
        config.spawns
    };
    run(config, SPAWNERS, SPAWNERS * config.spawns, one)
}

/// One sample of tasks that yield.
pub fn yields(config: Config) -> Sample {
    let one = move || async move {
        for _ in 0..config.yields {
            tokio::task::yield_now().await;
        }
        config.yields
    };
    run(config, YIELDERS, YIELDERS * config.yields, one)
}

/// `tasks` tasks at once, each of which returns how many operations it has done.
fn run<F: Future<Output = u64> + Send + 'static>(
    config: Config,
    tasks: u64,
    operations: u64,
    task: impl Fn() -> F + Copy + Send + 'static,
) -> Sample {
    let runtime = engines::tokio::runtime(config.workers);
    config.measure(operations, || {
        let all = async move {
            let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(task())).collect();
            let mut done = 0;
            for handle in handles {
                done += handle.await.expect("no task panics");
            }
            done
        };
        runtime
            .block_on(runtime.spawn(all))
            .expect("no task panics")
    })
}
