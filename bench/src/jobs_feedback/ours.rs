//! Two runtimes on two workers.

use super::{CORES, Config};
use crate::{
    jobs_elastic::{tree, units},
    jobs_flow::UNIT,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use urgency::Runtime;
use urgency::policy::cores::CorePolicy;
use urgency::time::sleep;
use urgency_measure::rounds::median;
use urgency_measure::{Sample, machine, timing};

/// One sample.
pub fn run<P: CorePolicy + Clone + Send + Sync + 'static>(config: Config, policy: P) -> Sample {
    let builder = Runtime::builder().workers(CORES).core_policy(policy);
    let one = builder.build().expect("threads can be started");
    let other = Runtime::builder().share_workers_with(&one).build();
    let both = [one, other.expect("the workers are there")];
    let units_of = |ms| units(Duration::from_millis(ms));
    let (high, low) = (units_of(config.high_ms), units_of(1));
    let in_high = [AtomicBool::new(false), AtomicBool::new(false)];
    let start = Instant::now();
    let (steps, settled) = thread::scope(|threads| {
        let watch = threads.spawn(|| watch(&both[0], &in_high[0]));
        let jobs = [0, 1].map(|job| {
            let (runtime, in_high) = (&both[job], &in_high[job]);
            threads.spawn(move || {
                for phase in 0..2 * config.alternations {
                    let is_high = phase % 2 == job;
                    in_high.store(is_high, Ordering::SeqCst);
                    match is_high {
                        true => runtime.run(|| tree(high)),
                        false => {
                            let phase = runtime.spawn(pauses(low, config.pauses));
                            phase.get().expect("it ends");
                        }
                    }
                }
                in_high.store(false, Ordering::SeqCst);
            })
        });
        jobs.into_iter()
            .for_each(|job| job.join().expect("it ends"));
        DONE.store(true, Ordering::SeqCst);
        watch.join().expect("it looks")
    });
    let time = start.elapsed();
    let share = both[0].stats().share;
    let phases = config.alternations as f64;
    let sample = Sample::new()
        .with("time_ns", time.as_nanos() as f64)
        .with("steps", steps as f64 / phases)
        .with("decisions", share.decisions as f64)
        .with("peak_rss_bytes", machine::peak_rss());
    match median(settled) {
        Some(settled) => sample.with("settle_ns", settled),
        None => sample,
    }
}

async fn pauses(units: u32, pauses: usize) {
    for _ in 0..pauses {
        timing::use_processor(UNIT * units);
        sleep(Duration::from_micros(1500)).await;
    }
}

/// The jobs have ended; a process takes one sample.
static DONE: AtomicBool = AtomicBool::new(false);

/// How often the job's workers became more in its high phases, and after how long both served it, in nanoseconds.
fn watch(job: &Runtime, in_high: &AtomicBool) -> (usize, Vec<f64>) {
    let (mut steps, mut settled) = (0, Vec::new());
    while !DONE.load(Ordering::SeqCst) {
        if !in_high.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_micros(100));
            continue;
        }
        let (since, mut serving, mut waits) = (Instant::now(), 0, true);
        while in_high.load(Ordering::SeqCst) {
            let now = job.stats().share.serving;
            steps += usize::from(now > serving);
            serving = now;
            if waits && serving == CORES {
                settled.push(since.elapsed().as_nanos() as f64);
                waits = false;
            }
            thread::sleep(Duration::from_micros(100));
        }
    }
    (steps, settled)
}
