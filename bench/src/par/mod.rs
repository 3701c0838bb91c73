//! Loops without a cut-off: `urgency::par` beside rayon's parallel iterators and the sequential loop.
//!
//! - `map`: 10^7 numbers to 10^7 numbers, a few nanoseconds each: memory and overhead.
//! - `reduce`: the sum of a few nanoseconds of arithmetic over a range.
//! - `skewed`: items whose work grows with their index, so that an even split is bad.
//! - `tiny`: 1000 loops of 1000 items each, one after the other: what a short loop costs.
//! - `sort`: 2 * 10^6 random `u64`, stably.

#[cfg(feature = "ours")]
mod ours;
mod rayon;
mod serial;

use crate::engines::WORKERS;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// Which loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A result for each number.
    Map,
    /// A sum.
    Reduce,
    /// A sum of uneven parts.
    Skewed,
    /// Many short sums.
    Tiny,
    /// A sorted slice.
    Sort,
}

/// Which loop, how long, with how many workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Which loop.
    pub shape: Shape,
    /// Items.
    pub len: u64,
    /// Workers.
    pub workers: usize,
}

/// The loops, as one contender has them.
pub trait Loops {
    /// `work` of each number below `len`.
    fn map(len: u64) -> Vec<u64>;
    /// The sum of `work` of each number below `len`.
    fn reduce(len: u64) -> u64;
    /// The sum of `uneven` of each number below `len`.
    fn skewed(len: u64) -> u64;
    /// Sorts stably.
    fn sort(numbers: &mut [u64]);
}

/// A few nanoseconds.
pub fn work(n: u64) -> u64 {
    (n ^ (n >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
}

/// Work that grows with `n`.
pub fn uneven(n: u64) -> u64 {
    (0..n / 16).fold(n, |sum, n| work(sum ^ n))
}

impl Config {
    /// Times the loop of `L`.
    pub fn measure<L: Loops>(&self) -> Sample {
        let len = std::hint::black_box(self.len);
        let digest = |numbers: &[u64]| numbers.iter().fold(0, |sum: u64, n| work(sum ^ n));
        match self.shape {
            Shape::Map => {
                let expected = (0..len).map(work).fold(0, |sum: u64, n| work(sum ^ n));
                assert_eq!(digest(&L::map(len)), expected);
                timing::repeat(11, &(len as usize), || L::map(len).len())
            }
            Shape::Reduce => {
                let expected = (0..len).map(work).fold(0, u64::wrapping_add);
                timing::repeat(11, &expected, || L::reduce(len))
            }
            Shape::Skewed => {
                let expected = (0..len).map(uneven).fold(0, u64::wrapping_add);
                timing::repeat(11, &expected, || L::skewed(len))
            }
            Shape::Tiny => {
                let expected = (0..1000).map(work).fold(0, u64::wrapping_add);
                timing::repeat(11, &expected, || {
                    let sums = (0..len).map(|_| L::reduce(std::hint::black_box(1000)));
                    sums.fold(0, |_, sum| sum)
                })
            }
            Shape::Sort => {
                let mut random = fastrand::Rng::with_seed(11);
                let input: Vec<u64> = (0..len).map(|_| random.u64(..)).collect();
                let mut expected = input.clone();
                expected.sort();
                let expected = digest(&expected);
                let sort = |mut numbers: Vec<u64>| {
                    L::sort(&mut numbers);
                    numbers
                };
                let verify = |sorted: Vec<u64>| {
                    assert_eq!(digest(&sorted), expected, "wrong result");
                };
                timing::repeat_on(5, || input.clone(), sort, verify)
            }
        }
    }
}

/// One experiment per loop and number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let shapes = [
        ("map", Shape::Map, 10_000_000),
        ("reduce", Shape::Reduce, 20_000_000),
        ("skewed", Shape::Skewed, 6_000),
        ("tiny", Shape::Tiny, 1_000),
        ("sort", Shape::Sort, 2_000_000),
    ];
    let all = shapes
        .into_iter()
        .flat_map(|shape| WORKERS.map(|workers| (shape, workers)));
    all.map(|((name, shape, len), workers)| {
        let len = scale.pick(len, len / 20);
        let config = Config {
            shape,
            len,
            workers,
        };
        let experiment = Experiment::new(
            format!("par-{name}-{workers}"),
            format!("the loop `{name}` without a cut-off, {workers} worker(s)"),
        )
        .table("rayon", &["time_ns", "cpu_ns", "peak_rss_bytes"])
        .contender("serial", move || config.measure::<serial::Serial>())
        .contender("rayon", move || rayon::run(config))
        .bar(Bar::times_at_most("ours", "time_ns", 1.1, &["rayon"]));
        #[cfg(feature = "ours")]
        let experiment = experiment.contender("ours", move || ours::run(config));
        experiment
    })
    .collect()
}
