//! All solutions of the 12-queens problem: an irregular tree of small nodes. Every column of every row is a fork of its
//! own (the columns of a row are forked by halving), down to the last row: no cut-off.

mod chili;
mod forks;
mod serial;

use crate::engines::{self, by_workers, fork_join_contenders};
use std::ops::Range;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// The board's size and the number of workers.
#[derive(Clone, Copy)]
pub struct Config {
    /// Rows and columns.
    pub queens: u8,
    /// Workers.
    pub workers: usize,
}

impl Config {
    /// Times `solutions`.
    pub fn measure(&self, mut solutions: impl FnMut(Board) -> u64) -> Sample {
        let expected = match self.queens {
            8 => 92,
            12 => 14_200,
            other => panic!("the number of solutions for {other} queens is not known here"),
        };
        let empty = Board {
            size: self.queens,
            rows: 0,
            columns: [0; 16],
        };
        timing::repeat(3, &expected, || solutions(std::hint::black_box(empty)))
    }
}

/// Queens in the first rows, none of which attacks another.
#[derive(Clone, Copy)]
pub struct Board {
    size: u8,
    rows: u8,
    columns: [u8; 16],
}

impl Board {
    /// Whether all rows have their queen.
    pub fn is_complete(&self) -> bool {
        self.rows == self.size
    }

    /// The columns of a row.
    pub fn columns(&self) -> Range<u8> {
        0..self.size
    }

    /// This board with a queen more, if none attacks it.
    pub fn with(&self, column: u8) -> Option<Board> {
        for (row, &other) in self.columns[..usize::from(self.rows)].iter().enumerate() {
            let distance = self.rows - row as u8;
            if other == column || other.abs_diff(column) == distance {
                return None;
            }
        }
        let mut next = *self;
        next.columns[usize::from(self.rows)] = column;
        next.rows += 1;
        Some(next)
    }
}

/// One experiment per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    by_workers(scale, experiment)
}

fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        queens: scale.pick(12, 8),
        workers,
    };
    let experiment = Experiment::new(
        format!("nqueens-{workers}"),
        format!("nqueens(12), a job per column of each row, {workers} worker(s)"),
    )
    .table("rayon", &["time_ns", "cpu_ns", "peak_rss_bytes"]);
    fork_join_contenders!(experiment, config)
}
