//! A small urgent job arrives from outside while both workers are inside one fork-join computation (fib
//! without cut-off, some seconds long): how long until it starts? A plain thread hands one in each 4 ms, 500
//! at most; the wait is from just before the hand-in to the job's first line. Jobs that start only after the
//! computation has ended count with all of their wait.
//!
//! `time_ns` is the computation's own time. Each runtime gets an argument of fib with which it computes for
//! two to three seconds. The contender `ours-undisturbed` is the same computation with nothing handed in:
//! what the promptness costs.

#[cfg(feature = "ours")]
mod ours;
mod rayon;
mod tokio;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use urgency_measure::latencies::Latencies;
use urgency_measure::timing::serial_fib;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// The computation, and what is handed in.
#[derive(Clone, Copy)]
pub struct Config {
    /// The argument of fib.
    pub n: u32,
    /// Jobs at most.
    pub jobs: u64,
    /// Time between two jobs.
    pub every: Duration,
}

/// A small job.
pub type Job = Box<dyn FnOnce() + Send>;

impl Config {
    /// Runs `compute`, and meanwhile hands in jobs with `hand_in`.
    pub fn measure(
        &self,
        compute: impl FnOnce(u32) -> u64 + Send,
        hand_in: impl Fn(Job),
    ) -> Sample {
        let waits = Arc::new(Mutex::new(Latencies::new()));
        let ended = AtomicBool::new(false);
        let mut handed_in = 0;
        let time = std::thread::scope(|threads| {
            let computation = threads.spawn(|| {
                let start = Instant::now();
                let value = compute(self.n);
                let time = start.elapsed();
                ended.store(true, Ordering::Release);
                assert_eq!(
                    value,
                    fibonacci(self.n),
                    "the computation's result is wrong"
                );
                time
            });
            // Let it spread to both workers first.
            std::thread::sleep(self.every * 5);
            while handed_in < self.jobs && !ended.load(Ordering::Acquire) {
                let waits = waits.clone();
                let since = Instant::now();
                hand_in(Box::new(move || {
                    let wait = since.elapsed();
                    waits
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .record(wait);
                }));
                handed_in += 1;
                std::thread::sleep(self.every);
            }
            computation.join().expect("the computation does not panic")
        });
        let patience = Instant::now() + Duration::from_secs(10);
        let waits = || waits.lock().unwrap_or_else(PoisonError::into_inner);
        while waits().asked() < handed_in {
            assert!(
                Instant::now() < patience,
                "{} of {handed_in} jobs ran",
                waits().asked()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let sample = Sample::new().with("time_ns", time.as_nanos() as f64);
        match handed_in {
            0 => sample,
            _ => sample.with_all("", &waits().sample("wait_")),
        }
    }
}

fn fibonacci(n: u32) -> u64 {
    let (mut value, mut next) = (0, 1);
    for _ in 0..n {
        (value, next) = (next, value + next);
    }
    debug_assert!(n > 20 || value == serial_fib(n));
    value
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = move |n| Config {
        n: scale.pick(n, n - 14),
        jobs: scale.pick(500, 5),
        every: Duration::from_millis(scale.pick(4, 1)),
    };
    let experiment = Experiment::new(
        "inject",
        "an urgent job from outside while both workers are inside one fork-join computation",
    )
    .table(
        "rayon",
        &[
            "wait_p50_ns",
            "wait_p99_ns",
            "wait_max_ns",
            "wait_count",
            "time_ns",
        ],
    )
    .contender("rayon", move || rayon::run(config(42)))
    .contender("tokio", move || tokio::run(config(32)))
    .bar(Bar::at_most("ours", "wait_p50_ns", 10_000.0))
    .bar(Bar::at_most("ours", "wait_p99_ns", 200_000.0))
    .bar(Bar::times_at_most(
        "ours",
        "time_ns",
        1.02,
        &["ours-undisturbed"],
    ));
    #[cfg(feature = "ours")]
    let experiment = {
        let undisturbed = Config {
            jobs: 0,
            ..config(44)
        };
        experiment
            .contender("ours", move || ours::closures(config(44)))
            .contender("ours-async", move || ours::tasks(config(44)))
            .contender("ours-undisturbed", move || ours::closures(undisturbed))
            .bar(Bar::at_most("ours-async", "wait_p50_ns", 10_000.0))
            .bar(Bar::at_most("ours-async", "wait_p99_ns", 200_000.0))
    };
    vec![experiment]
}
