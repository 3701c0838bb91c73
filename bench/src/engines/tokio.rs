//! Tokio: the multi-thread runtime with all drivers, otherwise as shipped.

use std::fmt::Debug;
use tokio::runtime::{Builder, Runtime};
use urgency_measure::Sample;

/// A multi-thread runtime of so many workers.
pub fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("threads can be started")
}

/// Tasks of Tokio.
pub struct OnTokio;

impl super::tasks::Tasks for OnTokio {
    type Runtime = Runtime;

    fn spawn<T: Send + 'static>(
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, impl Debug>> + Send {
        tokio::spawn(task)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    fn run<T: Send + 'static>(
        runtime: &Runtime,
        task: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let done = runtime.block_on(runtime.spawn(task));
        done.expect("no task panics")
    }

    fn sample(workers: usize, _: bool, measure: impl FnOnce(&Runtime) -> Sample) -> Sample {
        measure(&runtime(workers))
    }
}
