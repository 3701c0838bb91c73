//! Tokio alone: the compute as tasks that yield each 0.1 ms, or as closures in `spawn_blocking`.

use super::{Config, endless_loop, serial_leaf};
use crate::{echo, engines};
use std::net::SocketAddr;
use tokio::runtime::Runtime;
use urgency_measure::Sample;

/// One sample with nothing beside the requests.
pub fn idle(config: Config) -> Sample {
    let (_runtime, address) = server();
    config.measure(address, None::<fn()>)
}

/// One sample beside four tasks that compute 0.1 ms and yield.
pub fn tasks(config: Config) -> Sample {
    let (runtime, address) = server();
    let start = || (0..4).for_each(|_| drop(runtime.spawn(considerate())));
    let sample = config.measure(address, Some(start));
    runtime.shutdown_background();
    sample
}

/// One sample beside two closures in `spawn_blocking`.
pub fn blocking(config: Config) -> Sample {
    let (runtime, address) = server();
    let start = || (0..2).for_each(|_| drop(runtime.spawn_blocking(endless_loop)));
    let sample = config.measure(address, Some(start));
    runtime.shutdown_background();
    sample
}

fn server() -> (Runtime, SocketAddr) {
    let runtime = engines::tokio::runtime(2);
    let listener = runtime.block_on(echo::tokio::listen());
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(echo::tokio::serve(listener));
    (runtime, address)
}

async fn considerate() {
    loop {
        serial_leaf();
        tokio::task::yield_now().await;
    }
}
