//! A contender under load, in its own process: how it is given load, and what is taken from it.
//!
//! [`measure`] is what each contender calls, whichever way it is measured:
//!
//! - *A whole run*: a stretch of load to warm up, then one that counts.
//! - *Slices* (`slices/`): the parent says on standard input when load begins and ends, `<start> <end>` in
//!   nanoseconds of the monotonic clock; when all of it is done the contender answers `drained` and is stopped.
//!   It ends when its input does.
//!
//! Less urgent work is counted only while there is load, so what a contender does while it waits for the parent
//! is nobody's advantage. What is left of the load when it ends is done by the slower contender later, in a stretch
//! that is longer by that: it would be counted over more time with the same load. So each stretch is counted until
//! [`Lengths::after`] the end of its load at least.

use crate::child;
use crate::events::Events;
use crate::machine::{self, now_ns};
use crate::sample::Sample;
use std::fs::File;
use std::io::BufRead as _;
use std::sync::OnceLock;
use std::time::Duration;

/// Load that can be opened and drained.
pub trait Loaded {
    /// Lets load come from `start` until before `end`, in nanoseconds of the monotonic clock.
    fn open(&mut self, start: u64, end: u64);
    /// Whether all of it is done.
    fn is_drained(&mut self) -> bool;
    /// Units of less urgent work done so far.
    fn units(&self) -> u64;
    /// Threads of this process that give the load and are no part of the contender.
    fn foreign_threads(&self) -> f64 {
        0.0
    }
    /// Everything that was logged, and what else is to be said.
    fn events(self) -> (Events, Sample);
}

/// How long a whole run is.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Load that does not count.
    pub warm_up: Duration,
    /// Load that counts.
    pub run: Duration,
    /// Time without load before and after it, to learn how much less urgent work there is then; in slices a tenth of it
    /// after each.
    pub alone: Duration,
    /// For how long after the end of load less urgent work still counts, so that it counts over the same time for all
    /// contenders: longer than what any of them has left to do then.
    pub after: Duration,
}

/// What the parent asks of this process, if there is one.
#[derive(Debug, Default)]
pub struct Orders {
    /// Whether it is driven by slices.
    pub sliced: bool,
    /// Where the events go; open before a contender gives up privileges.
    pub events: Option<File>,
}

/// The orders of this process.
pub static ORDERS: OnceLock<Orders> = OnceLock::new();

/// From the order to the first tick or request.
const LEAD: Duration = Duration::from_millis(10);

/// Gives `loaded` its load. The sample has what `summarize` says about the events; less urgent work as
/// `units_per_s`, and `compute_share`, the same over its rate without load; processor time under load per
/// event as `cpu_ns`; the most threads of the contender that were seen, and memory.
pub fn measure(
    mut loaded: impl Loaded,
    lengths: Lengths,
    summarize: fn(&Events) -> Sample,
) -> Sample {
    let orders = ORDERS.get_or_init(Orders::default);
    let soon = || now_ns() + LEAD.as_nanos() as u64;
    Meter::default().stretch(&mut loaded, soon(), lengths.warm_up, Duration::ZERO);
    let mut meter = Meter::default();
    let first = now_ns();
    if orders.sliced {
        child::say_line("drained");
        for line in std::io::stdin().lock().lines() {
            let line = line.expect("the parent writes text");
            let (start, end) = line.split_once(' ').expect("the parent writes two times");
            let time = |word: &str| word.parse::<u64>().expect("a time is a number");
            let (start, end) = (time(start), time(end));
            let length = Duration::from_nanos(end - start);
            meter.stretch(&mut loaded, start, length, lengths.after);
            meter.alone(&mut loaded, lengths.alone / 10);
            child::say_line("drained");
        }
    } else {
        meter.alone(&mut loaded, lengths.alone);
        meter.stretch(&mut loaded, soon(), lengths.run, lengths.after);
        meter.alone(&mut loaded, lengths.alone);
    }
    let units = loaded.units();
    let (events, more) = loaded.events();
    let (events, _) = events.only(|event| event.due >= first);
    if let Some(file) = &orders.events {
        events.write(file).expect("the events can be kept");
    }
    let sample = summarize(&events)
        .with_all("", &more)
        .with("units_per_s", meter.loaded.per_s())
        .with(
            "cpu_ns",
            meter.loaded.cpu.as_nanos() as f64 / events.len().max(1) as f64,
        )
        .with("threads_peak", meter.threads)
        .with("peak_rss_bytes", machine::peak_rss());
    if units == 0 || meter.alone.nanos == 0 {
        return sample;
    }
    sample.with("compute_share", meter.loaded.per_s() / meter.alone.per_s())
}

/// Units of work, and processor time, in a time.
#[derive(Default)]
struct Rate {
    units: u64,
    cpu: Duration,
    nanos: u64,
}

impl Rate {
    fn per_s(&self) -> f64 {
        self.units as f64 * 1e9 / self.nanos.max(1) as f64
    }

    /// Adds what is done while `wait` lasts.
    fn add<L: Loaded>(&mut self, loaded: &mut L, wait: impl FnOnce(&mut L)) {
        let (since, units, cpu) = (now_ns(), loaded.units(), machine::cpu_time());
        wait(loaded);
        self.cpu += machine::cpu_time() - cpu;
        self.units += loaded.units() - units;
        self.nanos += now_ns() - since;
    }
}

/// What is counted over stretches of load.
#[derive(Default)]
struct Meter {
    loaded: Rate,
    alone: Rate,
    threads: f64,
}

impl Meter {
    /// One stretch of load from `start`, until it is drained, and `after` is over.
    fn stretch(&mut self, loaded: &mut impl Loaded, start: u64, length: Duration, after: Duration) {
        let end = start + length.as_nanos() as u64;
        let counted = end + after.as_nanos() as u64;
        loaded.open(start, end);
        std::thread::sleep(machine::until(start));
        let threads = &mut self.threads;
        self.loaded.add(loaded, |loaded| {
            loop {
                std::thread::sleep(Duration::from_millis(4));
                *threads = threads.max(machine::threads() - loaded.foreign_threads());
                if loaded.is_drained() && now_ns() >= counted {
                    return;
                }
            }
        });
    }

    /// A time without load.
    fn alone(&mut self, loaded: &mut impl Loaded, length: Duration) {
        if !length.is_zero() {
            self.alone.add(loaded, |_| std::thread::sleep(length));
        }
    }
}
