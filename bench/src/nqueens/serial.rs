//! The serial program.

use super::{Board, Config};
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.measure(solutions)
}

fn solutions(board: Board) -> u64 {
    if board.is_complete() {
        return 1;
    }
    board
        .columns()
        .filter_map(|column| board.with(column))
        .map(solutions)
        .sum()
}
