//! Urgency, by policy within a level: `ours` is the default, aging; the others have the names of
//! `urgency::policy::Kind`. Feeders yield far: under an order that takes the newest first, a task that yields
//! near would come next.

use super::{Executor, Fed, Flow};
use crate::engines::ours::with_stats;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use urgency::Runtime;
use urgency::policy::{FixedShares, Kind, Otherwise};
use urgency_measure::Sample;

urgency::levels! {
    /// What has a pool of workers of its own in the staged arrangement.
    pub Stages:
        /// Everything else.
        Main >
        /// Heavy operations, and participants of conferences.
        Heavy
}

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

/// A runtime with a worker for heavy operations, and the others for everything else.
pub fn stages(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .levels::<Stages>()
        .schedule(FixedShares::of_workers(&[workers - 1, 1], Otherwise::Wait))
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

    fn spawn_sleep(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        spawn_sleep(time, end);
    }

    fn spawn_timer(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        spawn_timer(time, end);
    }

    fn feed(&self, feed: impl FnMut(&Self) -> Fed + Send + 'static) {
        feed_as(Ours, feed);
    }
}

fn spawn_sleep(time: Duration, end: impl FnOnce() + Send + 'static) {
    let sleeps = move || {
        thread::sleep(time);
        end();
    };
    urgency::task::spawn_blocking(sleeps).detach();
}

fn spawn_timer(time: Duration, end: impl FnOnce() + Send + 'static) {
    let waits = async move {
        urgency::time::sleep(time).await;
        end();
    };
    urgency::spawn(waits).detach();
}

fn feed_as<E: Executor>(executor: E, mut feed: impl FnMut(&E) -> Fed + Send + 'static) {
    let feeder = async move {
        while feed(&executor) == Fed::Full {
            urgency::yield_far().await;
        }
    };
    urgency::spawn(feeder).detach();
}

/// The same with a pool of workers for heavy operations.
#[derive(Clone)]
struct Staged;

impl Executor for Staged {
    fn spawn(&self, task: impl FnOnce(&Self) + Send + 'static) {
        urgency::spawn(async move { task(&Staged) }).detach();
    }

    fn spawn_heavy(&self, task: impl FnOnce(&Self) + Send + 'static) {
        urgency::at(Heavy)
            .spawn(async move { task(&Staged) })
            .detach();
    }

    fn spawn_timer(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        spawn_timer(time, end);
    }

    fn feed(&self, feed: impl FnMut(&Self) -> Fed + Send + 'static) {
        feed_as(Staged, feed);
    }
}

/// Runtimes with one worker each. A feeder and its items stay in one of them.
#[derive(Clone)]
struct Silos {
    runtimes: Arc<[urgency::runtime::Handle]>,
    next: Arc<AtomicUsize>,
}

impl Executor for Silos {
    fn spawn(&self, task: impl FnOnce(&Self) + Send + 'static) {
        let silos = self.clone();
        urgency::spawn(async move { task(&silos) }).detach();
    }

    fn spawn_sleep(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        spawn_sleep(time, end);
    }

    fn spawn_timer(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        spawn_timer(time, end);
    }

    fn feed(&self, mut feed: impl FnMut(&Self) -> Fed + Send + 'static) {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let silos = self.clone();
        let feeder = async move {
            while feed(&silos) == Fed::Full {
                urgency::yield_far().await;
            }
        };
        self.runtimes[turn % self.runtimes.len()]
            .spawn(feeder)
            .detach();
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

/// One sample with a pool of workers for heavy operations.
pub fn staged<F: Flow>(flow: F, workers: usize) -> Sample {
    let runtime = stages(workers);
    let sample = super::run(flow, |start| {
        runtime
            .at(Main)
            .spawn(async move { start(&Staged) })
            .detach();
    });
    with_stats(sample, &runtime)
}

/// One sample with a runtime of one worker for each of these workers.
pub fn silos<F: Flow>(flow: F, workers: usize) -> Sample {
    let runtimes: Vec<_> = (0..workers).map(|_| runtime(1, Kind::Aging)).collect();
    let silos = Silos {
        runtimes: runtimes.iter().map(|silo| silo.handle().clone()).collect(),
        next: Arc::default(),
    };
    super::run(flow, |start| {
        runtimes[0].spawn(async move { start(&silos) }).detach();
    })
}
