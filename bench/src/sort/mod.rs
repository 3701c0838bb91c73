//! Merge sort of 10^7 random `u64`, halves in parallel, and a parallel merge: the longer run is cut in the
//! middle, the other at the same key by binary search, and both parts are merged in parallel. Below 4096
//! elements `sort_unstable` and a serial merge take over.
//!
//! The data go back and forth between the slice and a buffer of the same length, so there are no copies but
//! at the leaves.

mod chili;
pub mod forks;
mod serial;

use crate::engines::{self, by_workers, fork_join_contenders};
use std::time::Instant;
use urgency_measure::rounds::median;
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// From this many elements down, sorting and merging are serial.
pub const GRAIN: usize = 4096;

/// How much to sort, with how many workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Elements.
    pub len: usize,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `sort(data, buffer)`, which leaves `data` sorted.
    pub fn measure(&self, mut sort: impl FnMut(&mut [u64], &mut [u64])) -> Sample {
        let mut random = fastrand::Rng::with_seed(11);
        let input: Vec<u64> = (0..self.len).map(|_| random.u64(..)).collect();
        let sum = |data: &[u64]| data.iter().fold(0u64, |sum, x| sum.wrapping_add(*x));
        let expected = sum(&input);
        let (mut data, mut buffer) = (input.clone(), vec![0; self.len]);
        let mut times = Vec::new();
        for run in 0..4 {
            data.copy_from_slice(&input);
            let start = Instant::now();
            sort(&mut data, &mut buffer);
            if run > 0 {
                times.push(start.elapsed().as_nanos() as f64);
            }
            assert!(
                data.is_sorted() && sum(&data) == expected,
                "not sorted, or not the same elements"
            );
        }
        Sample::new()
            .with("time_ns", median(times).expect("it ran"))
            .with("peak_rss_bytes", machine::peak_rss())
    }
}

/// Sorts serially, into the buffer or in place.
pub fn sort_leaf(data: &mut [u64], buffer: &mut [u64], into_buffer: bool) {
    data.sort_unstable();
    if into_buffer {
        buffer.copy_from_slice(data);
    }
}

/// Merges two sorted runs serially, without a branch on the keys.
pub fn merge_leaf(a: &[u64], b: &[u64], out: &mut [u64]) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        let from_a = x <= y;
        out[i + j] = if from_a { x } else { y };
        i += usize::from(from_a);
        j += usize::from(!from_a);
    }
    let rest = if i < a.len() { &a[i..] } else { &b[j..] };
    out[i + j..].copy_from_slice(rest);
}

/// Two merges that together are the merge of the two sorted runs: (a, b, out) each.
pub type Merge<'a> = (&'a [u64], &'a [u64], &'a mut [u64]);

/// Cuts a merge in two at the middle of the longer run.
pub fn split_merge<'a>(a: &'a [u64], b: &'a [u64], out: &'a mut [u64]) -> (Merge<'a>, Merge<'a>) {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let (long_low, long_high) = long.split_at(long.len() / 2);
    let (short_low, short_high) = short.split_at(short.partition_point(|x| *x < long_high[0]));
    let (low, high) = out.split_at_mut(long_low.len() + short_low.len());
    ((long_low, short_low, low), (long_high, short_high, high))
}

/// One experiment per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    by_workers(scale, experiment)
}

fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        len: scale.pick(10_000_000, 100_000),
        workers,
    };
    let experiment = Experiment::new(
        format!("sort-{workers}"),
        format!("merge sort of 10^7 u64 with parallel merge, to 4096, {workers} worker(s)"),
    )
    .table("rayon", &["time_ns", "peak_rss_bytes"]);
    fork_join_contenders!(experiment, config)
}
