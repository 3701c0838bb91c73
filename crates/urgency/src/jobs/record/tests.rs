//! A cancel, and a look at the accounts, against the start and the end of a job.

use super::*;
use crate::{Runtime, jobs::CoreSet};
use std::{sync::mpsc, thread};

/// Of a job in a container of its own, whose root `start` begins.
fn run(start: impl FnOnce(&Arc<Record>, &Runtime)) -> Runtime {
    let cores = CoreSet::builder().cores(1).build().unwrap();
    let job = cores.spawn_fn(|| ()).unwrap();
    let record = Record::new(job.control().record.set.clone(), None, Demand::default());
    let container = Runtime::builder().workers(1).build().unwrap();
    let handle = container.handle().clone();
    record.enter(handle, None, record.asked()).unwrap();
    record.run(|| start(&record, &container));
    job.get().unwrap();
    container
}

fn is_closed(container: &Runtime) -> bool {
    container.job().tasks.live.is_closed()
}

/// Closed and empty, it is free for the next job.
#[test]
fn a_cancel_closes_no_container_before_the_root_is_in_it() {
    let container = run(|record, container| {
        record.cancel();
        assert!(!is_closed(container));
    });
    assert!(is_closed(&container), "the start sees the cancel");
}

/// The next job may have the container by then.
#[test]
fn a_job_that_is_cancelled_and_over_before_its_start_returns_closes_no_container() {
    let container = run(|record, _| {
        record.cancel();
        record.tasks_ended();
    });
    assert!(!is_closed(&container));
}

/// What runs in the container for longer shows in looks that come before the job is over.
#[test]
fn the_last_accounts_of_a_job_show_no_less_than_a_look_before_its_end() {
    run(|record, container| {
        let (record, telling) = (record.clone(), record.tells.take());
        let tasks = || record.stats().unwrap().total().tasks;
        let (begins, has_begun) = mpsc::channel();
        let before = thread::scope(|threads| {
            threads.spawn(|| {
                begins.send(()).unwrap();
                record.tasks_ended();
            });
            has_begun.recv().unwrap();
            // For the thread to come to the turn to tell, which is taken.
            thread::sleep(Duration::from_millis(5));
            container.spawn(async {}).get().unwrap();
            let before = tasks();
            drop(telling);
            before
        });
        assert_eq!((before, tasks()), (1, 1));
    });
}
