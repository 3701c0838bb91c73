//! `join` of Urgency and of rayon over the halves of the columns.

use super::{Board, Config};
use crate::engines::Join;
use std::ops::Range;
use urgency_measure::Sample;

/// One sample.
pub fn run(engine: impl Join, config: Config) -> Sample {
    engine.run(config.workers, || {
        config.measure(|board| solutions(engine, board))
    })
}

fn solutions(engine: impl Join, board: Board) -> u64 {
    if board.is_complete() {
        return 1;
    }
    among(engine, &board, board.columns())
}

fn among(engine: impl Join, board: &Board, columns: Range<u8>) -> u64 {
    if columns.len() == 1 {
        return board
            .with(columns.start)
            .map_or(0, |board| solutions(engine, board));
    }
    let middle = columns.start.midpoint(columns.end);
    let (a, b) = engine.join(
        || among(engine, board, columns.start..middle),
        || among(engine, board, middle..columns.end),
    );
    a + b
}
