//! Between levels: which priority level a worker serves.
//!
//! There are two sides. The **schedule** ([`Schedule`]) exists once in a runtime, and is asked seldom: when a worker's
//! round ends, or when a quantum is over. It gives each worker a [`Seat`]. The seat is the worker's own, and is asked
//! often, with nothing shared:
//!
//! 1. The worker is free and looks for work: [`LevelPolicy::serve`].
//! 2. The worker runs something and comes to a scheduling point: [`LevelPolicy::abandon_for`].
//!
//! Both get the levels with work as a bitfield (bit `i`: the level of rank `i`, rank 0 is the most
//! urgent). The field is a snapshot, and it may be wrong in both directions by the time the answer is used: a level may
//! turn out to be empty (the worker then clears the level's bit and asks again), and work may have arrived at another
//! level (that level's bit is seen at the next scheduling point).
//!
//! A policy that returns a level without a bit sends the worker to an empty pool, again and again.
//! The contract therefore is: an answer is always a set bit of the argument.
//!
//! Three words of the table are explained in `seat.rs`: the *primary level* of a seat, and that a worker *donates*
//! (serves the most urgent level) or *waits* while its primary level has no work.
//!
//! | schedule | when, and how, a worker is assigned its primary level | a primary level without work |
//! |---|---|---|
//! | [`Prompt`] | never: there is none | |
//! | fairly prompt, [`Rounds`] | each round, by the fairness criterion | donates to the most urgent |
//! | winner takes all, [`WinnerTakeAll`] | each round, the most urgent of two that has work | donates |
//! | adaptive, [`Adaptive`] | each quantum, by utilisation | waits |
//! | fixed shares, [`FixedShares`] | once | waits, or donates |

mod adaptive;
mod advance;
mod criterion;
mod fixed;
mod open;
mod prompt;
mod rounds;
mod schedule;
mod seat;
mod settlement;
mod winner;

pub use adaptive::{Adaptive, AdaptiveError, Parameters, Use};
pub use advance::Advance;
pub use criterion::{Criterion, CriterionError, SCALE};
pub use fixed::FixedShares;
pub use open::{CloneSchedule, LevelSchedule};
pub use prompt::Prompt;
pub use rounds::{ROUND_NANOS, Rounds};
pub use schedule::{Period, Schedule, ScheduleError};
pub use seat::{Otherwise, Seat};
pub use settlement::Settlement;
pub use winner::WinnerTakeAll;

/// Which level a worker serves. The text of the module says more.
pub trait LevelPolicy {
    /// A free worker asks which level to look into, given the levels with work.
    ///
    /// The answer is the rank of a set bit; `None` means that there is nothing to serve and the
    /// worker may sleep. A work-conserving policy returns `None` for 0 only.
    fn serve(&mut self, with_work: u64) -> Option<u8>;

    /// A worker that runs work at the level of rank `current` asks whether to abandon it.
    ///
    /// `None` means to go on. Otherwise the worker puts what it runs into the mugging queue of
    /// `current` and moves to the level of the returned rank, which is a set bit other than
    /// `current`.
    fn abandon_for(&mut self, with_work: u64, current: u8) -> Option<u8>;
}
