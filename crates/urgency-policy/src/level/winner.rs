//! Winner takes all, for two levels: at the start of each round a worker takes a side, and keeps it.

use super::{Otherwise, ROUND_NANOS, Seat};

/// Takes a side at each round.
///
/// This is the scheduler that the fairness paper compares with (section 6.2.4, "MAH"): made for one
/// interactive and one background level. A worker whose round begins while the urgent level has work belongs to the
/// urgent level for the round, and otherwise to the other level. It changes sides within a round only if its side has
/// nothing left. So an urgent arrival waits for the end of a round unless a worker is on the urgent side. Its response
/// therefore depends on the length of a round; prompt scheduling improves on that.
///
/// ```
/// use urgency_policy::level::{LevelPolicy, WinnerTakeAll};
///
/// let mut seat = WinnerTakeAll::default().seat(0b10);
/// assert_eq!(seat.abandon_for(0b11, 1), None, "until the round is over");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WinnerTakeAll {
    length: u64,
}

impl WinnerTakeAll {
    /// With rounds of so many nanoseconds (at least 1).
    pub fn new(length: u64) -> Self {
        WinnerTakeAll {
            length: length.max(1),
        }
    }

    /// The length of a round in nanoseconds.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The seat for a round that begins while these levels have work. Levels below the second count as
    /// the second.
    pub fn seat(&mut self, with_work: u64) -> Seat {
        let side = u8::from(with_work & 1 == 0);
        Seat::at(side, Otherwise::Donate)
    }
}

impl Default for WinnerTakeAll {
    /// Rounds of [`ROUND_NANOS`].
    fn default() -> Self {
        WinnerTakeAll::new(ROUND_NANOS)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::LevelPolicy, *};

    #[test]
    fn a_worker_takes_the_urgent_side_exactly_if_that_has_work_when_its_round_begins() {
        let mut policy = WinnerTakeAll::default();
        assert_eq!(policy.seat(0b11).primary(), Some(0));
        assert_eq!(policy.seat(0b01).primary(), Some(0));
        assert_eq!(policy.seat(0b10).primary(), Some(1));
        assert_eq!(policy.seat(0b00).primary(), Some(1));
    }

    #[test]
    fn a_side_without_work_is_left_within_the_round() {
        let mut seat = WinnerTakeAll::default().seat(0b01);
        assert_eq!(seat.serve(0b10), Some(1));
        assert_eq!(seat.abandon_for(0b11, 1), Some(0));
    }
}
