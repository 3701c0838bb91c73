//! Jobs of one group have one share together.
//!
//! What is counted is what the policy gave each job at many looks (`WorkerShare::entitled`). How soon the workers
//! follow depends on the processors, which others use as well.

mod common;

use common::{ends, fib};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    BuildError,
    jobs::{CoreSet, JobBuilder, JobHandle, SubmitError},
    policy::cores::{DemandError, Group, Refusal},
};

/// A job for each description, all with endless work for all cores. How many cores each was given in the mean, at many
/// looks from the time when the policy knows them all.
fn given(cores: &CoreSet, jobs: &[JobBuilder]) -> Vec<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    let jobs = jobs.iter().map(|job| {
        let stop = stop.clone();
        let work = move || {
            while !stop.load(SeqCst) {
                assert_eq!(fib(8), 21);
            }
        };
        let root = move || {
            urgency::join(&work, &work);
        };
        job.clone().spawn_fn(root).unwrap()
    });
    let jobs: Vec<JobHandle<()>> = jobs.collect();
    let share = |job: &JobHandle<()>| job.stats().map(|stats| stats.share);
    let looks = 400;
    let (mut sums, mut looked) = (vec![0; jobs.len()], 0);
    while looked < looks {
        thread::sleep(Duration::from_millis(1));
        let now = jobs.iter().map(|job| share(job)?.entitled);
        let Some(now) = now.collect::<Option<Vec<usize>>>() else {
            continue;
        };
        looked += 1;
        sums.iter_mut().zip(now).for_each(|(sum, now)| *sum += now);
    }
    stop.store(true, SeqCst);
    cores.drain();
    let mean = |sum: usize| sum as f64 / f64::from(looks);
    sums.into_iter().map(mean).collect()
}

#[test]
fn a_group_with_four_jobs_has_as_much_as_a_group_with_one() {
    ends(|| {
        let cores = CoreSet::builder().cores(2).build().unwrap();
        let given = |job: &dyn Fn(u64) -> JobBuilder| {
            let each = given(&cores, &[1, 2, 2, 2, 2].map(job));
            (each[0], each[1..].iter().sum::<f64>())
        };
        let (one, four) = given(&|group| cores.job().group(Group::new(group)));
        assert!((0.9..1.1).contains(&one), "{one} and {four}");
        assert!((0.8..1.2).contains(&four), "{one} and {four}");
        let (one, four) = given(&|_| cores.job());
        assert!(one < 0.7 && four > 1.3, "{one} and {four}");
    });
}

#[test]
fn a_group_of_no_weight_is_an_error_that_says_so() {
    let cores = CoreSet::builder().cores(2).build().unwrap();
    let weightless = cores.job().group(Group::new(1).weight(0));
    let error = weightless.try_reserve().unwrap_err();
    let refused = Refusal::Demand(DemandError::GroupWeight);
    assert_eq!(error, SubmitError::Build(BuildError::Demand(refused)));
    assert!(error.to_string().contains("group"), "{error}");
}
