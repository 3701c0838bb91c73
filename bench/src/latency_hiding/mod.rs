//! Latency hiding (Cilk-L, section 6 of the paper): map-reduce over 5000 leaves by binary recursion. Each
//! leaf opens a one-shot timer descriptor with the delay, waits for it, and computes fib(30) in parallel down
//! to a base of 25; the reduction adds up modulo 10^9.
//!
//! Contenders:
//! - `ideal`: our program without timers: nothing to hide;
//! - `ours-async`: leaves are async tasks; `ours-get`: leaves are closures in a fork-join recursion that
//!   block in `get`;
//! - `ours-proactive` and `ours-parsimonious`: `ours-get` under the two ways to steal of the literature, by the orders
//!   of these names. *Proactive* (Cilk-L) suspends the whole deque of a leaf that waits, *parsimonious* (ParWS) only
//!   the leaf;
//! - `blocking`: the usual form, a pool of P threads whose leaves block in `read`; `blocking-2p`: twice as
//!   many threads. These two run [`Config::blocking_leaves`] leaves only, and their time is scaled up: at 100
//!   ms a whole run would take ten minutes, and it is linear in the number of leaves (`leaves` says how many
//!   ran).
//!
//! 7 ms is where Cilk-L's paper has twice the threads break even with hiding. Here that is no break-even: twice the
//! threads fill the processors only while a leaf waits for no longer than it computes, some 1.9 ms.
//!
//! `ours-get` has two bars: 1.1 of `ideal`, which a thread for each leaf that waits has to keep, and 1.02, which is
//! what the other contenders of ours have to keep and is wanted of it as well.
//!
//! `latency-price-<workers>` is what each mechanism costs where there is nothing to hide (the paper's figure 2). Every
//! contender has the one before it and one mechanism more: `ideal`; `future`, a task that is ready is spawned and
//! awaited; `descriptor`, that task also makes, reads and closes a timer that has expired; `event`, it waits for the
//! reactor's word that the timer has expired before it reads.
//!
//! `threads` is the most threads that a look each 20 ms saw, `peak_rss_bytes` the peak of resident memory.

mod blocking;
#[cfg(feature = "ours")]
mod ours;

use crate::engines::WORKERS;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use urgency_measure::{Bar, Experiment, Sample, Scale, machine, timing};

/// The argument of fib at each leaf.
pub const N: u32 = 30;
/// Below this argument fib is serial.
pub const BASE: u32 = 25;
const MODULUS: u64 = 1_000_000_000;
const FIB_30: u64 = 832_040;

/// Leaves, their delay, and the number of workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Leaves of the whole program.
    pub leaves: u64,
    /// Leaves that the blocking contenders run.
    pub blocking_leaves: u64,
    /// Delay of each timer.
    pub delay: Duration,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `map_reduce` over `leaves` leaves; the time is scaled up to all of them.
    pub fn measure(&self, leaves: u64, map_reduce: impl FnOnce(Range<u64>) -> u64) -> Sample {
        machine::allow_descriptors(leaves + 64).expect("there are descriptors");
        let cpu = machine::cpu_time();
        let start = Instant::now();
        let (result, threads) = watching_threads(|| map_reduce(0..leaves));
        let time = start.elapsed().as_nanos() as f64;
        let cpu = (machine::cpu_time() - cpu).as_nanos() as f64;
        assert_eq!(result, leaves * FIB_30 % MODULUS, "wrong sum");
        let scale = self.leaves as f64 / leaves as f64;
        Sample::new()
            .with("time_ns", time * scale)
            .with("cpu_ns", cpu * scale)
            .with("leaves", leaves as f64)
            .with("threads", threads)
            .with("peak_rss_bytes", machine::peak_rss())
    }
}

/// A one-shot timer descriptor that expires after `delay`.
pub fn timer(delay: Duration, flags: TimerFlags) -> TimerFd {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags | TimerFlags::TFD_CLOEXEC)
        .expect("a timer descriptor: the limit was raised");
    let expiration = Expiration::OneShot(TimeSpec::from_duration(delay));
    timer
        .set(expiration, TimerSetTimeFlags::empty())
        .expect("a one-shot timer can be set");
    timer
}

/// Adds two partial results.
pub fn add(a: u64, b: u64) -> u64 {
    (a + b) % MODULUS
}

/// Serial below the base.
pub fn serial_fib(n: u32) -> u64 {
    timing::serial_fib(std::hint::black_box(n))
}

/// Runs `work` while a thread of its own looks at the number of this process's threads each 20 ms; returns
/// the most that it saw, without itself.
fn watching_threads<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let (done, watch) = mpsc::channel::<()>();
    std::thread::scope(|threads| {
        let watcher = threads.spawn(move || {
            let mut most = machine::threads();
            while watch.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                most = most.max(machine::threads());
            }
            most - 1.0
        });
        let result = work();
        drop(done);
        (result, watcher.join().expect("looking does not panic"))
    })
}

/// One experiment per delay and number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let delays = [1, 7, 50, 100].into_iter();
    let all = delays.flat_map(|delay| WORKERS.map(|workers| (delay, workers)));
    let all = all.map(|(delay, workers)| experiment(scale, delay, workers));
    #[cfg(feature = "ours")]
    let all = all.chain(WORKERS.map(|workers| price(scale, workers)));
    all.collect()
}

#[cfg(feature = "ours")]
fn price(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        leaves: scale.pick(5000, 40),
        blocking_leaves: 0,
        delay: Duration::from_nanos(1),
        workers,
    };
    Experiment::new(
        format!("latency-price-{workers}"),
        format!("what each mechanism costs 5000 leaves of fib(30), {workers} worker(s)"),
    )
    .table("ideal", &["time_ns", "cpu_ns", "threads"])
    .contender("ideal", move || ours::ideal(config))
    .contender("future", move || ours::future(config))
    .contender("descriptor", move || ours::descriptor(config))
    .contender("event", move || ours::event(config))
    .bar(Bar::times_at_most("event", "time_ns", 1.02, &["ideal"]))
}

fn experiment(scale: Scale, delay: u64, workers: usize) -> Experiment {
    let config = Config {
        leaves: scale.pick(5000, 40),
        blocking_leaves: scale.pick(100, 4),
        delay: Duration::from_millis(delay),
        workers,
    };
    let experiment = Experiment::new(
        format!("latency-{delay}ms-{workers}"),
        format!("map-reduce over 5000 timers of {delay} ms, fib(30) each, {workers} worker(s)"),
    )
    .table(
        "ideal",
        &["time_ns", "cpu_ns", "threads", "peak_rss_bytes", "leaves"],
    )
    .contender("blocking", move || blocking::run(config, 1))
    .contender("blocking-2p", move || blocking::run(config, 2))
    .bar(Bar::times_at_most(
        "ours-async",
        "time_ns",
        1.02,
        &["ideal"],
    ))
    .bar(Bar::times_at_most("ours-get", "time_ns", 1.1, &["ideal"]))
    .bar(Bar::times_at_most("ours-get", "time_ns", 1.02, &["ideal"]));
    #[cfg(feature = "ours")]
    let experiment = experiment
        .contender("ideal", move || ours::ideal(config))
        .contender("ours-async", move || ours::tasks(config))
        .contender("ours-get", move || ours::closures(config, "aging"))
        .contender("ours-proactive", move || {
            ours::closures(config, "proactive")
        })
        .contender("ours-parsimonious", move || {
            ours::closures(config, "parsimonious")
        });
    experiment
}
