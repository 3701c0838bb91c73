//! What it costs to leave a computation for more urgent work and to come back, on one worker: a closure at
//! the lower level computes; 20,000 times a second it spawns a closure at the higher level, so it is
//! abandoned at once, the urgent closure runs on another stack, and then it is resumed.
//!
//! `hand_off_p50_ns` is from just before the spawn to the urgent closure's first line; `round_trip_p50_ns`
//! until the lower closure goes on. `busy_share` is the share of one core that 20,000 of them a second cost:
//! 1 less the rate of computing with them over the rate without. `late` counts the urgent closures that had
//! not run when the lower closure went on (none, if the runtime is prompt).
//!
//! `ours-bound` is the same with the process bound to one processor, `ours` with all of them (the receiver of
//! a worker may land on an idle processor, and then pays for its wake-up). The contender `threads` is the
//! operating system's floor: two threads bound to one processor that unpark each other.

#[cfg(feature = "ours")]
mod ours;
mod threads;

use std::time::{Duration, Instant};
use urgency_measure::latencies::Latencies;
use urgency_measure::timing::serial_fib;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// How long and how often.
#[derive(Clone, Copy)]
pub struct Config {
    /// Length of a slice of computing, alone or with hand-offs.
    pub slice: Duration,
    /// Slices of each kind, in turn.
    pub slices: u32,
    /// Time between two hand-offs.
    pub every: Duration,
}

/// When an urgent closure started; `None` if it had not when the lower one went on.
pub type Started = Option<Instant>;

impl Config {
    /// Computes in slices, in turn alone and with hand-offs, so that a drift of the clock rate hits both alike.
    pub fn measure(&self, mut hand_off: impl FnMut() -> Started) -> Sample {
        for _ in 0..100 {
            hand_off();
        }
        let (mut there, mut there_and_back) = (Latencies::new(), Latencies::new());
        let mut late = 0;
        let (mut alone, mut disturbed) = (0, 0);
        for _ in 0..self.slices {
            alone += self.units(&mut || ());
            disturbed += self.units(&mut || {
                let start = Instant::now();
                match hand_off() {
                    Some(started) => there.record(started - start),
                    None => late += 1,
                }
                there_and_back.record(start.elapsed());
            });
        }
        Sample::new()
            .with("busy_share", 1.0 - f64::from(disturbed) / f64::from(alone))
            .with("late", f64::from(late))
            .with_all("", &there.sample("hand_off_"))
            .with_all("", &there_and_back.sample("round_trip_"))
    }

    /// Units computed in one slice, with `each` called at its interval.
    fn units(&self, each: &mut dyn FnMut()) -> u32 {
        let start = Instant::now();
        let (mut units, mut next, mut now) = (0, start + self.every, start);
        while now < start + self.slice {
            std::hint::black_box(serial_fib(std::hint::black_box(12)));
            units += 1;
            now = Instant::now();
            if now >= next {
                next += self.every;
                each();
            }
        }
        units
    }
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        slice: Duration::from_millis(20),
        slices: scale.pick(50, 2),
        every: Duration::from_micros(50),
    };
    let experiment = Experiment::new(
        "hand-off",
        "a closure abandoned for a more urgent one 20,000 times a second, 1 worker",
    )
    .table(
        "threads",
        &[
            "hand_off_p50_ns",
            "hand_off_p99_ns",
            "round_trip_p50_ns",
            "busy_share",
            "late",
        ],
    )
    .contender("threads", move || threads::run(config))
    .bar(Bar::at_most("ours", "hand_off_p50_ns", 5_000.0))
    .bar(Bar::times_at_most(
        "ours",
        "hand_off_p50_ns",
        1.5,
        &["threads"],
    ))
    .bar(Bar::at_most("ours", "busy_share", 0.2))
    .bar(Bar::at_most("ours", "late", 0.0));
    #[cfg(feature = "ours")]
    let experiment = experiment
        .contender("ours", move || ours::run(config))
        .contender("ours-bound", move || ours::run_bound(config))
        .bar(Bar::at_most("ours-bound", "hand_off_p50_ns", 5_000.0))
        .bar(Bar::at_most("ours-bound", "busy_share", 0.2));
    vec![experiment]
}
