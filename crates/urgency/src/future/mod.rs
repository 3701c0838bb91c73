//! Several futures at once, in one task: the first of them, all of them, all unless one fails.
//!
//! | | two | many |
//! | --- | --- | --- |
//! | the first | [`race`], [`select!`](crate::select) | [`race_all`] |
//! | all | [`zip`] | [`join_all`] |
//! | all, or the first error | [`try_join`] | [`try_join_all`] |
//!
//! These run in the task that awaits them: at one level, on one worker at a time. To run work in parallel,
//! spawn it and await the handles, or fork it with [`join`](crate::join()).
//!
//! What did not win is dropped, which cancels it; what is not cancel-safe belongs into a task of its own. A
//! future that is kept (`&mut future`) and not polled any more still stands in the queues that it entered:
//! drop it, or go on polling it.
//!
//! *Order*: they are polled in the order in which they are written; of two that are ready at once the first
//! wins. So the most urgent comes first, a stop signal before the work.

mod all;
mod race;
mod select;

pub use all::{JoinAll, TryJoinAll, join_all, try_join, try_join_all, zip};
pub use race::{Either, RaceAll, race, race_all};
