//! How each runtime is built, in one place per runtime, so that every experiment uses it in the same way and
//! with the same number of workers.

pub mod chili;
pub mod go;
#[cfg(feature = "ours")]
pub mod ours;
pub mod pair;
pub mod rayon;
pub mod tasks;
pub mod tokio;

use urgency_measure::{Experiment, Sample, Scale};

/// Numbers of workers that fork-join experiments are run with. The bars are about a machine of two processors.
pub const WORKERS: [usize; 2] = [1, 2];

/// One experiment per number of workers.
pub fn by_workers(
    scale: Scale,
    experiment: impl Fn(Scale, usize) -> Experiment,
) -> Vec<Experiment> {
    WORKERS.map(|workers| experiment(scale, workers)).into()
}

/// Fork-join in its smallest form, for experiments whose program is the same for all runtimes but for the call itself.
pub trait Join: Copy + Send + Sync {
    /// Takes a sample where this engine can fork, with so many workers.
    fn run(self, workers: usize, measure: impl FnOnce() -> Sample + Send) -> Sample;

    /// Runs both, possibly in parallel, and returns when both are done.
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B);
}

/// Runs the one program of a fork-join experiment with each engine, beside the serial program and chili's, whose forks
/// pass a scope along.
macro_rules! fork_join_contenders {
    ($experiment:expr, $config:expr) => {{
        let (experiment, config) = ($experiment, $config);
        let experiment = experiment
            .contender("serial", move || serial::run(config))
            .contender("rayon", move || forks::run(engines::rayon::Join, config))
            .contender("chili", move || chili::run(config))
            .bar(Bar::times_at_most("ours", "time_ns", 1.0, &["rayon"]));
        #[cfg(feature = "ours")]
        let experiment =
            experiment.contender("ours", move || forks::run(engines::ours::Join, config));
        experiment
    }};
}
pub(crate) use fork_join_contenders;
