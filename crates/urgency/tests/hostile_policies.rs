//! Policies that answer by lot, between jobs, between levels and within a level, all at once: wrong answers of every
//! kind, panics, calls of the library, and sleeps. Beside them jobs come, end, panic, change their demands and are
//! cancelled. No job is lost, and everything is returned.
//!
//! `URGENCY_TEST_SEED` says which lots, `URGENCY_HOSTILE_ROUNDS` how many rounds. In a file of its own, because it
//! counts what the process has.

mod common;
#[path = "common/hostile.rs"]
mod hostile;

use common::{Random, ends, fib, number, quiet, threads_and_descriptors, until};
use hostile::{BetweenJobs, BetweenLevels, Kept, WithinLevel, World, demand};
use std::{
    panic::resume_unwind,
    sync::{Arc, atomic::Ordering::SeqCst},
    thread,
    time::Duration,
};
use urgency::{
    Runtime,
    jobs::{CoreSet, JobBuilder, JobErrorKind, JobHandle, SubmitError},
    levels,
    life::PanicPolicy,
    policy::{Schedule, cores::Boundary},
    time::sleep,
};
use urgency_policy::level::Period;

levels! { Two: Upper > Lower }

/// What a job captures.
struct Captured(Arc<World>);

impl Captured {
    fn new(world: &Arc<World>) -> Self {
        world.captured.fetch_add(1, SeqCst);
        Captured(world.clone())
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        self.0.captured.fetch_sub(1, SeqCst);
    }
}

/// Submits a job; `None` if it is refused.
fn submit(
    set: &CoreSet,
    world: &Arc<World>,
    shapes: &[JobBuilder],
    random: &mut Random,
) -> Option<JobHandle<u64>> {
    let job = match random.below(shapes.len() as u64 + 1) as usize {
        0 => set.job(),
        shape => shapes[shape - 1].clone(),
    };
    let job = match random.below(3) {
        0 => job.demand(demand(random)),
        _ => job,
    };
    let (captured, lot) = (Captured::new(world), random.below(1 << 20));
    let submitted = match random.below(7) {
        0 => job.spawn_fn(move || {
            let _captured = captured;
            resume_unwind(Box::new("on purpose"))
        }),
        1 => job.spawn(async move {
            let _captured = captured;
            sleep(Duration::from_micros(lot % 500)).await;
            lot
        }),
        2 => job.spawn_fn(move || {
            let world = captured.0.clone();
            let runtime = Runtime::current();
            let parts = (0..lot % 20).map(|_| {
                let captured = Captured::new(&world);
                runtime.spawn(async move { drop(captured) })
            });
            let parts: Vec<_> = parts.collect();
            let mut parts = parts.into_iter().map(|part| u64::from(part.get().is_ok()));
            world.runtimes.lock().unwrap().push(runtime.clone());
            parts.by_ref().sum()
        }),
        3 => job.spawn(async move {
            let captured = captured;
            for _ in 0..lot % 20 {
                let captured = Captured::new(&captured.0);
                urgency::spawn_fn(move || (fib(4), drop(captured)).0).detach();
                urgency::yield_now().await;
            }
            lot
        }),
        4 => job.spawn_fn(move || {
            let _captured = captured;
            thread::sleep(Duration::from_micros(lot % 500));
            lot
        }),
        _ => job.spawn_fn(move || {
            let _captured = captured;
            fib(5 + lot % 9)
        }),
    };
    match submitted {
        Ok(handle) => {
            let mut controls = world.controls.lock().unwrap();
            controls.push(handle.control());
            if controls.len() > 8 {
                controls.remove(0);
            }
            Some(handle)
        }
        Err(error @ (SubmitError::Build(_) | SubmitError::Full { .. })) => {
            assert!(!error.to_string().is_empty());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn round(seed: u64, workers: usize, jobs: u64) {
    let mut random = Random::new(seed);
    let panics = [0, 2000, 200, 10][random.below(4) as usize];
    let world = World::new(seed, panics);
    let policy = BetweenJobs {
        world: world.clone(),
        boundary: [Boundary::Point, Boundary::Steal, Boundary::Job][random.below(3) as usize],
        is_partitioned: random.below(5) > 0,
        is_work_conserving: random.below(2) > 0,
    };
    let set = CoreSet::builder()
        .cores(workers)
        .most_running(6)
        .most_queued(30);
    let set = set.core_policy(policy).build().unwrap();
    *world.set.lock().unwrap() = Some(set.clone());
    // A quantum without end is a valid answer, under which a level without a seat waits for good.
    let periods = [
        Period::Never,
        Period::EachWorker(random.below(2) * 1_000_000),
        Period::AllWorkers(random.below(2) * 1_000_000),
    ];
    let shape = |period| {
        let kept = || Kept(world.clone());
        let order = WithinLevel(world.clone(), kept());
        let schedule = BetweenLevels(world.clone(), period, kept());
        let silent = PanicPolicy::call(|_| ());
        let levels = move |it: urgency::Builder| it.levels::<Two>().on_panic(silent);
        set.job()
            .runtime(move |it| levels(it).pool(order).schedule(Schedule::own(schedule)))
    };
    let shapes = periods.map(shape);
    world.is_on.store(true, SeqCst);
    thread::scope(|threads| {
        for part in 0..2 {
            let (set, world, shapes) = (&set, &world, &shapes);
            let mut random = Random::new(seed ^ (part + 1) << 32);
            threads.spawn(move || {
                let mut handles = Vec::new();
                for _ in 0..jobs / 2 {
                    handles.extend(submit(set, world, shapes, &mut random));
                    if random.below(4) == 0
                        && let Some(handle) = handles.pop()
                    {
                        check(handle);
                    }
                }
                handles.into_iter().for_each(check);
            });
        }
    });
    set.drain();
    world.is_on.store(false, SeqCst);
    // A policy may have submitted one more.
    set.close();
    set.drain();
    drop(shapes);
    let stats = set.stats();
    assert_eq!((stats.running, stats.queued), (0, 0), "{stats:?}");
    assert_eq!(stats.submitted, stats.over, "{stats:?}");
    assert_eq!(world.captured.load(SeqCst), 0, "captures are left");
    world.controls.lock().unwrap().clear();
    let (runtimes, its) = (&world.runtimes, &world.set);
    drop((
        std::mem::take(&mut *runtimes.lock().unwrap()),
        its.lock().unwrap().take(),
    ));
}

/// The job has its result, or an error that says why not.
fn check(handle: JobHandle<u64>) {
    use JobErrorKind::{Cancelled, Panicked, Refused, ShutDown};
    if let Err(error) = handle.get() {
        assert!(!error.to_string().is_empty());
        let kind = error.kind();
        assert!(
            matches!(kind, Cancelled | Panicked | Refused(_) | ShutDown),
            "{error}"
        );
    }
}

#[test]
fn under_policies_by_lot_no_job_is_lost_and_everything_is_returned() {
    quiet();
    let (first, rounds) = (
        number("URGENCY_TEST_SEED", 1),
        number("URGENCY_HOSTILE_ROUNDS", 24),
    );
    let jobs = number("URGENCY_HOSTILE_JOBS", 60);
    // What a process starts once is started: the global runtime, too.
    assert_eq!(urgency::spawn_fn(|| fib(5)).get().unwrap(), 5);
    urgency::block_on(sleep(Duration::from_millis(1)));
    ends(move || round(first, 2, 20));
    let before = threads_and_descriptors();
    for seed in (0..rounds).map(|it| first.wrapping_mul(1000) + it) {
        let workers = [1, 2, 8, 64][seed as usize % 4];
        println!("seed {seed}: {workers} workers");
        ends(move || round(seed, workers, jobs));
    }
    until(|| {
        let now = threads_and_descriptors();
        now.0 <= before.0 && now.1 <= before.1
    });
}
