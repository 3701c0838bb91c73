//! The schedule: one value that gives each worker its seat.
//!
//! The *mechanism*, which is the runtime or the simulator, keeps time and calls:
//!
//! 1. at the start: [`Schedule::check`], [`Schedule::period`] and [`Schedule::is_work_conserving`], then
//!    [`Schedule::seat`] for each worker;
//! 2. in rounds ([`Period::EachWorker`]), several times in each: [`Schedule::move_time`] for time that a worker ran
//!    another level than its round's, and [`Schedule::settle`] once, both through
//!    [`Settlement`](super::Settlement);
//! 3. when the round of one worker is over: [`Schedule::charge`] for that round, then [`Schedule::seat`];
//! 4. when a quantum is over ([`Period::AllWorkers`]): [`Schedule::reallocate`].
//!
//! [`Period::Never`] with [`Seat::PROMPT`], the default, needs none of this: a mechanism may leave it out.
//!
//! A further built-in schedule is a variant of [`Schedule`] with a line in `inner` and in `inner_mut`, and a name in
//! `urgency-sim/src/command/options.rs`. Other places ask which variant there is: `set_criterion` of the runtime
//! (`sched/share/seats.rs`) changes fair rounds where they stand and replaces any other schedule; the simulator's
//! `engine/` settles for fair rounds and for schedules of a program's own only (`rounds.rs`), and asks the adaptive one
//! for its number of levels (`mod.rs`, `seats.rs`); its `bounds/response.rs` is about fair rounds.

use super::{
    Adaptive, Criterion, FixedShares, LevelSchedule, Prompt, Rounds, Seat, Use, WinnerTakeAll,
};
use alloc::boxed::Box;
use core::fmt;

/// How a runtime shares its workers between levels.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Schedule {
    /// The most urgent level that has work; see [`Prompt`](super::Prompt).
    #[default]
    Prompt,
    /// By a fairness criterion; see [`Rounds`].
    FairlyPrompt(Rounds),
    /// Two levels, the urgent one first, in rounds; see [`WinnerTakeAll`].
    WinnerTakeAll(WinnerTakeAll),
    /// By utilisation; see [`Adaptive`].
    Adaptive(Adaptive),
    /// Each worker belongs to a level; see [`FixedShares`].
    Fixed(FixedShares),
    /// Any other; see [`LevelSchedule`] and [`Schedule::own`].
    Own(Box<dyn LevelSchedule>),
}

macro_rules! from {
    ($($variant:ident of $given:ident),*) => {$(
        impl From<$given> for Schedule {
            fn from(given: $given) -> Self {
                Schedule::$variant(given)
            }
        }
    )*};
}
from!(FairlyPrompt of Rounds, WinnerTakeAll of WinnerTakeAll, Adaptive of Adaptive, Fixed of FixedShares);

impl From<Criterion> for Schedule {
    /// Rounds under this criterion.
    fn from(criterion: Criterion) -> Self {
        Schedule::FairlyPrompt(Rounds::new(criterion))
    }
}

/// Why a schedule does not fit a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// It is for another number of levels.
    LevelCount {
        /// How many it is for.
        schedule: usize,
        /// How many there are.
        levels: usize,
    },
    /// It names another number of workers.
    WorkerCount {
        /// How many it names.
        schedule: usize,
        /// How many there are.
        workers: usize,
    },
    /// A schedule's own reason.
    Own(&'static str),
    /// Code of a policy asked for another schedule, inside of one of the policy's own methods.
    Deciding,
    /// No worker would ever serve the level of this rank.
    Unserved {
        /// The rank.
        rank: usize,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LevelCount { schedule, levels } => write!(
                f,
                "a schedule for {schedule} levels was given to {levels} level(s): it needs one entry for each \
                 level, the most urgent first"
            ),
            Self::WorkerCount { schedule, workers } => write!(
                f,
                "a schedule names {schedule} workers, and there are {workers}: name each worker once"
            ),
            Self::Own(reason) => f.write_str(reason),
            Self::Deciding => f.write_str(
                "a policy asked for another schedule inside of one of its own methods, and the answer would have to \
                 wait for that call; let a task or another thread ask",
            ),
            Self::Unserved { rank } => write!(
                f,
                "no worker would ever serve level {rank}: give it a share and at least one worker, or let the \
                 others donate (`Otherwise::Donate`)"
            ),
        }
    }
}

impl core::error::Error for ScheduleError {}

/// When the schedule is to be asked again. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Never: a seat is for good.
    Never,
    /// For each worker by itself, so long after it got its seat.
    EachWorker(u64),
    /// For all workers at once, so long after the last time.
    AllWorkers(u64),
}

impl Schedule {
    /// A schedule of your own.
    pub fn own(schedule: impl LevelSchedule + 'static) -> Self {
        Schedule::Own(Box::new(schedule))
    }

    fn inner(&self) -> &dyn LevelSchedule {
        match self {
            Schedule::Prompt => &Prompt,
            Schedule::FairlyPrompt(rounds) => rounds,
            Schedule::WinnerTakeAll(winner) => winner,
            Schedule::Adaptive(adaptive) => adaptive,
            Schedule::Fixed(fixed) => fixed,
            Schedule::Own(own) => &**own,
        }
    }

    /// `None` for prompt, which has nothing to change.
    fn inner_mut(&mut self) -> Option<&mut dyn LevelSchedule> {
        Some(match self {
            Schedule::Prompt => return None,
            Schedule::FairlyPrompt(rounds) => rounds,
            Schedule::WinnerTakeAll(winner) => winner,
            Schedule::Adaptive(adaptive) => adaptive,
            Schedule::Fixed(fixed) => fixed,
            Schedule::Own(own) => &mut **own,
        })
    }

    /// Whether it can share so many workers between so many levels.
    ///
    /// # Errors
    ///
    /// If it is for another number of levels or workers, or if a level would never be served.
    pub fn check(&self, levels: usize, workers: usize) -> Result<(), ScheduleError> {
        self.inner().check(levels, workers)
    }

    /// When it is to be asked again.
    pub fn period(&self) -> Period {
        self.inner().period()
    }

    /// A seat for `worker` of `workers`, which starts, or whose round is over, while these levels have
    /// work.
    pub fn seat(&mut self, worker: usize, workers: usize, with_work: u64) -> Seat {
        let inner = self.inner_mut();
        inner.map_or(Seat::PROMPT, |inner| inner.seat(worker, workers, with_work))
    }

    /// The round of a worker in this seat is over, and the worker ran for so many nanoseconds in it. Comes before the
    /// call of [`seat`](Self::seat) for the next one.
    pub fn charge(&mut self, seat: Seat, nanos: u64) {
        if let Some(inner) = self.inner_mut() {
            inner.charge(seat, nanos);
        }
    }

    /// Each level ran so many nanoseconds since the last call, by rank. Returns the levels that are ahead, as
    /// a bitfield, for [`Seat::with_ahead`]; see [`Advance`](super::Advance). None are under a schedule
    /// without shares.
    pub fn settle(&mut self, ran: &[u64]) -> u64 {
        self.inner_mut().map_or(0, |inner| inner.settle(ran))
    }

    /// The level of rank `ran` ran for so many nanoseconds in a round of the level of rank `primary`, which had work.
    pub fn move_time(&mut self, ran: u8, primary: u8, nanos: u64) {
        if let Some(inner) = self.inner_mut() {
            inner.move_time(ran, primary, nanos);
        }
    }

    /// A quantum is over; `used` says by rank what each level did in it. Nothing happens under a schedule
    /// without quanta.
    pub fn reallocate(&mut self, used: &[Use], seats: &mut [Seat]) {
        if let Some(inner) = self.inner_mut() {
            inner.reallocate(used, seats);
        }
    }

    /// Whether a worker is busy while any level has work: not if a seat may wait.
    pub fn is_work_conserving(&self) -> bool {
        self.inner().is_work_conserving()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};
    use alloc::{string::ToString, vec, vec::Vec};

    #[test]
    fn the_default_is_prompt_and_is_never_asked_again() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.period(), Period::Never);
        assert_eq!(schedule.seat(3, 8, 0b11), Seat::PROMPT);
    }

    #[test]
    fn under_fair_rounds_the_seats_of_all_workers_have_the_shares_together() {
        let criterion = Criterion::from_shares(&[0.5, 0.25, 0.25]).unwrap();
        let mut schedule = Schedule::FairlyPrompt(Rounds::new(criterion));
        let seats: Vec<Seat> = (0..8).map(|w| schedule.seat(w, 8, 0)).collect();
        let count = |rank| seats.iter().filter(|s| s.primary() == Some(rank)).count();
        assert_eq!((count(0), count(1), count(2)), (4, 2, 2));
    }

    #[test]
    fn a_schedule_that_does_not_fit_says_what_is_wrong() {
        let fixed = |workers: &[usize], otherwise| {
            Schedule::from(FixedShares::of_workers(workers, otherwise))
        };
        let stages = fixed(&[1, 0, 2], Otherwise::Wait);
        assert_eq!(stages.check(3, 3), Err(ScheduleError::Unserved { rank: 1 }));
        assert_eq!(fixed(&[1, 0, 2], Otherwise::Donate).check(3, 3), Ok(()));
        assert!(
            fixed(&[usize::MAX, 2], Otherwise::Wait)
                .check(2, 1)
                .is_err()
        );
        assert!(
            stages
                .check(3, 4)
                .unwrap_err()
                .to_string()
                .contains("3 workers")
        );
        assert_eq!(
            Schedule::from(WinnerTakeAll::default()).check(3, 1),
            Err(ScheduleError::LevelCount {
                schedule: 2,
                levels: 3
            })
        );
        assert_eq!(Schedule::Prompt.check(64, 1), Ok(()));
    }

    #[test]
    fn a_quantum_is_no_business_of_schedules_without_one() {
        let mut seats = vec![Seat::at(1, Otherwise::Wait); 2];
        Schedule::Prompt.reallocate(&[], &mut seats);
        assert_eq!(seats, [Seat::at(1, Otherwise::Wait); 2]);
    }
}
