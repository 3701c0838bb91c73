//! Urgency: one runtime per process, with two levels where an experiment needs them.
//!
//! Samples of ours carry the runtime's own accounting as metrics `stats_<counter>` (see [`with_stats`]). They
//! are in the raw samples, not in the tables: they say why a number is what it is, and no peer has them.

use std::fmt::Debug;
use urgency::Runtime;
use urgency_measure::Sample;

urgency::levels! {
    /// The levels of the experiments that need two.
    pub Levels:
        /// What somebody waits for.
        Urgent >
        /// What runs beside it.
        Batch
}

/// A runtime of so many workers with the one level that programs without levels have.
pub fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .build()
        .expect("threads can be started")
}

/// A runtime of so many workers with the levels [`Urgent`] and [`Batch`].
pub fn runtime_with_levels(workers: usize) -> Runtime {
    runtime_with::<Levels>(workers)
}

/// A runtime of so many workers with the levels of `L`, as shipped otherwise.
pub fn runtime_with<L: urgency::level::Levels>(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .levels::<L>()
        .build()
        .expect("threads can be started")
}

/// Takes a sample on a stack of a new runtime of so many workers.
pub fn run(workers: usize, measure: impl FnOnce() -> Sample) -> Sample {
    let runtime = runtime(workers);
    let sample = runtime.run(measure);
    with_stats(sample, &runtime)
}

/// Adds the runtime's accounting to a sample.
pub fn with_stats(sample: Sample, runtime: &Runtime) -> Sample {
    let stats = runtime.stats();
    let total = stats.total();
    // Of the most urgent level: from ready to running.
    let ready_p99 = stats.levels[0].latency.quantile(0.99);
    sample
        .with("stats_tasks", total.tasks as f64)
        .with("stats_closures", total.closures as f64)
        .with("stats_jobs", total.jobs as f64)
        .with("stats_steals", total.steals as f64)
        .with("stats_leaps", total.leaps as f64)
        .with("stats_raises", total.raises as f64)
        .with("stats_mugs", total.mugs as f64)
        .with("stats_abandonments", total.abandonments as f64)
        .with("stats_hand_offs", total.hand_offs as f64)
        .with("stats_reliefs", total.reliefs as f64)
        .with("stats_promotions", total.promotions as f64)
        .with("stats_lowerings", stats.lowerings as f64)
        .with("stats_threads_peak", stats.threads_peak as f64)
        .with("stats_running_ns", total.running.as_nanos() as f64)
        .with("stats_behind_ns", total.behind.as_nanos() as f64)
        .with("stats_ready_p99_ns", ready_p99.as_nanos() as f64)
}

/// `urgency::join`.
#[derive(Clone, Copy)]
pub struct Join;

impl super::Engine for Join {
    fn run(self, workers: usize, measure: impl FnOnce() -> Sample + Send) -> Sample {
        run(workers, measure)
    }
}

impl super::Join for Join {
    #[inline(always)]
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        urgency::join(a, b)
    }
}

/// Tasks of Urgency.
pub struct Ours;

impl super::tasks::Tasks for Ours {
    type Runtime = Runtime;

    fn spawn<T: Send + 'static>(
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, impl Debug>> + Send {
        urgency::spawn(task)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        urgency::yield_now()
    }

    fn run<T: Send + 'static>(
        runtime: &Runtime,
        task: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let done = runtime.block_on(runtime.spawn(task));
        done.expect("nothing is cancelled")
    }

    fn sample(
        workers: usize,
        with_levels: bool,
        measure: impl FnOnce(&Runtime) -> Sample,
    ) -> Sample {
        let runtime = match with_levels {
            true => runtime_with_levels(workers),
            false => runtime(workers),
        };
        with_stats(measure(&runtime), &runtime)
    }
}
