//! Urgency, by policy within a level.

use super::{Executor, Fed, Flow};
use crate::engines::ours::with_stats;
use crate::harness::Sample;
use urgency::{Builder, Runtime};

/// A policy's name, and how a runtime gets it.
type Policy = (&'static str, fn(Builder) -> Builder);

/// All policies.
pub const POLICIES: &[Policy] = &[("ours", |builder| builder)];

/// A runtime of so many workers with the policy of this name.
pub fn runtime(workers: usize, policy: &str) -> Runtime {
    let named = POLICIES.iter().find(|(name, _)| *name == policy);
    let (_, chosen) = named.expect("contenders are made from this table");
    chosen(Runtime::builder().workers(workers))
        .build()
        .expect("threads can be started")
}

/// The runtime that the caller belongs to.
#[derive(Clone)]
struct Ours;

impl Executor for Ours {
    fn spawn(&self, task: impl FnOnce(&Self) + Send + 'static) {
        urgency::spawn(async move { task(&Ours) }).detach();
    }

    fn feed(&self, mut feed: impl FnMut(&Self) -> Fed + Send + 'static) {
        let feeder = async move {
            while feed(&Ours) == Fed::Full {
                urgency::yield_now().await;
            }
        };
        urgency::spawn(feeder).detach();
    }
}

/// One sample.
pub fn run<F: Flow>(flow: F, workers: usize, policy: &str) -> Sample {
    let runtime = runtime(workers, policy);
    let sample = super::run(flow, |start| {
        runtime.spawn(async move { start(&Ours) }).detach();
    });
    with_stats(sample, &runtime)
}
