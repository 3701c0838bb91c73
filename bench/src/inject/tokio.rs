//! `Runtime::spawn` from outside; the computation forks by `tokio::spawn` and computes the other branch
//! itself. Tokio has no levels.

use super::Config;
use crate::engines;
use std::pin::Pin;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    let compute = |n| {
        runtime
            .block_on(runtime.spawn(fib(n)))
            .expect("fib does not panic")
    };
    config.measure(compute, |job| drop(runtime.spawn(async { job() })))
}

fn fib(n: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return u64::from(n);
        }
        let a = tokio::spawn(fib(n - 1));
        let b = fib(n - 2).await;
        a.await.expect("fib does not panic") + b
    })
}
