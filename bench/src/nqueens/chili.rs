//! `Scope::join_with_heartbeat_every::<1>` over the halves of the columns.

use super::{Board, Config};
use crate::engines;
use chili::Scope;
use std::ops::Range;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::chili::pool(config.workers);
    let mut scope = pool.scope();
    config.measure(|board| solutions(&mut scope, board))
}

fn solutions(scope: &mut Scope<'_>, board: Board) -> u64 {
    if board.is_complete() {
        return 1;
    }
    among(scope, &board, board.columns())
}

fn among(scope: &mut Scope<'_>, board: &Board, columns: Range<u8>) -> u64 {
    if columns.len() == 1 {
        return board
            .with(columns.start)
            .map_or(0, |board| solutions(scope, board));
    }
    let middle = columns.start.midpoint(columns.end);
    let (a, b) = scope.join_with_heartbeat_every::<1, _, _, _, _>(
        |scope| among(scope, board, columns.start..middle),
        |scope| among(scope, board, middle..columns.end),
    );
    a + b
}
