//! Urgency, by policy within a level: `ours` is the default, aging; the others have the names of
//! `urgency::policy::Kind`. Feeders yield far: under an order that takes the newest first, a task that yields
//! near would come next.

use super::{Executor, Fed, Flow};
use crate::engines::ours::with_stats;
use urgency::Runtime;
use urgency::policy::Kind;
use urgency_measure::Sample;

/// The contenders' names with their policies.
pub fn policies() -> impl Iterator<Item = (&'static str, Kind)> {
    let others = Kind::NAMED.iter().map(|&(name, kind, _)| (name, kind));
    let others = others.filter(|(_, kind)| *kind != Kind::Aging);
    std::iter::once(("ours", Kind::Aging)).chain(others)
}

/// A runtime of so many workers with this policy.
pub fn runtime(workers: usize, policy: Kind) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .pool(policy)
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
                urgency::yield_far().await;
            }
        };
        urgency::spawn(feeder).detach();
    }
}

/// One sample.
pub fn run<F: Flow>(flow: F, workers: usize, policy: Kind) -> Sample {
    let runtime = runtime(workers, policy);
    let sample = super::run(flow, |start| {
        runtime.spawn(async move { start(&Ours) }).detach();
    });
    with_stats(sample, &runtime)
}
