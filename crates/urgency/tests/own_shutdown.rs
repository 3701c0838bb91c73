//! A task that shuts its own runtime down, by its forks or inside of another runtime: it is reported as left, once.

mod common;

use common::{ends, runtime};
use std::{
    sync::{Arc, Barrier},
    time::Duration,
};
use urgency::{JoinHandle, Report, Runtime, Shutdown, blocking, join};

/// The account of a runtime that its only task ended, inside of `inner`.
fn ended_inside(outer: &Runtime, inner: Runtime, call: fn(&Runtime, &Runtime)) {
    let handle = outer.clone();
    let task = outer.spawn_fn(move || call(&inner, &handle));
    task.get().unwrap();
}

#[test]
fn a_task_that_is_inside_of_other_runtimes_does_not_wait_for_itself() {
    let calls: [fn(&Runtime, &Runtime); 4] = [
        |inner, outer| inner.run(|| assert_eq!(outer.shutdown(Shutdown::Drain).left, 1)),
        |inner, outer| {
            let report = inner.block_on(async { outer.shutdown(Shutdown::Drain) });
            assert_eq!(report.left, 1);
        },
        |inner, outer| {
            let report = inner.run(|| blocking(|| outer.shutdown(Shutdown::Cancel)));
            assert_eq!(report.left, 1);
        },
        |inner, outer| {
            let between = runtime(1);
            let report = blocking(|| between.run(|| inner.run(|| outer.shutdown(Shutdown::Drain))));
            assert_eq!(report.left, 1);
        },
    ];
    for workers in [1, 2, 8] {
        for call in calls {
            ends(move || ended_inside(&runtime(workers), runtime(1), call));
        }
    }
}

#[test]
fn a_plain_thread_that_is_inside_of_two_runtimes_waits_for_all_tasks() {
    ends(|| {
        let (outer, inner) = (runtime(1), runtime(1));
        let task = outer.spawn(urgency::time::sleep(Duration::from_millis(50)));
        let report = outer.run(|| inner.run(|| outer.shutdown(Shutdown::Drain)));
        assert_eq!((report.spawned, report.finished), (1, 1));
        task.get().unwrap();
    });
}

const LONG: Duration = Duration::from_millis(200);

/// A task of `runtime` that takes long, and that a drain has to wait for.
fn drained(runtime: &Runtime) -> JoinHandle<()> {
    runtime.spawn(urgency::time::sleep(LONG))
}

/// Waits until a second thread has come here too, so that another stack runs one of two forks.
fn meet(place: &Barrier) {
    blocking(|| place.wait());
}

/// Finished, and left.
fn became(report: Report) -> (u64, u64) {
    (report.finished, report.left)
}

#[test]
fn two_forks_of_a_task_that_both_shut_down_are_counted_as_one_task() {
    for workers in [1, 2, 8] {
        ends(move || {
            let outer = runtime(workers);
            let (place, handle) = (Barrier::new(2), outer.clone());
            let other = drained(&outer);
            let task = outer.spawn_fn(move || {
                let shut = || {
                    meet(&place);
                    became(handle.shutdown(Shutdown::Drain))
                };
                join(shut, shut)
            });
            assert_eq!(task.get().unwrap(), ((1, 1), (1, 1)));
            other.get().unwrap();
        });
    }
}

#[test]
fn a_stolen_fork_of_a_plain_thread_is_counted_as_no_task() {
    for workers in [1, 2, 8] {
        ends(move || {
            let outer = runtime(workers);
            let place = Barrier::new(2);
            let other = drained(&outer);
            let stolen = || {
                meet(&place);
                became(outer.shutdown(Shutdown::Drain))
            };
            let (_, report) = outer.run(|| join(|| meet(&place), stolen));
            assert_eq!(report, (1, 0));
            other.get().unwrap();
        });
    }
}

/// Its right-hand side is stolen while its left-hand side runs a task, for which it waits, on top. Both shut down.
fn stolen_below_an_awaited_task(runtime: &Runtime) -> ((u64, u64), (u64, u64)) {
    let places = [(); 2].map(|()| Arc::new(Barrier::new(2)));
    let on_top = places.clone();
    let shut = || became(runtime.shutdown(Shutdown::Drain));
    let left = || {
        let awaited = runtime.spawn_fn(move || on_top.iter().for_each(|place| meet(place)));
        awaited.get().unwrap();
        shut()
    };
    let right = || {
        meet(&places[0]);
        // The awaited task ends while this one waits.
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(LONG / 4);
                places[1].wait();
            });
            shut()
        })
    };
    join(left, right)
}

#[test]
fn a_fork_belongs_to_the_code_below_the_awaited_task_that_ran_when_it_was_stolen() {
    for workers in [1, 2, 8] {
        ends(move || {
            let outer = runtime(workers);
            let other = drained(&outer);
            let reports = outer.run(|| stolen_below_an_awaited_task(&outer));
            assert_eq!(reports, ((2, 0), (2, 0)));
            other.get().unwrap();
        });
        ends(move || {
            let outer = runtime(workers);
            let (other, handle) = (drained(&outer), outer.clone());
            let task = outer.spawn_fn(move || stolen_below_an_awaited_task(&handle));
            assert_eq!(task.get().unwrap(), ((2, 1), (2, 1)));
            other.get().unwrap();
        });
    }
}
