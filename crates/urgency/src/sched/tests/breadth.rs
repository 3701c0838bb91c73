//! What one operation of a program costs in the scheduler, by how many levels there are and by how many stacks wait. As
//! in [`costs`](super::costs), which has the same by workers: atomic steps and cache lines.
//!
//! There are two workers, which run what is counted at the most urgent level. In the rows by levels there is a task at
//! each other level that yields for ever: all levels are ready at all times, and the workers serve another one whenever
//! they have nothing else. In the rows by stacks so many closures wait, each on a stack and a thread of its own, at the
//! less urgent one of two levels.

use super::costs::{assert_row_by, boosts_itself, fib, wake_in_turns, with_tasks};
use crate::{
    Runtime, block_on,
    rank::{LevelId, Levels},
    spawn,
    sync::Notify,
    sys::counted::{Cost, Sums},
    yield_now,
};
use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Release},
        },
    },
    thread,
};

const WORKERS: usize = 2;
const LEVELS: [usize; 3] = [2, 8, 64];
const STACKS: [usize; 3] = [1, 32, 512];

/// An order of so many levels, one above the other.
struct Of<const LEVELS: usize>;

impl<const LEVELS: usize> Levels for Of<LEVELS> {
    const NAME: &'static str = "Of";
    const NAMES: &'static [&'static str] = &["a level"; LEVELS];
    const ABOVE: &'static [u64] = &{
        let mut above = [0; LEVELS];
        let mut rank = 1;
        while rank < LEVELS {
            above[rank] = (1 << rank) - 1;
            rank += 1;
        }
        above
    };
}

fn runtime(levels: usize) -> Runtime {
    let builder = Runtime::builder().workers(WORKERS);
    let builder = match levels {
        2 => builder.levels::<Of<2>>(),
        8 => builder.levels::<Of<8>>(),
        64 => builder.levels::<Of<64>>(),
        _ => unreachable!("an order has a type"),
    };
    builder.build().unwrap()
}

fn level(rank: usize) -> LevelId {
    LevelId::new(rank as u8).unwrap()
}

/// Calls `cost` while a task of each level but the first is ready.
fn beside_levels(levels: usize, cost: impl FnOnce(&Runtime) -> Cost) -> Cost {
    let runtime = runtime(levels);
    let ends = Arc::new(AtomicBool::new(false));
    let ready = |rank| {
        let ends = ends.clone();
        runtime.at(level(rank)).spawn(async move {
            while !ends.load(Acquire) {
                // It is none of the operations.
                Sums::stop();
                yield_now().await;
            }
        })
    };
    let ready: Vec<_> = (1..levels).map(ready).collect();
    let cost = cost(&runtime);
    ends.store(true, Release);
    ready.into_iter().for_each(|task| task.get().unwrap());
    cost
}

/// Calls `cost` while so many closures wait.
fn beside_stacks(stacks: usize, cost: impl FnOnce(&Runtime) -> Cost) -> Cost {
    let runtime = runtime(2);
    let (end, waiting) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let wait = |_| {
        let (end, waiting) = (end.clone(), waiting.clone());
        runtime.at(level(1)).spawn_fn(move || {
            block_on(async {
                let ended = std::pin::pin!(end.notified());
                waiting.fetch_add(1, Release);
                ended.await;
            });
        })
    };
    let waits: Vec<_> = (0..stacks).map(wait).collect();
    while waiting.load(Acquire) < stacks {
        thread::yield_now();
    }
    let cost = cost(&runtime);
    (0..stacks).for_each(|_| end.notify_one());
    waits.into_iter().for_each(|task| task.get().unwrap());
    cost
}

fn assert_flat(name: &str, cost: impl Fn(&Runtime) -> Cost) {
    assert_row_by(name, "levels", (&LEVELS, 1), |levels| {
        beside_levels(levels, &cost)
    });
    assert_row_by(name, "stacks", (&STACKS, 1), |stacks| {
        beside_stacks(stacks, &cost)
    });
}

/// As [`with_tasks`], at the most urgent level.
fn with_urgent_tasks<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    task: impl Fn(&'static Sums, usize) -> F + Send + 'static,
) -> Cost {
    with_tasks(&runtime.at(level(0)), WORKERS, task)
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_dispatch_costs_no_more_with_more_levels_or_stacks() {
    assert_flat("yield", |runtime| {
        with_urgent_tasks(runtime, |sums, each| async move {
            for _ in 0..each {
                sums.operation();
                yield_now().await;
            }
        })
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_spawn_and_its_wake_up_cost_no_more_with_more_levels_or_stacks() {
    assert_flat("spawn and await", |runtime| {
        with_urgent_tasks(runtime, |sums, each| async move {
            for _ in 0..each {
                sums.operation();
                spawn(async { sums.goes_on() }).await.unwrap();
            }
        })
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_wake_up_costs_no_more_with_more_levels_or_stacks() {
    assert_flat("wake", |runtime| with_urgent_tasks(runtime, wake_in_turns));
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn an_urgent_insertion_from_outside_costs_no_more_with_more_levels_or_stacks() {
    assert_flat("urgent insertion", |runtime| {
        let sums = Sums::forever();
        for _ in 0..300 {
            sums.operation();
            let task = runtime.at(level(0)).spawn(async {});
            Sums::stop();
            task.get().unwrap();
        }
        sums.cost()
    });
}

/// Of a task that is queued at the less urgent one of two levels, the least urgent of all in the rows by levels.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_boost_of_a_task_that_is_queued_costs_no_more_with_more_levels_or_stacks() {
    assert_flat("boost of a queued task", |runtime| {
        let least = runtime.handle().at(level(runtime.stats().levels.len() - 1));
        with_urgent_tasks(runtime, move |sums, each| {
            let least = least.clone();
            async move {
                for _ in 0..each / 2 {
                    let task = least.spawn(async {});
                    sums.operation();
                    task.boost();
                    Sums::stop();
                    task.await.unwrap();
                }
            }
        })
    });
}

/// Each task boosts itself.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_boost_of_a_task_that_runs_costs_no_more_with_more_levels_or_stacks() {
    assert_flat("boost of a running task", |runtime| {
        let below = runtime.handle().at(level(1));
        let sums = Sums::forever();
        for _ in 0..300 {
            below.spawn(boosts_itself(sums)).get().unwrap();
        }
        sums.cost()
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_fork_costs_no_more_with_more_levels_or_stacks() {
    assert_flat("fork", |runtime| {
        let sums = Sums::forever();
        let forks = runtime.at(level(0)).spawn_fn(|| fib(20, sums));
        assert_eq!(forks.get().unwrap(), 10_946);
        sums.cost()
    });
}
