//! The runtime of a job that is over serves the next job.

mod common;

use common::{ends, until};
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::Duration,
};
use urgency::{
    JoinErrorKind, Runtime,
    jobs::CoreSet,
    levels,
    policy::{Criterion, cores::Demand},
    time::sleep,
};

levels! { Two: Urgent > Calm }

fn one_core() -> CoreSet {
    CoreSet::builder().cores(1).build().unwrap()
}

#[test]
fn containers_are_used_again_and_a_job_sees_nothing_of_the_one_before() {
    ends(|| {
        let cores = one_core();
        let template = cores.job().runtime(|builder| builder.levels::<Two>());
        for n in 0..200 {
            let job = template.clone().spawn(async move {
                let runtime = Runtime::current();
                assert_eq!(runtime.demand(), Demand::default());
                runtime
                    .set_demand(Demand {
                        weight: 7,
                        ..Demand::default()
                    })
                    .unwrap();
                runtime
                    .set_fairness(Criterion::from_shares(&[0.5, 0.5]).unwrap())
                    .unwrap();
                urgency::spawn(async move { n }).await.unwrap()
            });
            let job = job.unwrap();
            until(|| job.is_over());
            let stats = job.stats().unwrap();
            // Polls of two tasks.
            assert!((2..10).contains(&stats.total().tasks), "{stats:?}");
            assert_eq!(job.get().unwrap(), n);
        }
        // A thread that has just left a job may keep its container for a moment.
        let built = cores.stats().built;
        assert!(
            built < 100,
            "{built} containers for 200 jobs, one after the other"
        );
    });
}

#[test]
fn a_container_that_the_program_still_holds_is_given_to_no_other_job() {
    ends(|| {
        let cores = one_core();
        let kept = cores.spawn(async { urgency::runtime::Handle::current() });
        let kept = kept.unwrap().get().unwrap();
        for _ in 0..20 {
            let job = cores.spawn(sleep(Duration::from_millis(1))).unwrap();
            let late = kept.spawn(async { "in the wrong job" });
            assert_eq!(late.get().unwrap_err().kind(), JoinErrorKind::ShutDown);
            job.get().unwrap();
        }
    });
}

/// A job may be over before the call returns that submitted it.
#[test]
fn no_more_jobs_are_over_than_were_submitted_at_any_moment() {
    let cores = CoreSet::builder().cores(2).build().unwrap();
    let watched = AtomicBool::new(true);
    thread::scope(|threads| {
        let watcher = threads.spawn(|| {
            while watched.load(SeqCst) {
                let stats = cores.stats();
                assert!(stats.over <= stats.submitted, "{stats:?}");
            }
        });
        for _ in 0..3_000 {
            cores.spawn_fn(|| ()).unwrap().detach();
            cores.drain();
        }
        watched.store(false, SeqCst);
        watcher.join().unwrap();
    });
    let stats = cores.stats();
    assert_eq!((stats.submitted, stats.over), (3_000, 3_000));
}
