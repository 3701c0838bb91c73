//! The settlement of rounds: which level is charged for the time that workers ran.

use super::{Schedule, Seat};
use alloc::{vec, vec::Vec};

/// One settlement.
///
/// At each settlement the mechanism says for each worker how long it ran each level since the last one. A worker in a
/// round of one level may have run another one. The time is moved to that level's account unless it was a *donation*:
/// the round's level had no work in a pool, and the worker does not serve it by now. If the level that ran is
/// [ahead](super::Advance), it came before the round's level although that had work; so it also counts if anybody runs
/// the round's level.
///
/// ```
/// use urgency_policy::level::{Criterion, Otherwise, Schedule, Seat, Settlement};
///
/// let mut schedule = Schedule::from(Criterion::from_shares(&[0.5, 0.5])?);
/// let mut settlement = Settlement::new(2, 0b10, 0b01);
/// // The worker is in a round of level 1, which has work, and ran level 0 for a millisecond.
/// let seat = Seat::at(1, Otherwise::Donate);
/// settlement.ran(&mut schedule, seat, 0b01, 0, 1_000_000);
/// let seat = seat.with_ahead(settlement.end(&mut schedule));
/// assert!(seat.is_ahead(0), "it has used little of its share so far");
/// # Ok::<(), urgency_policy::level::CriterionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settlement {
    /// By rank.
    ran: Vec<u64>,
    with_work: u64,
    running: u64,
}

impl Settlement {
    /// Begins one for so many levels, of which these have work in a pool, and these are run by a worker.
    pub fn new(levels: usize, with_work: u64, running: u64) -> Self {
        Settlement {
            ran: vec![0; levels],
            with_work,
            running,
        }
    }

    /// A worker in this seat, which serves `serves` by now (a bitfield), ran the level of rank `level` for so many
    /// nanoseconds since the last settlement.
    #[inline]
    pub fn ran(&mut self, schedule: &mut Schedule, seat: Seat, serves: u64, level: u8, nanos: u64) {
        if nanos == 0 {
            return;
        }
        self.ran[usize::from(level)] += nanos;
        let Some(primary) = seat.primary().filter(|primary| *primary != level) else {
            return;
        };
        let others = if seat.is_ahead(level) {
            self.running
        } else {
            serves
        };
        if (self.with_work | others) >> primary & 1 == 1 {
            schedule.move_time(level, primary, nanos);
        }
    }

    /// Ends it. Returns the levels that are ahead until the next one, for [`Seat::with_ahead`].
    pub fn end(self, schedule: &mut Schedule) -> u64 {
        schedule.settle(&self.ran)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LevelSchedule, Otherwise, Period};
    use super::*;
    use alloc::sync::Arc;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Remembers what was moved: `from`, `to` and nanoseconds as decimal places.
    #[derive(Clone, Debug, Default)]
    struct Moves(Arc<AtomicU64>);

    impl LevelSchedule for Moves {
        fn period(&self) -> Period {
            Period::Never
        }

        fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
            Seat::PROMPT
        }

        fn move_time(&mut self, ran: u8, primary: u8, nanos: u64) {
            let moved = nanos * 100 + u64::from(ran) * 10 + u64::from(primary);
            self.0.store(moved, Relaxed);
        }

        fn settle(&mut self, ran: &[u64]) -> u64 {
            ran[2]
        }
    }

    #[test]
    fn time_is_moved_unless_it_was_a_donation() {
        let moves = Moves::default();
        let mut schedule = Schedule::own(moves.clone());
        let round = Seat::at(2, Otherwise::Donate);
        // with work, running, the seat, what the worker serves; whether time is moved.
        let cases = [
            (0b000, 0b000, round, 0b010, false),
            (0b100, 0b000, round, 0b010, true),
            (0b000, 0b000, round, 0b100, true),
            (0b000, 0b100, round, 0b010, false),
            (0b000, 0b100, round.with_ahead(0b010), 0b010, true),
            (0b100, 0b000, Seat::PROMPT, 0b010, false),
        ];
        for (number, (with_work, running, seat, serves, moved)) in cases.into_iter().enumerate() {
            moves.0.store(0, Relaxed);
            let mut settlement = Settlement::new(3, with_work, running);
            settlement.ran(&mut schedule, seat, serves, 1, 7);
            assert_eq!(
                moves.0.load(Relaxed),
                if moved { 712 } else { 0 },
                "case {number}"
            );
            settlement.ran(&mut schedule, seat, serves, 2, 5);
            assert_eq!(
                settlement.end(&mut schedule),
                5,
                "its own level's time is its own"
            );
        }
    }
}
