//! Tokio: the multi-thread runtime with all drivers, otherwise as shipped.

use tokio::runtime::{Builder, Runtime};

/// A multi-thread runtime of so many workers.
pub fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("threads can be started")
}
