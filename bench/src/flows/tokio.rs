//! Tokio: a task each.

use super::{Executor, Fed, Flow};
use crate::engines;
use std::thread;
use std::time::Duration;
use urgency_measure::Sample;

/// The runtime that the caller belongs to.
#[derive(Clone)]
struct Runtime;

impl Executor for Runtime {
    fn spawn(&self, task: impl FnOnce(&Self) + Send + 'static) {
        ::tokio::spawn(async move { task(&Runtime) });
    }

    fn spawn_sleep(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        ::tokio::task::spawn_blocking(move || {
            thread::sleep(time);
            end();
        });
    }

    fn spawn_timer(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        ::tokio::spawn(async move {
            ::tokio::time::sleep(time).await;
            end();
        });
    }

    fn feed(&self, mut feed: impl FnMut(&Self) -> Fed + Send + 'static) {
        ::tokio::spawn(async move {
            while feed(&Runtime) == Fed::Full {
                ::tokio::task::yield_now().await;
            }
        });
    }
}

/// One sample.
pub fn run<F: Flow>(flow: F, workers: usize) -> Sample {
    let runtime = engines::tokio::runtime(workers);
    super::run(flow, |start| {
        runtime.spawn(async move { start(&Runtime) });
    })
}
