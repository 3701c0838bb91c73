//! How soon the other worker runs a forked branch, after the main worker has computed serially for a while
//! and the other found nothing to do.
//!
//! Two workers. The main worker spins for the gap, takes the time, and joins two branches: the first spins
//! until the second has started (or [`PATIENCE`] has passed), the second takes the time at once. The wait is
//! from before the fork to the second branch's start. `alone` counts the forks whose second branch no other
//! worker took in time.

#[cfg(feature = "ours")]
mod ours;
mod rayon;

use crate::engines::Join;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use urgency_measure::latencies::Latencies;
use urgency_measure::timing;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// How long the first branch waits for the second to start elsewhere.
const PATIENCE: Duration = Duration::from_millis(20);

/// The gap and how often.
#[derive(Clone, Copy)]
pub struct Config {
    /// Serial work before each fork.
    pub gap: Duration,
    /// Forks.
    pub forks: usize,
}

impl Config {
    /// The distribution of the waits.
    pub fn measure(&self, engine: impl Join) -> Sample {
        let epoch = Instant::now();
        let mut waits = Latencies::new();
        let mut alone = 0;
        for _ in 0..self.forks {
            // Nanoseconds since the epoch at which the second branch started; 0: not yet.
            let started = AtomicU64::new(0);
            timing::spin(self.gap);
            let fork = Instant::now();
            let mut in_time = true;
            engine.join(
                || {
                    while in_time && started.load(Ordering::Acquire) == 0 {
                        std::hint::spin_loop();
                        in_time = fork.elapsed() < PATIENCE;
                    }
                },
                || started.store(epoch.elapsed().as_nanos() as u64, Ordering::Release),
            );
            let start = epoch + Duration::from_nanos(started.into_inner());
            waits.record(start.saturating_duration_since(fork));
            alone += u32::from(!in_time);
        }
        waits.sample("wait_").with("alone", f64::from(alone))
    }
}

/// One experiment per gap.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let gaps = [
        ("5us", 5, 4000),
        ("20us", 20, 4000),
        ("1ms", 1000, 1000),
        ("10ms", 10_000, 200),
    ];
    gaps.map(|(name, gap, forks)| {
        let config = Config {
            gap: Duration::from_micros(gap),
            forks: scale.pick(forks, 10),
        };
        let experiment = Experiment::new(
            format!("start-{name}"),
            format!("from a fork until the other worker runs it, after {name} of serial work"),
        )
        .table(
            "rayon",
            &["wait_p50_ns", "wait_p90_ns", "wait_p99_ns", "alone"],
        )
        .contender("rayon", move || rayon::run(config));
        #[cfg(feature = "ours")]
        let experiment = experiment.contender("ours", move || ours::run(config));
        if gap < 1000 {
            experiment.bar(Bar::at_most("ours", "wait_p50_ns", 1000.0))
        } else {
            experiment.bar(Bar::times_at_most("ours", "wait_p50_ns", 1.0, &["rayon"]))
        }
    })
    .into()
}
