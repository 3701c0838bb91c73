//! What Tokio's `RuntimeMetrics` says of a runtime, from the accounts that [`Stats`] shows.

use super::{Handle, stats::Stats};
use std::time::Duration;

/// Figures of a runtime by Tokio's names: see [`Handle::metrics`]. Each call looks anew. It keeps no runtime alive.
///
/// [`Runtime::stats`](crate::Runtime::stats) has all that is counted, by level and worker.
///
/// ```
/// use urgency::runtime::RuntimeMetrics;
///
/// let runtime = urgency::Runtime::builder().workers(2).build()?;
/// let metrics: RuntimeMetrics = runtime.metrics();
/// assert_eq!(metrics.num_workers(), 2);
/// assert_eq!(metrics.num_alive_tasks(), 0);
/// let seen = metrics.clone();
/// let alive = runtime.spawn(async move { seen.num_alive_tasks() });
/// assert_eq!(alive.get().unwrap(), 1);
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RuntimeMetrics(Handle);

impl Handle {
    /// Figures of the runtime, by Tokio's names.
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics(self.clone())
    }
}

impl RuntimeMetrics {
    /// How many workers the runtime has, with the workers in reserve and the ones that serve another runtime meanwhile.
    pub fn num_workers(&self) -> usize {
        self.0.job.core.workers.len()
    }

    /// How many tasks are alive: futures and closures that were spawned and have not ended.
    pub fn num_alive_tasks(&self) -> usize {
        self.0.job.tasks.live.len()
    }

    /// How many tasks, closures and stacks are ready and wait for a worker. There is one queue for all workers at each
    /// level, and this is the sum of the levels.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(1).build()?;
    /// let handle = runtime.handle().clone();
    /// let seen = runtime.spawn_fn(move || {
    ///     handle.spawn(async {}).detach();
    ///     handle.metrics().global_queue_depth() // the only worker is here
    /// });
    /// assert_eq!(seen.get().unwrap(), 1);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn global_queue_depth(&self) -> usize {
        let job = &self.0.job;
        (0..job.levels.len() as u8)
            .map(|level| job.queued(level))
            .sum()
    }

    /// How long a worker, by its number, has run code of this runtime, what it runs now included.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// let runtime = urgency::Runtime::builder().workers(1).build()?;
    /// let computes = runtime.spawn_fn(|| {
    ///     let begun = Instant::now();
    ///     while begun.elapsed() < Duration::from_millis(5) {}
    /// });
    /// computes.get().unwrap();
    /// let metrics = runtime.handle().metrics();
    /// runtime.shutdown(urgency::Shutdown::Drain);
    /// assert!(metrics.worker_total_busy_duration(0) > Duration::ZERO);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no worker of this number.
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        let stats = Stats::of(&self.0.job);
        let levels = &stats.workers[worker].levels;
        levels.iter().map(|level| level.running).sum()
    }
}
