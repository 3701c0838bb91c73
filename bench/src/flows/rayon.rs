//! rayon: `spawn_fifo`, since a feeder that yields by spawning itself would come next in its own LIFO order, for ever.

use super::{Executor, Fed, Flow};
use crate::engines;
use urgency_measure::Sample;

/// The pool that the caller belongs to.
#[derive(Clone)]
struct Pool;

impl Executor for Pool {
    fn spawn(&self, task: impl FnOnce(&Self) + Send + 'static) {
        ::rayon::spawn_fifo(move || task(&Pool));
    }

    fn feed(&self, mut feed: impl FnMut(&Self) -> Fed + Send + 'static) {
        ::rayon::spawn_fifo(move || {
            if feed(&Pool) == Fed::Full {
                Pool.feed(feed);
            }
        });
    }
}

/// One sample.
pub fn run<F: Flow>(flow: F, workers: usize) -> Sample {
    let pool = engines::rayon::pool(workers);
    super::run(flow, |start| pool.spawn(move || start(&Pool)))
}
