//! An advance on a level's share: a level that has used little of its share is served at once.

use super::{Criterion, SCALE};
use alloc::vec::Vec;

/// The accounts of all levels.
///
/// Rounds alone let an interactive level wait. With half of all rounds and one worker, every second request comes in
/// another level's round, and waits for up to 5 ms, though the interactive level may use a thousandth of its share. But
/// a level that is owed so much can be served at once without taking anything from the others, as long as the time it
/// takes is charged to it.
///
/// # Rules
///
/// 1. Each level has a *balance*: time that it was entitled to and has not used. It grows by the level's share of all
///    time that ran, of every level, and shrinks by the time that the level ran itself, donated time included.
/// 2. A balance begins with two rounds, which is the most it can have; the least is minus two. So no level saves up: a
///    level that idles for a minute may then have a round and a half in advance (rule 3). And a level that was donated
///    much is soon back where all begin.
/// 3. A level is *ahead* from when its balance is above a round and a half, until it is down to half a round.
///    Levels that use their whole share never come there: they swing around their balance by one round, as
///    draws do, and are held below by rule 5.
/// 4. While a level is ahead, it comes before the primary level of every seat that is less urgent
///    ([`Seat`](super::Seat)). What it runs in a round of another level is moved from its account to that
///    level's ([`Rounds::move_time`](super::Rounds::move_time)), so the others' shares stay what they are.
/// 5. The balance grows by 15/16 of the share. A level that uses more than that sinks to the bottom, wherever
///    the swings took it.
///
/// The paper (Fairness in Responsive Parallelism, section 6) has responses of 3 to 35 ms under its criteria;
/// its processors look for the level of their round only.
///
/// ```
/// use urgency_policy::level::{Advance, Criterion};
///
/// let criterion = Criterion::from_shares(&[0.5, 0.5])?;
/// let mut advance = Advance::new(&criterion, 5_000_000);
/// // The first level does nothing for 20 ms, and is ahead. The second has what it is owed and more.
/// assert_eq!(advance.settle(&criterion, &[0, 20_000_000]), 0b01);
/// // Then it uses 16 ms at once, and is as any other.
/// assert_eq!(advance.settle(&criterion, &[16_000_000, 0]), 0b00);
/// // With another criterion all begin as at first: with two rounds, and ahead.
/// let criterion = Criterion::from_shares(&[0.75, 0.25])?;
/// advance.reset(&criterion);
/// assert_eq!(advance.settle(&criterion, &[0, 0]), 0b11);
/// # Ok::<(), urgency_policy::level::CriterionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Advance {
    /// By rank, in nanoseconds.
    balance: Vec<i64>,
    /// The length of a round in nanoseconds.
    round: i64,
    ahead: u64,
}

impl Advance {
    /// Accounts for the levels of this criterion, with rounds of this length in nanoseconds.
    pub fn new(criterion: &Criterion, round: u64) -> Self {
        let mut advance = Advance {
            balance: Vec::new(),
            round: i64::try_from(round).unwrap_or(i64::MAX).min(i64::MAX / 4),
            ahead: 0,
        };
        advance.reset(criterion);
        advance
    }

    /// Each level ran so many nanoseconds since the last call, by rank. Returns the levels that are ahead, as
    /// a bitfield.
    pub fn settle(&mut self, criterion: &Criterion, ran: &[u64]) -> u64 {
        let most = 2 * self.round;
        let all: u64 = ran.iter().sum();
        let accounts = self.balance.iter_mut().zip(criterion.parts()).zip(ran);
        for (rank, ((balance, &parts), &ran)) in accounts.enumerate() {
            let due = u128::from(all) * u128::from(parts) * 15 / (u128::from(SCALE) * 16);
            let due = i64::try_from(due).unwrap_or(i64::MAX / 4);
            let ran = i64::try_from(ran).unwrap_or(i64::MAX / 4);
            *balance = (*balance + due - ran).clamp(-most, most);
            if *balance > self.round + self.round / 2 {
                self.ahead |= 1 << rank;
            } else if *balance <= self.round / 2 {
                self.ahead &= !(1 << rank);
            }
        }
        self.ahead
    }

    /// Starts over.
    pub fn reset(&mut self, criterion: &Criterion) {
        let first = |&parts: &u32| if parts > 0 { 2 * self.round } else { 0 };
        self.balance = criterion.parts().iter().map(first).collect();
        self.ahead = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROUND: u64 = 5_000_000;

    proptest! {
        #[test]
        fn a_level_without_a_share_is_never_ahead(ran in proptest::collection::vec((0u64..9_000_000, 0u64..9_000_000), 1..300)) {
            let criterion = Criterion::from_shares(&[0.0, 1.0]).unwrap();
            let mut advance = Advance::new(&criterion, ROUND);
            for (above, below) in ran {
                prop_assert_eq!(advance.settle(&criterion, &[above, below]) & 1, 0);
            }
        }

        #[test]
        fn a_level_that_uses_its_share_in_rounds_is_not_ahead_after_the_first_of_them(share in 0.1f64..0.9) {
            let criterion = Criterion::from_shares(&[share, 1.0 - share]).unwrap();
            let mut rounds = super::super::Rounds::new(criterion.clone());
            let mut advance = Advance::new(&criterion, ROUND);
            let mut ahead = 0;
            for round in 0..2000 {
                let mut ran = [0; 2];
                ran[usize::from(rounds.draw())] = ROUND;
                let now = advance.settle(&criterion, &ran);
                if round >= 200 {
                    ahead |= now;
                }
            }
            prop_assert_eq!(ahead, 0);
        }

        #[test]
        fn what_a_level_gets_in_a_burst_is_at_most_two_rounds(idle in 1u64..1000, share in 0.01f64..0.99) {
            let criterion = Criterion::from_shares(&[share, 1.0 - share]).unwrap();
            let mut advance = Advance::new(&criterion, ROUND);
            for _ in 0..idle {
                advance.settle(&criterion, &[0, 1_000_000]);
            }
            let mut burst = 0;
            while advance.settle(&criterion, &[100_000, 0]) & 1 == 1 {
                burst += 100_000;
                // What it is entitled to meanwhile comes on top.
                prop_assert!(burst as f64 * (1.0 - share) <= 2.0 * ROUND as f64 + 200_000.0);
            }
        }
    }

    #[test]
    fn a_level_that_uses_a_little_stays_ahead() {
        let criterion = Criterion::from_shares(&[0.05, 0.45, 0.5]).unwrap();
        let mut advance = Advance::new(&criterion, ROUND);
        let mut behind = 0;
        for tick in 0..5000 {
            // 2 % of the time, in pieces of 200 microseconds.
            let above = if tick % 10 == 0 { 200_000 } else { 0 };
            let ahead = advance.settle(&criterion, &[above, 450_000, 550_000 - above]);
            behind += u32::from(tick > 1000 && ahead & 1 == 0);
        }
        assert_eq!(behind, 0);
    }
}
