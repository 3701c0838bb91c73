//! What the accounts of a job say when it is over.

mod common;

use common::{ends, until};
use std::future::pending;
use urgency::{
    Overrun, Runtime,
    jobs::{CoreSet, JobControl},
    spawn,
};

fn one_core() -> CoreSet {
    CoreSet::builder().cores(1).build().unwrap()
}

fn has_ended(job: &JobControl) {
    until(|| job.is_over());
    let stats = job.stats().unwrap();
    for level in &stats.levels {
        assert_eq!((level.queued, level.oldest_wait), (0, None), "{stats:?}");
    }
    assert_eq!((stats.share.serving, stats.share.entitled), (0, None));
    assert!(stats.overruns.iter().all(|one| one.now == 0));
}

#[test]
fn nothing_of_a_job_that_is_over_waits_runs_or_has_a_core() {
    ends(|| {
        let cores = one_core();
        for _ in 0..20 {
            // Its tasks are ready, and cancelled by the end of the root.
            let leaves_tasks = cores.spawn_fn(|| (0..10).for_each(|_| spawn(async {}).detach()));
            let leaves_tasks = leaves_tasks.unwrap();
            has_ended(&leaves_tasks);
            let waits = cores.spawn(pending::<()>()).unwrap();
            let queued = cores.job().min_cpus(1).spawn_fn(|| ()).unwrap();
            until(|| waits.stats().is_some_and(|stats| stats.total().tasks != 0));
            waits.cancel();
            has_ended(&waits);
            queued.get().unwrap();
        }
    });
}

/// Its thread comes to the scheduler when the job is over.
#[test]
fn what_the_root_of_a_job_overran_is_in_the_accounts_of_that_job() {
    ends(|| {
        let cores = one_core();
        let description = cores.job();
        for _ in 0..20 {
            let root = description.clone().spawn_fn(root_that_overruns).unwrap();
            until(|| root.is_over());
            let found = root.stats().unwrap().overruns;
            let noted = root.get().unwrap();
            let is_its = |one: &&Overrun| one.what.contains("root_that_overruns");
            let times: Vec<_> = found.iter().filter(is_its).map(|one| one.times).collect();
            assert_eq!(times, [noted + 1], "{found:?}");
            let next = description.clone().spawn_fn(|| ()).unwrap();
            until(|| next.is_over());
            let found = next.stats().unwrap().overruns;
            assert!(found.is_empty(), "{found:?}");
        }
    });
}

/// Goes on until it has lost its worker, for which a task waits. Returns how often it has noted that before. (The
/// runtime's own accounts have what earlier jobs overran, too.)
fn root_that_overruns() -> u64 {
    let overruns = || {
        let overruns = Runtime::current().stats().overruns;
        let counts = overruns.iter().map(|one| (one.times, one.now));
        counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let (before, _) = overruns();
    loop {
        let waits = spawn(async {});
        while !waits.is_finished() {
            if let (times, 1) = overruns() {
                return times - before;
            }
        }
        // It had a worker from the beginning.
    }
}
