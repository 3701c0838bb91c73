//! chili: the calling thread is one of the pool's; the heartbeat is as shipped (100 us).

use chili::{Config, ThreadPool};
use std::num::NonZero;

/// A pool of so many threads, the caller included.
pub fn pool(workers: usize) -> ThreadPool {
    ThreadPool::with_config(Config {
        thread_count: NonZero::new(workers),
        ..Config::default()
    })
}
