//! What it costs to be called rarely: 1000 small parallel calls (two branches of about 20 us), one each
//! millisecond, in CPU time of the whole process. About 40 ms of it are the work itself, the same amount for
//! all; the rest is waking up, looking for work and going back to sleep.
//!
//! *tick-inside*: the loop runs on a worker and sleeps there. *tick-outside*: a plain thread calls in each
//! time, as a game's or an audio program's main loop would.

#[cfg(feature = "ours")]
mod ours;
mod rayon;

use crate::engines::Join;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use urgency_measure::timing;
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// How many calls.
#[derive(Clone, Copy)]
pub struct Config {
    /// Calls, one each millisecond.
    pub calls: u32,
}

impl Config {
    /// CPU time of all calls, each made by `call`, which runs the given closure where `engine` can fork.
    pub fn measure<J: Join>(&self, engine: J, call: impl Fn(&(dyn Fn() + Sync))) -> Sample {
        let done = AtomicU32::new(0);
        let branch = || {
            timing::compute(2);
            done.fetch_add(1, Ordering::Relaxed);
        };
        let both = || {
            engine.join(branch, branch);
        };
        call(&both);
        done.store(0, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        let (start, cpu) = (Instant::now(), machine::cpu_time());
        let mut busy = Duration::ZERO;
        for index in 0..self.calls {
            let next = start + Duration::from_millis(u64::from(index));
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let begin = Instant::now();
            call(&both);
            busy += begin.elapsed();
        }
        let cpu = machine::cpu_time() - cpu;
        assert_eq!(
            done.into_inner(),
            2 * self.calls,
            "a branch was lost or ran twice"
        );
        Sample::new()
            .with("cpu_ns", cpu.as_nanos() as f64)
            .with("call_ns", busy.as_nanos() as f64 / f64::from(self.calls))
    }
}

/// Both places.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        calls: scale.pick(1000, 20),
    };
    let columns = ["cpu_ns", "call_ns"];
    let bar = || Bar::times_at_most("ours", "cpu_ns", 0.5, &["rayon"]);
    let inside = Experiment::new(
        "tick-inside",
        "CPU of 1000 small parallel calls, one each millisecond, by a worker",
    )
    .table("rayon", &columns)
    .contender("rayon", move || rayon::inside(config))
    .bar(bar());
    let outside = Experiment::new(
        "tick-outside",
        "CPU of 1000 small parallel calls, one each millisecond, by a plain thread",
    )
    .table("rayon", &columns)
    .contender("rayon", move || rayon::outside(config))
    .bar(bar());
    #[cfg(feature = "ours")]
    let inside = inside.contender("ours", move || ours::inside(config));
    #[cfg(feature = "ours")]
    let outside = outside.contender("ours", move || ours::outside(config));
    vec![inside, outside]
}
