//! A service with three jobs on one set of cores: requests, an index that is built, a backup. Their shares are changed
//! while they run.
//!
//! ```text
//! cargo run --release --example three_jobs
//! ```
//!
//! All three always have more to do than the machine can, so each row shows the shares alone.

use std::{
    error::Error,
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use urgency::{
    jobs::{self, CoreSet, JobHandle, SubmitError},
    policy::cores::Demand,
    scope,
};

/// How long each of the shares below holds.
const PHASE: Duration = Duration::from_millis(600);

/// Submits a job that does `piece` on all cores, until it is cancelled. Its progress is how many pieces are done.
fn submit(cores: &CoreSet, name: &'static str, piece: fn()) -> Result<JobHandle<()>, SubmitError> {
    cores.job().name(name).spawn_fn(move || {
        let done = AtomicU64::new(0);
        let pieces = || {
            while !jobs::is_cancelled() {
                piece();
                jobs::report(done.fetch_add(1, Relaxed) + 1, 0);
            }
        };
        let workers = urgency::Runtime::current().stats().workers.len();
        scope(|scope| (0..workers).for_each(|_| scope.spawn(pieces)));
    })
}

/// A short fork and join.
fn answer_request() {
    let (a, b) = urgency::join(|| sum(10_000), || sum(10_000));
    black_box(a + b);
}

/// A piece of 100 microseconds or so, with a scheduling point at its end.
fn index_document() {
    black_box(sum(100_000));
    urgency::scheduling_point();
}

/// A millisecond or so without any scheduling point, as of code that knows nothing of this library.
fn copy_block() {
    black_box(sum(500_000));
    urgency::scheduling_point();
}

fn sum(n: u64) -> u64 {
    (0..n).fold(0, |sum, number| black_box(sum + number))
}

fn main() -> Result<(), Box<dyn Error>> {
    let cores = CoreSet::builder().build()?;
    let jobs = [
        submit(&cores, "requests", answer_request)?,
        submit(&cores, "indexing", index_document)?,
        submit(&cores, "backup", copy_block)?,
    ];
    println!(
        "which part of the cores serves each job, and pieces of work done; a piece of each is another length\n"
    );
    let weights = |requests, indexing, backup| {
        [requests, indexing, backup].map(|weight| Demand {
            weight,
            ..Demand::default()
        })
    };
    let mut night = weights(1, 1, 8);
    night[0].priority = 1;
    phase("all alike", &jobs, weights(1, 1, 1))?;
    phase(
        "day: requests 6, indexing 3, backup 1",
        &jobs,
        weights(6, 3, 1),
    )?;
    phase(
        "night: backup 8, indexing 1, requests what is left",
        &jobs,
        night,
    )?;
    jobs.iter().for_each(|job| job.cancel());
    cores.drain();
    Ok(())
}

/// Lets the jobs run with these demands, and prints what each had.
fn phase(title: &str, jobs: &[JobHandle<()>; 3], demands: [Demand; 3]) -> Result<(), SubmitError> {
    for (job, demand) in jobs.iter().zip(demands) {
        job.set_demand(demand)?;
    }
    // The change takes some milliseconds.
    thread::sleep(Duration::from_millis(20));
    let done = || jobs.each_ref().map(|job| job.progress().done);
    let (before, end, mut had) = (done(), Instant::now() + PHASE, [0; 3]);
    while Instant::now() < end {
        for (had, job) in had.iter_mut().zip(jobs) {
            *had += job.stats().map_or(0, |stats| stats.share.serving);
        }
        thread::sleep(Duration::from_millis(1));
    }
    let (after, all) = (done(), had.iter().sum::<usize>().max(1));
    println!("{title}");
    for (place, job) in jobs.iter().enumerate() {
        let (part, pieces) = (100 * had[place] / all, after[place] - before[place]);
        println!(
            "  {:8} {part:3} %  {pieces:8} pieces",
            job.name().unwrap_or_default()
        );
    }
    Ok(())
}
