//! A rayon pool whose leaves block in `read`: latency stalls the thread that waits.

use super::{BASE, Config, N, add, serial_fib, timer};
use crate::engines;
use nix::sys::timerfd::TimerFlags;
use std::ops::Range;
use std::time::Duration;
use urgency_measure::Sample;

/// One sample with `times` threads per worker.
pub fn run(config: Config, times: usize) -> Sample {
    let pool = engines::rayon::pool(config.workers * times);
    let map_reduce = |leaves| pool.install(|| map_reduce(leaves, config.delay));
    config.measure(config.blocking_leaves, map_reduce)
}

fn map_reduce(leaves: Range<u64>, delay: Duration) -> u64 {
    if leaves.end - leaves.start == 1 {
        return leaf(delay);
    }
    let middle = leaves.start.midpoint(leaves.end);
    let (a, b) = rayon::join(
        || map_reduce(leaves.start..middle, delay),
        || map_reduce(middle..leaves.end, delay),
    );
    add(a, b)
}

fn leaf(delay: Duration) -> u64 {
    timer(delay, TimerFlags::empty())
        .wait()
        .expect("a timer can be read");
    fib(N)
}

fn fib(n: u32) -> u64 {
    if n < BASE {
        return serial_fib(n);
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}
