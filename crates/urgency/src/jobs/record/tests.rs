//! A cancel against the start and the end of its job.

use super::*;
use crate::{Runtime, jobs::CoreSet};

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
