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

use urgency_measure::{Experiment, Scale};

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
pub trait Join: Sync {
    /// Runs both, possibly in parallel, and returns when both are done.
    fn join(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send);
}
