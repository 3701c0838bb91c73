//! The benchmarks of the dissertation on OCaml's schedulers (2.9 to 2.11 of our notes), by policy within a
//! level: many small tasks that belong to *items* (packets, options, frames), each of which is to be finished
//! soon. They trade throughput for tail latency, and the order in which a scheduler takes its tasks decides
//! where.
//!
//! - `packets-general-<workers>`: one feeder, a task per packet that scans it.
//! - `packets-feeders-<workers>`: the same with four.
//! - `packets-chain-<workers>`: ten feeders; after the scan a chain of ten tasks, each reading the packet at 20 places.
//!   A contender that runs the next link where the last one ran finds the packet in that core's cache.
//! - `packets-bimodal-<workers>`: ten feeders, a chain of three; the last one has two operations of about 20
//!   ms follow in one case of a thousand.
//! - `packets-sleep-<workers>`, `packets-timer-<workers>`: the same, and an operation sleeps in the kernel, or awaits a
//!   timer. A contender that has means for code that blocks uses them; in rayon, and when staged, it holds a worker.
//! - `pricer-<workers>`: options by binomial lattices, a task per time step; one in 200 has a hundred times
//!   as many steps.
//! - `mixer-<workers>`: audio conferences; a frame each 20 ms per participant, which is to be mixed within 10 ms.
//!
//! A contender is a policy of ours, a peer, or, with two workers, one of the dissertation's arrangements of pools:
//! `silos`, a runtime with one worker each, among which feeders and conferences are dealt; `staged`, one pool of
//! workers for heavy operations (of conferences: for participants) and one for everything else. A feeder makes items as
//! fast as it may: at most a window of them is under way over all feeders (the dissertation's spawners retry when their
//! bounded queue is full), and a feeder that finds it full yields. `p99_ns` and so on are from an item's entry to its
//! end; `per_s` is items per second. `urgency-bench --draw` makes the pictures.

mod ledger;
mod mixer;
#[cfg(feature = "ours")]
mod ours;
mod packets;
mod pricer;
mod rayon;
mod tokio;

use crate::engines::WORKERS;
use ledger::Ledger;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use urgency_measure::{Experiment, Sample, Scale};

/// What a feeder did when it was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fed {
    /// It made all its items.
    All,
    /// The window is full; it wants to be called again after others have run.
    Full,
}

/// Where tasks run.
trait Executor: Clone + Send + Sync + 'static {
    /// Runs `task` as a task of its own.
    fn spawn(&self, task: impl FnOnce(&Self) + Send + 'static);

    /// Runs a heavy operation as a task of its own.
    fn spawn_heavy(&self, task: impl FnOnce(&Self) + Send + 'static) {
        self.spawn(task);
    }

    /// Sleeps in the kernel for `time` and then calls `end`. Without means for code that blocks it holds its worker.
    fn spawn_sleep(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        self.spawn_heavy(move |_| {
            thread::sleep(time);
            end();
        });
    }

    /// Calls `end` after `time`. An executor without timers sleeps.
    fn spawn_timer(&self, time: Duration, end: impl FnOnce() + Send + 'static) {
        self.spawn_sleep(time, end);
    }

    /// Calls `feed` as a task of its own that yields after each call, until it has made all its items.
    fn feed(&self, feed: impl FnMut(&Self) -> Fed + Send + 'static);
}

/// A stream of items through tasks.
trait Flow: Send + Sync + 'static {
    /// What describes one item on its way.
    type Item: Send + 'static;

    /// How many items there are.
    fn items(&self) -> usize;

    /// Feeders.
    fn feeders(&self) -> usize;

    /// Makes item number `index`.
    fn make(&self, index: usize) -> Self::Item;

    /// An item's first task, which spawns the others and ends with [`Ledger::finish`].
    fn enter<E: Executor>(self: Arc<Self>, executor: &E, item: Self::Item, way: Way);

    /// Panics if the results are wrong.
    fn verify(&self);
}

/// What an item carries with it.
struct Way {
    ledger: Arc<Ledger>,
    index: usize,
}

/// How many items are under way at most.
const WINDOW: usize = 1024;

/// Runs a flow to its end on an executor: the sample, without what the executor adds.
fn run<F: Flow, E: Executor>(flow: F, start: impl FnOnce(Box<dyn FnOnce(&E) + Send>)) -> Sample {
    let flow = Arc::new(flow);
    let ledger = Arc::new(Ledger::new(flow.items(), WINDOW));
    let (its_flow, its_ledger) = (flow.clone(), ledger.clone());
    ledger.start();
    start(Box::new(move |executor| {
        let feeders = its_flow.feeders();
        for feeder in 0..feeders {
            let (flow, ledger) = (its_flow.clone(), its_ledger.clone());
            let mut next = feeder;
            executor.feed(move |executor| {
                while next < flow.items() {
                    if !ledger.enter(next) {
                        return Fed::Full;
                    }
                    let item = flow.make(next);
                    let way = Way {
                        ledger: ledger.clone(),
                        index: next,
                    };
                    let flow = flow.clone();
                    executor.spawn(move |executor| flow.enter(executor, item, way));
                    next += feeders;
                }
                Fed::All
            });
        }
    }));
    let sample = ledger.sample();
    flow.verify();
    sample
}

const COLUMNS: [&str; 5] = ["per_s", "p50_ns", "p99_ns", "p999_ns", "max_ns"];

/// A stream of items by all policies and peers.
fn flow_experiment<F: Flow>(
    name: &str,
    about: &str,
    workers: usize,
    flow: impl Fn() -> F + Copy + 'static,
) -> Experiment {
    let experiment = Experiment::new(
        format!("{name}-{workers}"),
        format!("{about}, {workers} worker(s)"),
    )
    .table("tokio", &COLUMNS)
    .contender("tokio", move || tokio::run(flow(), workers))
    .contender("rayon", move || rayon::run(flow(), workers));
    #[cfg(feature = "ours")]
    let experiment = ours::policies().fold(experiment, |all, (name, policy)| {
        all.contender(name, move || ours::run(flow(), workers, policy))
    });
    #[cfg(feature = "ours")]
    let experiment = match workers {
        1 => experiment,
        _ => experiment
            .contender("silos", move || ours::silos(flow(), workers))
            .contender("staged", move || ours::staged(flow(), workers)),
    };
    experiment
}

/// All of them.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let mut all = Vec::new();
    for workers in WORKERS {
        all.extend(packets::experiments(scale, workers));
        all.push(pricer::experiment(scale, workers));
        all.push(mixer::experiment(scale, workers));
    }
    all
}
