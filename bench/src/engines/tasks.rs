//! Runtimes of async tasks, for programs that are the same for all but for these calls.

use std::fmt::Debug;
use urgency_measure::Sample;

/// A runtime of async tasks.
pub trait Tasks: 'static {
    /// The runtime.
    type Runtime;

    /// Spawns on the runtime of the calling task. The handle's error says that the task was lost.
    fn spawn<T: Send + 'static>(
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, impl Debug>> + Send;

    /// Goes once through the queue.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Runs a task from outside.
    fn run<T: Send + 'static>(
        runtime: &Self::Runtime,
        task: impl Future<Output = T> + Send + 'static,
    ) -> T;

    /// A sample taken with a runtime of so many workers, with two levels if it knows levels and `with_levels` says so.
    fn sample(
        workers: usize,
        with_levels: bool,
        measure: impl FnOnce(&Self::Runtime) -> Sample,
    ) -> Sample;
}

/// Spawns so many tasks and adds up what they return.
pub async fn sum<E: Tasks, F: Future<Output = u64> + Send + 'static>(
    count: u64,
    task: impl Fn(u64) -> F + Send,
) -> u64 {
    let handles: Vec<_> = (0..count).map(|index| E::spawn(task(index))).collect();
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.expect("no task is lost");
    }
    sum
}

/// So many tasks that yield so often each; how often in all.
pub fn yielding<E: Tasks>(tasks: u64, yields: u64) -> impl Future<Output = u64> + Send {
    sum::<E, _>(tasks, move |_| async move {
        for _ in 0..yields {
            E::yield_now().await;
        }
        yields
    })
}
