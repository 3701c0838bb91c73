//! A service with three jobs on one set of workers: requests, an index that is built, a backup. Their shares are
//! changed while they run.
//!
//! ```text
//! cargo run --release --example three_jobs
//! ```
//!
//! Each job is a runtime. All three always have more to do than the machine can, so each row shows the shares alone.

use std::{
    error::Error,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{Runtime, policy::cores::Demand};

/// How long each of the shares below holds.
const PHASE: Duration = Duration::from_millis(600);

/// A kind of work, and how often a piece of it was done.
struct Job {
    name: &'static str,
    runtime: Runtime,
    done: Arc<AtomicU64>,
}

impl Job {
    /// Keeps the runtime busy with pieces of `piece` until `stop`.
    fn start(name: &'static str, runtime: Runtime, stop: &Arc<AtomicBool>, piece: fn()) -> Job {
        let done = Arc::new(AtomicU64::new(0));
        for _ in 0..runtime.stats().workers.len() {
            let (stop, done) = (stop.clone(), done.clone());
            let pieces = move || {
                while !stop.load(Relaxed) {
                    piece();
                    done.fetch_add(1, Relaxed);
                }
            };
            runtime.spawn_fn(pieces).detach();
        }
        Job {
            name,
            runtime,
            done,
        }
    }
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
    let stop = Arc::new(AtomicBool::new(false));
    let requests = Runtime::new()?;
    let beside = || Runtime::builder().share_workers_with(&requests).build();
    let (indexing, backup) = (beside()?, beside()?);
    let workers = requests.stats().workers.len();
    let jobs = [
        Job::start("requests", requests.clone(), &stop, answer_request),
        Job::start("indexing", indexing, &stop, index_document),
        Job::start("backup", backup, &stop, copy_block),
    ];
    println!(
        "{workers} workers; how many of them serve each, in the mean, in %, and pieces of work done; a piece of each is another length\n"
    );
    let weights = |requests, indexing, backup| {
        [requests, indexing, backup].map(|weight| Demand {
            weight,
            ..Demand::default()
        })
    };
    let last = |demand: Demand| Demand {
        priority: 1,
        ..demand
    };
    let mut night = weights(1, 1, 8);
    night[0] = last(night[0]);
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
    stop.store(true, Relaxed);
    Ok(())
}

/// Lets the jobs run with these demands, and prints what each had.
fn phase(title: &str, jobs: &[Job; 3], demands: [Demand; 3]) -> Result<(), Box<dyn Error>> {
    for (job, demand) in jobs.iter().zip(demands) {
        job.runtime.set_demand(demand)?;
    }
    // The change takes some milliseconds.
    thread::sleep(Duration::from_millis(20));
    let done = || jobs.each_ref().map(|job| job.done.load(Relaxed));
    let (before, end, mut had) = (done(), Instant::now() + PHASE, [0; 3]);
    while Instant::now() < end {
        for (had, job) in had.iter_mut().zip(jobs) {
            *had += job.runtime.stats().share.serving;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let (after, all) = (done(), had.iter().sum::<usize>().max(1));
    println!("{title}");
    for (place, job) in jobs.iter().enumerate() {
        let (part, pieces) = (100 * had[place] / all, after[place] - before[place]);
        println!("  {:8} {part:3} %  {pieces:8} pieces", job.name);
    }
    Ok(())
}
