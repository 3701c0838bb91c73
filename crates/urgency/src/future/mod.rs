//! Several futures at once, in one task: the first of them, all of them, all unless one fails.
//!
//! | | two | many |
//! | --- | --- | --- |
//! | the first | [`race`], [`select!`](crate::select) | [`race_all`] |
//! | all | [`zip`], [`join!`](crate::join!) | [`join_all`] |
//! | all, or the first error | [`try_join`], [`try_join!`](crate::try_join!) | [`try_join_all`] |
//!
//! These run in the task that awaits them: at one level, on one worker at a time. To run work in parallel,
//! spawn it and await the handles, or fork it with [`join`](crate::join()).
//!
//! What did not win is dropped, which cancels it; what is not cancel-safe belongs into a task of its own. A
//! future that is kept (`&mut future`) and not polled any more still stands in the queues that it entered:
//! drop it, or go on polling it.
//!
//! *Order*: the functions poll in the order in which their arguments are written; of two that are ready at once the
//! first wins. So the most urgent comes first, a stop signal before the work. The macros begin each poll at another
//! one, unless `biased;` says otherwise.

mod all;
mod both;
mod maybe_done;
mod race;
mod select;

pub use all::{JoinAll, TryJoinAll, join_all, try_join_all};
pub use both::{try_join, zip};
#[doc(hidden)]
pub use maybe_done::MaybeDone;
#[doc(hidden)]
pub use select::random_start;

pub use race::{Either, RaceAll, race, race_all};
