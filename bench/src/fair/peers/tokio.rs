//! Tokio, for both or for the echo.

use super::{BASE, Config, rayon, serial_fib};
use crate::{echo, engines};
use ::tokio::runtime::Runtime;
use std::net::SocketAddr;
use std::pin::Pin;
use urgency_measure::Sample;

/// Everything on Tokio.
pub fn run(config: Config) -> Sample {
    let (runtime, address) = server(config);
    config.measure(address, |n| {
        let computed = runtime.spawn(fib(n));
        runtime.block_on(computed).expect("fib does not panic")
    })
}

/// The echo on Tokio, fib on rayon.
pub fn beside_rayon(config: Config) -> Sample {
    let (_runtime, address) = server(config);
    let pool = engines::rayon::pool(config.workers);
    config.measure(address, |n| pool.install(|| rayon::fib(n)))
}

fn server(config: Config) -> (Runtime, SocketAddr) {
    let runtime = engines::tokio::runtime(config.workers);
    let listener = runtime.block_on(echo::tokio::listen());
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(echo::tokio::serve(listener));
    (runtime, address)
}

fn fib(n: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n <= BASE {
            return serial_fib(n);
        }
        let forked = ::tokio::spawn(fib(n - 2));
        fib(n - 1).await + forked.await.expect("fib does not panic")
    })
}
