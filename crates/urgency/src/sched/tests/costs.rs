//! What one operation of a program costs in the scheduler, by how many workers there are: atomic steps that order
//! memory, and cache lines (`sys/counted.rs` says what counts). A line that each operation touches has to come from
//! another processor, at worst, so neither number may grow with the workers.
//!
//! The runtimes believe that there are as many processors as workers, but for two operations, which have two
//! processors: a fork, since with more most forks of a small computation are stolen, and the count would be of steals;
//! and a boost of a task that is queued, which then stays in its queue.
//!
//! As many tasks as workers run, each with an equal part of the operations. Searches and relief are not counted. There
//! are fewer processors than workers here, so a thread seldom meets another one: the count is of lines that are
//! touched, and not of lines that were missing in the cache.

use super::steps::{Batch, Urgent, runtime, with_all_claimed};
use crate::{
    At, Runtime,
    protocol::attention,
    runtime::Handle,
    sched::serve::run::with_current_task,
    spawn,
    sync::Notify,
    sys::{
        clock,
        counted::{Cost, Sums},
    },
    yield_now,
};
use std::sync::Arc;

const WORKERS: [usize; 5] = [1, 2, 8, 64, 256];

/// How much more an operation may cost with any number of workers than with up to eight: a share, and so many atomic
/// steps or lines.
const SHARE: f64 = 1.25;
const MORE: f64 = 16.0;

/// How often a row is measured: a thread that waits long for a processor makes others cost more.
const TRIES: u32 = 3;

fn assert_flat(name: &str, cost: impl Fn(&Runtime, usize) -> Cost) {
    assert_row(name, |workers| {
        cost(&runtime(workers, Some(workers)), workers)
    });
}

pub(super) fn assert_row(name: &str, cost: impl Fn(usize) -> Cost) {
    // Up to 8.
    assert_row_by(name, "workers", (&WORKERS, 3), cost);
}

/// Prints a row of the table, by these numbers of something, and compares its costs: with more they are as with the
/// first `few`.
pub(super) fn assert_row_by(
    name: &str,
    of: &str,
    (numbers, few): (&[usize], usize),
    cost: impl Fn(usize) -> Cost,
) {
    let costs = || -> Vec<_> { numbers.iter().map(|number| cost(*number)).collect() };
    let rises = (0..TRIES).map_while(|_| what_rises(name, of, (numbers, few), &costs()));
    let rises: Vec<_> = rises.collect();
    assert!(rises.len() < TRIES as usize, "{}", rises.join("; "));
}

fn what_rises(
    name: &str,
    what_of: &str,
    (numbers, few): (&[usize], usize),
    costs: &[Cost],
) -> Option<String> {
    let parts = [
        ("atomic steps", (|cost| cost.steps) as fn(&Cost) -> f64),
        ("cache lines", |cost| cost.lines),
    ];
    parts.into_iter().find_map(|(what, of)| {
        let row: Vec<f64> = costs.iter().map(of).collect();
        let cells: String = row.iter().map(|count| format!(" {count:.1} |")).collect();
        println!("| {name} | {what} |{cells}");
        let least = row[..few].iter().copied().fold(0.0, f64::max);
        let most = row.into_iter().zip(numbers);
        let rises = most.max_by(|a, b| a.0.total_cmp(&b.0));
        rises
            .filter(|(count, _)| *count > SHARE * least + MORE)
            .map(|(count, number)| {
                let few = numbers[few - 1];
                format!(
                    "{name}: {count:.1} {what} with {number} {what_of}, {least:.1} with {few} at most"
                )
            })
    })
}

/// Awaits as many tasks as there are workers, each with an equal part of the operations.
pub(super) fn with_tasks<F: Future<Output = ()> + Send + 'static>(
    at: &At,
    workers: usize,
    task: impl Fn(&'static Sums, usize) -> F,
) -> Cost {
    let sums = Sums::forever();
    let each = 10_000 / workers;
    let tasks: Vec<_> = (0..workers).map(|_| at.spawn(task(sums, each))).collect();
    tasks.into_iter().for_each(|task| task.get().unwrap());
    sums.cost()
}

/// Two tasks that wake each other in turns.
pub(super) async fn wake_in_turns(sums: &'static Sums, each: usize) {
    let turns = Arc::new([Notify::new(), Notify::new()]);
    let theirs = turns.clone();
    let other = spawn(async move {
        for _ in 0..each {
            theirs[1].notified().await;
            sums.operation();
            theirs[0].notify_one();
        }
    });
    for _ in 0..each {
        turns[1].notify_one();
        turns[0].notified().await;
        sums.operation();
    }
    other.await.unwrap();
}

/// The boost of a task that runs is the operation.
pub(super) async fn boosts_itself(sums: &'static Sums) {
    with_current_task(|task| {
        sums.operation();
        task.unwrap().boost(0);
        Sums::stop();
    });
}

/// A fork for each call.
pub(super) fn fib(n: u32, sums: &'static Sums) -> usize {
    if n < 2 {
        return 1;
    }
    sums.operation();
    let (a, b) = crate::join(|| fib(n - 1, sums), || fib(n - 2, sums));
    a + b
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_yield_costs_no_more_with_more_workers() {
    assert_flat("yield", |runtime, workers| {
        with_tasks(&runtime.at(Batch), workers, |sums, each| async move {
            for _ in 0..each {
                sums.operation();
                yield_now().await;
            }
        })
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_spawn_and_its_wake_up_cost_no_more_with_more_workers() {
    assert_flat("spawn and await", |runtime, workers| {
        with_tasks(&runtime.at(Batch), workers, |sums, each| async move {
            for _ in 0..each {
                sums.operation();
                spawn(async { sums.goes_on() }).await.unwrap();
            }
        })
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_wake_up_costs_no_more_with_more_workers() {
    assert_flat("wake", |runtime, workers| {
        with_tasks(&runtime.at(Batch), workers, wake_in_turns)
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_boost_of_a_task_that_is_queued_costs_no_more_with_more_workers() {
    assert_row("boost of a queued task", |workers| {
        let runtime = runtime(workers, None);
        let sums = Sums::forever();
        let each = 5_000 / workers;
        let task = |_| {
            let batch = runtime.handle().at(Batch);
            runtime.at(Urgent).spawn(async move {
                for _ in 0..each {
                    let task = batch.spawn(async {});
                    sums.operation();
                    task.boost();
                    Sums::stop();
                    task.await.unwrap();
                }
            })
        };
        let tasks: Vec<_> = (0..workers).map(task).collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        sums.cost()
    });
}

/// Each task boosts itself: so it runs, and on one of many stacks.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_boost_of_a_task_that_runs_costs_no_more_with_more_workers() {
    assert_flat("boost of a running task", |runtime, workers| {
        let sums = Sums::forever();
        let each = 5_000 / workers;
        let boosts = |_| {
            let batch = runtime.handle().at(Batch);
            batch.clone().spawn(async move {
                for _ in 0..each {
                    batch.spawn(boosts_itself(sums)).await.unwrap();
                }
            })
        };
        let tasks: Vec<_> = (0..workers).map(boosts).collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        sums.cost()
    });
}

/// All workers serve the less urgent level, and all stacks have answered when the next insertion comes. (Beside tasks
/// that yielded, an insertion waited until a thread had a processor, which took minutes beside builds. Many of 64
/// workers had nothing then, and it looked at up to eight for each that it alerted: 92 lines, where eight workers cost
/// 53.)
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn an_urgent_insertion_from_outside_costs_no_more_with_more_workers() {
    assert_row("urgent insertion", |workers| {
        with_all_claimed(workers, 1, |job, claimed| {
            let handle = Handle { job: job.clone() };
            let sums = Sums::forever();
            for _ in 0..1000 {
                sums.operation();
                handle.at(Urgent).spawn(async {}).detach();
                Sums::stop();
                for worker in claimed {
                    let stack = job.core.holder(worker).unwrap();
                    stack.attention.take_back(attention::PREEMPT);
                    job.seats.no_longer_wanted(worker, 1, clock::now());
                }
            }
            sums.cost()
        })
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_fork_costs_no_more_with_more_workers() {
    assert_row("fork", |workers| {
        let sums = Sums::forever();
        assert_eq!(runtime(workers, None).run(|| fib(20, sums)), 10_946);
        sums.cost()
    });
}
