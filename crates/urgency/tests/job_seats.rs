//! Schedules with a seat for each worker, in jobs that have a part of the workers.

mod common;

use common::{ends, until};
use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};
use urgency::{
    LevelId, at,
    jobs::{CoreSet, JobHandle},
    levels,
    policy::{Adaptive, FixedShares, Otherwise, Parameters, Schedule},
    task::yield_now,
};

levels! { Two: Urgent > Calm }

const SECOND: Duration = Duration::from_secs(1);

/// Counts its turns in one of these places until it is told to stop.
async fn counts(turns: Arc<[AtomicUsize; 4]>, at: usize, stop: Arc<AtomicBool>) {
    while !stop.load(Relaxed) {
        turns[at].fetch_add(1, Relaxed);
        yield_now().await;
    }
}

/// The root of a job that counts turns at both levels, in the place `first` and the next.
fn at_both_levels(
    turns: &Arc<[AtomicUsize; 4]>,
    first: usize,
    stop: &Arc<AtomicBool>,
) -> impl Future<Output = ()> + Send + use<> {
    let [urgent, calm] = [first, first + 1].map(|place| counts(turns.clone(), place, stop.clone()));
    async {
        let urgent = at(Urgent).spawn(urgent);
        at(Calm).spawn(calm).await.unwrap();
        urgent.await.unwrap();
    }
}

/// Waits until the counts in the first `places` have gone on, again and again, and not only at the beginning.
fn go_on(turns: &[AtomicUsize; 4], places: usize) {
    for _ in 0..3 {
        let before = turns.each_ref().map(|count| count.load(SeqCst));
        until(|| (0..places).all(|at| turns[at].load(SeqCst) > before[at] + 1000));
    }
}

/// Two jobs on two cores have one worker each, and seats for two. What of a job is ready at both levels runs.
#[test]
fn a_job_serves_the_levels_of_all_of_its_seats_with_a_part_of_the_workers() {
    let schedules: [Schedule; 3] = [
        FixedShares::of_workers(&[1, 1], Otherwise::Wait).into(),
        FixedShares::of_workers(&[1, 1], Otherwise::Donate).into(),
        Adaptive::new(2, Parameters::default()).unwrap().into(),
    ];
    for schedule in schedules {
        ends(move || {
            let set = CoreSet::builder().cores(2).build().unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let turns: Arc<[AtomicUsize; 4]> = Arc::default();
            let shape = set
                .job()
                .runtime(|it| it.levels::<Two>().schedule(schedule));
            let jobs = [0, 2].map(|first| {
                let root = at_both_levels(&turns, first, &stop);
                shape.clone().spawn(root).unwrap()
            });
            go_on(&turns, 4);
            stop.store(true, SeqCst);
            jobs.into_iter().for_each(|job| job.get().unwrap());
        });
    }
}

/// Two of four workers, and one of four seats for urgent work: a quarter of the time, also if the job keeps the same
/// workers. (Half of it if the seats stay, or nothing.)
#[test]
fn a_level_has_its_seats_part_of_the_workers_of_a_job() {
    ends(|| {
        let shares = FixedShares::of_workers(&[1, 3], Otherwise::Wait);
        let set = CoreSet::builder().cores(4).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let shape = set.job().runtime(|it| it.levels::<Two>().schedule(shares));
        let jobs = [(); 2].map(|()| {
            let counts = || counts(Arc::default(), 0, stop.clone());
            let tasks = [Urgent.into(), Calm.into()]
                .map(|level: LevelId| [(); 4].map(|()| (level, counts())));
            let root = async {
                let spawned = tasks.into_iter().flatten();
                let spawned: Vec<_> = spawned.map(|(level, task)| at(level).spawn(task)).collect();
                for task in spawned {
                    task.await.unwrap();
                }
            };
            shape.clone().spawn(root).unwrap()
        });
        let ran = |job: &JobHandle<()>| {
            let levels = job.control().stats().unwrap().levels;
            [0, 1].map(|level: usize| levels[level].total.running)
        };
        // Four hundred turns.
        let lasts = |job: &JobHandle<()>| ran(job).into_iter().sum::<Duration>() > 4 * SECOND;
        until(|| jobs.iter().all(lasts));
        let ran = jobs.each_ref().map(ran);
        stop.store(true, SeqCst);
        jobs.into_iter().for_each(|job| job.get().unwrap());
        for [urgent, calm] in ran {
            let part = urgent.as_secs_f64() / (urgent + calm).as_secs_f64();
            assert!((0.05..0.45).contains(&part), "{part} of the time: {ran:?}");
        }
    });
}

/// The other worker is idle, and not for this job.
#[test]
fn a_job_that_may_have_one_worker_serves_the_levels_of_both_of_its_seats() {
    ends(|| {
        let shares = FixedShares::of_workers(&[1, 1], Otherwise::Wait);
        let set = CoreSet::builder().cores(2).build().unwrap();
        let shape = set.job().runtime(|it| it.levels::<Two>().schedule(shares));
        let stop = Arc::new(AtomicBool::new(false));
        let turns: Arc<[AtomicUsize; 4]> = Arc::default();
        let root = at_both_levels(&turns, 0, &stop);
        let job = shape.max_cpus(1).spawn(root).unwrap();
        go_on(&turns, 2);
        stop.store(true, SeqCst);
        job.get().unwrap();
    });
}
