//! 1024 x 1024 matrices of `f64`, multiplied by divide and conquer down to 32 x 32: eight products of
//! quadrants, four and then four in parallel.
//!
//! The matrices are stored quadrant by quadrant (Z-order), blocks of 32 x 32 by rows. So a quadrant is a
//! contiguous quarter of the slice, and `split_at_mut` proves that the four products write to different
//! places; no unsafe code and no copy.
//!
//! The entries are small integers, so all sums are exact, and the product is verified by Freivalds' check: (A
//! B) x = A (B x).

mod chili;
mod forks;
pub mod matrix;
pub mod serial;

use crate::engines::{self, by_workers, fork_join_contenders};
pub use matrix::{BLOCK, multiply_block, quarters, quarters_mut};
use std::time::Instant;
use urgency_measure::rounds::median;
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// The matrices' size and the number of workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Rows and columns, a power of two.
    pub size: usize,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `multiply(c, a, b)`, which adds the product of `a` and `b` to `c`.
    pub fn measure(&self, mut multiply: impl FnMut(&mut [f64], &[f64], &[f64])) -> Sample {
        let a = matrix::filled(self.size, |row, column| ((row * 7 + column * 3) % 8) as f64);
        let b = matrix::filled(self.size, |row, column| {
            ((row * 5 + column) % 9) as f64 - 4.0
        });
        let mut c = vec![0.0; self.size * self.size];
        let mut times = Vec::new();
        for run in 0..4 {
            c.fill(0.0);
            let start = Instant::now();
            multiply(&mut c, &a, &b);
            if run > 0 {
                times.push(start.elapsed().as_nanos() as f64);
            }
            assert!(matrix::is_product(self.size, &c, &a, &b), "wrong product");
        }
        Sample::new()
            .with("time_ns", median(times).expect("it ran"))
            .with("peak_rss_bytes", machine::peak_rss())
    }
}

/// One experiment per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    by_workers(scale, experiment)
}

fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        size: scale.pick(1024, 128),
        workers,
    };
    let experiment = Experiment::new(
        format!("matmul-{workers}"),
        format!("1024 x 1024 f64 matrix product by divide and conquer to 32, {workers} worker(s)"),
    )
    .table("rayon", &["time_ns", "peak_rss_bytes"]);
    fork_join_contenders!(experiment, config)
}
