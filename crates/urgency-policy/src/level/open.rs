//! Schedules as values: the trait [`LevelSchedule`], and any implementation of it behind
//! [`Schedule`](super::Schedule).

use super::{
    Adaptive, FixedShares, Period, Prompt, Rounds, ScheduleError, Seat, Use, WinnerTakeAll,
};
use alloc::boxed::Box;
use core::fmt;

/// How a runtime shares its workers between levels.
///
/// A worker's side is its [`Seat`], a word that the runtime reads at each scheduling point. So a schedule of your own
/// decides about seats: which level a worker serves first, for how long, and what it does while that has no work.
/// A runtime asks it under a lock. So a wait or a fork inside of its methods panics, and another schedule is refused
/// there ([`ScheduleError::Deciding`](super::ScheduleError::Deciding)); what it spawns runs. A runtime does not ask a
/// schedule again that has panicked: its workers are prompt from then on.
///
/// ```
/// use urgency_policy::level::{LevelSchedule, Otherwise, Period, Schedule, Seat};
///
/// /// Half of the workers serve level 0 first, the others level 1; they change places every 10 ms.
/// #[derive(Clone, Debug, Default)]
/// struct ChangePlaces {
///     rounds: usize,
/// }
///
/// impl LevelSchedule for ChangePlaces {
///     fn period(&self) -> Period {
///         Period::EachWorker(10_000_000)
///     }
///
///     fn seat(&mut self, worker: usize, workers: usize, _with_work: u64) -> Seat {
///         self.rounds += 1;
///         let level = (worker + self.rounds / workers) % 2;
///         Seat::at(level as u8, Otherwise::Donate)
///     }
/// }
///
/// let mut schedule = Schedule::own(ChangePlaces::default());
/// schedule.check(2, 2)?;
/// let seat = schedule.seat(0, 2, 0b11);
/// assert_eq!(seat.primary(), Some(0));
/// // What the runtime or the simulator says later: how long the worker ran in that round, and that level 1 had a part.
/// schedule.charge(seat, 10_000_000);
/// schedule.move_time(1, 0, 3_000_000);
/// assert_eq!(schedule.settle(&[7_000_000, 3_000_000]), 0, "no level is ever ahead under this one");
/// schedule.reallocate(&[], &mut []); // nothing: it has rounds, and no quanta
/// assert!(schedule.is_work_conserving());
/// # Ok::<(), urgency_policy::level::ScheduleError>(())
/// ```
///
/// [`Schedule`](super::Schedule) says when each function is called.
pub trait LevelSchedule: fmt::Debug + Send + Sync + CloneSchedule {
    /// Whether it can share so many workers between so many levels.
    ///
    /// # Errors
    ///
    /// If it is for another number of levels or workers, or if a level would never be served.
    fn check(&self, levels: usize, workers: usize) -> Result<(), ScheduleError> {
        let _ = (levels, workers);
        Ok(())
    }

    /// When it is to be asked again. This is asked once, when the schedule begins, and holds until another one does.
    fn period(&self) -> Period;

    /// A seat for `worker` of `workers`, which starts, or whose round is over, while these levels have work.
    ///
    /// `workers` are all workers of the machine. A job that has a part of them only takes its seats in turn, if there
    /// are no rounds: each of its workers comes to each seat.
    fn seat(&mut self, worker: usize, workers: usize, with_work: u64) -> Seat;

    /// The round of a worker in this seat is over. The worker ran for so many nanoseconds in it, whatever level; the
    /// time in which it was idle is left out.
    fn charge(&mut self, seat: Seat, nanos: u64) {
        let _ = (seat, nanos);
    }

    /// Each level ran so many nanoseconds since the last call, by rank. Returns the levels that are ahead, as a
    /// bitfield.
    fn settle(&mut self, ran: &[u64]) -> u64 {
        let _ = ran;
        0
    }

    /// The level of rank `ran` ran for so many nanoseconds in a round of the level of rank `primary`, which had work.
    fn move_time(&mut self, ran: u8, primary: u8, nanos: u64) {
        let _ = (ran, primary, nanos);
    }

    /// A quantum is over ([`Period::AllWorkers`]); `used` says by rank what each level did in it.
    fn reallocate(&mut self, used: &[Use], seats: &mut [Seat]) {
        let _ = (used, seats);
    }

    /// Whether a worker is busy while any level has work: not if a seat may wait.
    fn is_work_conserving(&self) -> bool {
        true
    }
}

/// Copies a schedule of unknown type. Every schedule that is [`Clone`] has it.
///
/// ```
/// use urgency_policy::level::{CloneSchedule, LevelSchedule, Prompt};
///
/// let copy = CloneSchedule::boxed(&Prompt);
/// assert!(copy.check(2, 8).is_ok());
/// ```
pub trait CloneSchedule {
    /// A copy.
    fn boxed(&self) -> Box<dyn LevelSchedule>;
}

impl<S: LevelSchedule + Clone + 'static> CloneSchedule for S {
    fn boxed(&self) -> Box<dyn LevelSchedule> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn LevelSchedule> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// That a schedule is for as many levels as there are.
fn fits(schedule: usize, levels: usize) -> Result<(), ScheduleError> {
    match schedule == levels {
        true => Ok(()),
        false => Err(ScheduleError::LevelCount { schedule, levels }),
    }
}

impl LevelSchedule for Prompt {
    fn period(&self) -> Period {
        Period::Never
    }

    fn seat(&mut self, _worker: usize, _workers: usize, _with_work: u64) -> Seat {
        Seat::PROMPT
    }
}

impl LevelSchedule for Rounds {
    fn check(&self, levels: usize, _workers: usize) -> Result<(), ScheduleError> {
        fits(self.criterion().parts().len(), levels)
    }

    fn period(&self) -> Period {
        Period::EachWorker(self.length())
    }

    fn seat(&mut self, _worker: usize, _workers: usize, _with_work: u64) -> Seat {
        Rounds::seat(self)
    }

    fn charge(&mut self, seat: Seat, nanos: u64) {
        if let Some(primary) = seat.primary() {
            Rounds::charge(self, primary, nanos);
        }
    }

    fn settle(&mut self, ran: &[u64]) -> u64 {
        Rounds::settle(self, ran)
    }

    fn move_time(&mut self, ran: u8, primary: u8, nanos: u64) {
        Rounds::move_time(self, ran, primary, nanos);
    }
}

impl LevelSchedule for WinnerTakeAll {
    fn check(&self, levels: usize, _workers: usize) -> Result<(), ScheduleError> {
        fits(2, levels)
    }

    fn period(&self) -> Period {
        Period::EachWorker(self.length())
    }

    fn seat(&mut self, _worker: usize, _workers: usize, with_work: u64) -> Seat {
        WinnerTakeAll::seat(self, with_work)
    }
}

impl LevelSchedule for Adaptive {
    fn check(&self, levels: usize, _workers: usize) -> Result<(), ScheduleError> {
        fits(self.levels(), levels)
    }

    fn period(&self) -> Period {
        Period::AllWorkers(self.quantum())
    }

    /// Until the first quantum is over nothing is known about any level.
    fn seat(&mut self, _worker: usize, _workers: usize, _with_work: u64) -> Seat {
        Seat::PROMPT
    }

    fn reallocate(&mut self, used: &[Use], seats: &mut [Seat]) {
        Adaptive::reallocate(self, used, seats);
    }

    fn is_work_conserving(&self) -> bool {
        false
    }
}

impl LevelSchedule for FixedShares {
    fn check(&self, levels: usize, workers: usize) -> Result<(), ScheduleError> {
        fits(self.levels(), levels)?;
        match self.workers() {
            Some(named) if named != workers => {
                return Err(ScheduleError::WorkerCount {
                    schedule: named,
                    workers,
                });
            }
            _ => {}
        }
        let counts = self.counts(workers);
        match counts.iter().position(|&count| count == 0) {
            Some(rank) if !self.donates() => Err(ScheduleError::Unserved { rank }),
            _ => Ok(()),
        }
    }

    fn period(&self) -> Period {
        Period::Never
    }

    fn seat(&mut self, worker: usize, workers: usize, _with_work: u64) -> Seat {
        FixedShares::seat(self, worker, workers)
    }

    fn is_work_conserving(&self) -> bool {
        self.donates()
    }
}
