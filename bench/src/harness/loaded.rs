//! A contender under load, in its own process: how it is given load, and what is taken from it.
//!
//! [`measure`] is what each contender calls, whichever way it is measured:
//!
//! - *A whole run*: a stretch of load to warm up, then one that counts.
//! - *Slices* (`harness/slices/`): the parent says on standard input when load begins and ends, `<start> <end>` in
//!   nanoseconds of the monotonic clock; when all of it is done the contender answers `drained` and is stopped.
//!   It ends when its input does.
//!
//! Less urgent work is counted only while there is load, so what a contender does while it waits for the parent
//! is nobody's advantage.

use super::Sample;
use super::events::Events;
use super::machine::{self, now_ns};
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
    /// Everything that was logged.
    fn events(self) -> Events;
}

/// How long a whole run is.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Load that does not count.
    pub warm_up: Duration,
    /// Load that counts.
    pub run: Duration,
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

/// Gives `loaded` its load. The sample has what `summarize` says about the events, less urgent work as
/// `units_per_s`, the most threads seen, and memory.
pub fn measure(
    mut loaded: impl Loaded,
    lengths: Lengths,
    summarize: fn(&Events) -> Sample,
) -> Sample {
    let orders = ORDERS.get_or_init(Orders::default);
    let mut meter = Meter::default();
    let start = now_ns() + LEAD.as_nanos() as u64;
    meter.stretch(&mut loaded, start, lengths.warm_up);
    let threads = meter.threads;
    meter = Meter {
        threads,
        ..Meter::default()
    };
    let first = now_ns() + LEAD.as_nanos() as u64;
    if orders.sliced {
        println!("drained");
        for line in std::io::stdin().lock().lines() {
            let line = line.expect("the parent writes text");
            let (start, end) = line.split_once(' ').expect("the parent writes two times");
            let time = |word: &str| word.parse::<u64>().expect("a time is a number");
            let (start, end) = (time(start), time(end));
            meter.stretch(&mut loaded, start, Duration::from_nanos(end - start));
            println!("drained");
        }
    } else {
        meter.stretch(&mut loaded, first, lengths.run);
    }
    let (events, _) = loaded.events().only(|event| event.due >= first);
    if let Some(file) = &orders.events {
        events.write(file).expect("the events can be kept");
    }
    let per_s = meter.units as f64 * 1e9 / meter.nanos as f64;
    summarize(&events)
        .with("units_per_s", per_s)
        .with("threads_peak", meter.threads)
        .with("peak_rss_bytes", machine::peak_rss())
}

/// What is counted over stretches of load.
#[derive(Default)]
struct Meter {
    units: u64,
    nanos: u64,
    threads: f64,
}

impl Meter {
    /// One stretch of load from `start`, until it is drained.
    fn stretch(&mut self, loaded: &mut impl Loaded, start: u64, length: Duration) {
        loaded.open(start, start + length.as_nanos() as u64);
        let (since, units) = (now_ns(), loaded.units());
        loop {
            std::thread::sleep(Duration::from_millis(4));
            self.threads = self.threads.max(machine::threads());
            if loaded.is_drained() {
                break;
            }
        }
        self.units += loaded.units() - units;
        self.nanos += now_ns() - since;
    }
}
