//! A task that shuts its own runtime down while it is inside of another one: it is reported as left.

mod common;

use common::{ends, runtime};
use urgency::{Runtime, Shutdown, blocking};

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
        let task = outer.spawn(urgency::time::sleep(std::time::Duration::from_millis(50)));
        let report = outer.run(|| inner.run(|| outer.shutdown(Shutdown::Drain)));
        assert_eq!((report.spawned, report.finished), (1, 1));
        task.get().unwrap();
    });
}
