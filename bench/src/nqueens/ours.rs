//! `urgency::join` over the halves of the columns.

use super::{Board, Config};
use crate::engines;
use std::ops::Range;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::ours::run(config.workers, || config.measure(solutions))
}

fn solutions(board: Board) -> u64 {
    if board.is_complete() {
        return 1;
    }
    among(&board, board.columns())
}

fn among(board: &Board, columns: Range<u8>) -> u64 {
    if columns.len() == 1 {
        return board.with(columns.start).map_or(0, solutions);
    }
    let middle = columns.start.midpoint(columns.end);
    let (a, b) = urgency::join(
        || among(board, columns.start..middle),
        || among(board, middle..columns.end),
    );
    a + b
}
