//! rayon: one pool per process.

use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool of so many threads.
pub fn pool(workers: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(workers)
        .build()
        .expect("threads can be started")
}

/// `rayon::join`.
pub struct Join;

impl super::Join for Join {
    fn join(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
        rayon::join(a, b);
    }
}
