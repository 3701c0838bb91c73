//! Fairly prompt: rounds, each with a primary level that is drawn from the fairness criterion.

use super::{Advance, Criterion, Otherwise, SCALE, Seat};
use crate::dice::Dice;
use alloc::{vec, vec::Vec};

/// The length of a round in the paper and by default, in nanoseconds: 5 ms.
///
/// ```
/// use urgency_policy::level::{Criterion, ROUND_NANOS, Rounds};
///
/// let rounds = Rounds::new(Criterion::from_shares(&[1.0])?);
/// assert_eq!(rounds.length(), ROUND_NANOS);
/// assert_eq!(rounds.with_length(2 * ROUND_NANOS).length(), 10_000_000);
/// # Ok::<(), urgency_policy::level::CriterionError>(())
/// ```
pub const ROUND_NANOS: u64 = 5_000_000;

/// Draws primary levels.
///
/// The paper (Fairness in Responsive Parallelism, section 4) draws at random and independently for each
/// processor, which is exact in expectation, over long times. Here the draws are one sequence for all workers,
/// and it is as even as a sequence can be. That is the *chairman assignment problem*: some states with
/// given shares take turns in one office, and after each year no state's count may be a whole year away
/// from its due. R. Tijdeman (Discrete Mathematics 32, 1980) solved it: of all states that are owed at least
/// 1/(2m-2) of a year (m states), the one goes that would be a whole year behind the soonest. Then after
/// *every* number n of draws, each level has had n times its share to within 1 - 1/(2m-2), and any window
/// of draws is within twice that.
///
/// # Rules
///
/// 1. `credit[i]` is what level `i` is owed, in parts of a round ([`SCALE`] parts are one round). A draw adds
///    each level's share to its credit, and takes a whole round from the level that is drawn.
/// 2. Credits sum to zero between draws.
/// 3. A round that lasted longer or shorter than the others is charged as long as it was ([`Rounds::charge`]). Time
///    that another level took in the round is charged to that level ([`Rounds::move_time`]). So shares hold for time,
///    not only for counts, whatever delays the end of a round.
/// 4. A change of the criterion starts over: what was owed under the old one is forgotten, less than one
///    round for each level.
///
/// A share is an entitlement: a level without work loses its rounds to the most urgent level ([`Seat`]), and is not
/// owed anything for them later. That is the paper's principle; a level that comes back from idling would
/// otherwise shut the others out.
///
/// A level that has used little of its share need not wait for its rounds: [`Advance`].
///
/// [`Rounds::independent`] draws as the paper does, for comparison: its shares deviate by the square root
/// of the number of draws.
///
/// ```
/// use urgency_policy::level::{Criterion, Rounds};
///
/// let mut rounds = Rounds::new(Criterion::from_shares(&[0.5, 0.25, 0.25])?);
/// let drawn: Vec<u8> = (0..8).map(|_| rounds.draw()).collect();
/// assert_eq!(drawn.iter().filter(|&&level| level == 0).count(), 4);
/// assert_eq!(drawn.iter().filter(|&&level| level == 2).count(), 2);
/// # Ok::<(), urgency_policy::level::CriterionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rounds {
    criterion: Criterion,
    /// By rank, in parts of a round.
    credit: Vec<i64>,
    length: u64,
    independent: Option<Dice>,
    advance: Advance,
}

impl Rounds {
    /// Rounds of [`ROUND_NANOS`] under this criterion.
    pub fn new(criterion: Criterion) -> Self {
        Rounds {
            credit: vec![0; criterion.parts().len()],
            advance: Advance::new(&criterion, ROUND_NANOS),
            criterion,
            length: ROUND_NANOS,
            independent: None,
        }
    }

    /// The same with rounds of this length in nanoseconds (at least 1).
    #[must_use]
    pub fn with_length(mut self, nanos: u64) -> Self {
        self.length = nanos.max(1);
        self.advance = Advance::new(&self.criterion, self.length);
        self
    }

    /// The same, but each draw is independent of all others.
    #[must_use]
    pub fn independent(mut self, seed: u64) -> Self {
        self.independent = Some(Dice::new(seed));
        self
    }

    /// The length of a round in nanoseconds.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The criterion.
    pub fn criterion(&self) -> &Criterion {
        &self.criterion
    }

    /// From the next draw on another criterion holds.
    pub fn change(&mut self, criterion: Criterion) {
        self.credit.clear();
        self.credit.resize(criterion.parts().len(), 0);
        self.advance.reset(&criterion);
        self.criterion = criterion;
    }

    /// The rank of the next round's primary level.
    pub fn draw(&mut self) -> u8 {
        let drawn = match &mut self.independent {
            Some(dice) => by_lot(self.criterion.parts(), dice),
            None => {
                for (credit, &parts) in self.credit.iter_mut().zip(self.criterion.parts()) {
                    *credit += i64::from(parts);
                }
                let drawn = by_deadline(&self.credit, self.criterion.parts());
                self.credit[drawn] -= i64::from(SCALE);
                drawn
            }
        };
        u8::try_from(drawn).expect("there are at most 64 levels")
    }

    /// The next round's seat: as [`draw`](Self::draw).
    pub fn seat(&mut self) -> Seat {
        Seat::at(self.draw(), Otherwise::Donate)
    }

    /// A round of the level of rank `primary` is over, and its worker ran for `nanos` instead of the round's length.
    ///
    /// Not more than four rounds are charged: a worker that slept meanwhile took nothing from anybody.
    ///
    /// ```
    /// use urgency_policy::level::{Criterion, Rounds, SCALE};
    ///
    /// let even = Criterion::from_shares(&[0.5, 0.5])?;
    /// let mut rounds = Rounds::new(even.clone());
    /// let half = i64::from(SCALE / 2);
    /// rounds.charge(0, 10_000_000); // twice the length of a round
    /// assert_eq!(rounds.owed(), [-half, half]);
    /// rounds.move_time(1, 0, 2_500_000); // half a round of it was level 1's
    /// assert_eq!(rounds.owed(), [0, 0]);
    /// assert_eq!(rounds.settle(&[0, 20_000_000]), 0b01, "level 0 used nothing of its share, and is ahead");
    ///
    /// rounds.charge(0, 10_000_000);
    /// rounds.change(even); // what was owed is forgotten
    /// assert_eq!(rounds.owed(), [0, 0]);
    /// # Ok::<(), urgency_policy::level::CriterionError>(())
    /// ```
    pub fn charge(&mut self, primary: u8, nanos: u64) {
        let lasted = nanos.min(self.length.saturating_mul(4));
        let parts = u128::from(lasted) * u128::from(SCALE) / u128::from(self.length);
        let excess = i64::try_from(parts).expect("at most four rounds") - i64::from(SCALE);
        let mut rest = excess;
        for (credit, &share) in self.credit.iter_mut().zip(self.criterion.parts()) {
            let due = excess * i64::from(share) / i64::from(SCALE);
            *credit += due;
            rest -= due;
        }
        if let Some(credit) = self.credit.get_mut(usize::from(primary)) {
            // Whatever the divisions lost is the level's own, so that rule 2 holds.
            *credit -= excess - rest;
        }
    }

    /// Each level ran so many nanoseconds since the last call, by rank. Returns the levels that are ahead, as
    /// a bitfield: see [`Advance`].
    pub fn settle(&mut self, ran: &[u64]) -> u64 {
        self.advance.settle(&self.criterion, ran)
    }

    /// Another level ran for `nanos` in a round of the level of rank `primary`, which had work: because the other level
    /// is ahead, or because the worker was late. The time is moved from the account of `ran` to the account of
    /// `primary`. Beyond a credit or a debt of 16 rounds nothing is moved: a level that could not run must not have the
    /// workers to itself later.
    pub fn move_time(&mut self, ran: u8, primary: u8, nanos: u64) {
        let nanos = nanos.min(self.length.saturating_mul(4));
        let parts = u128::from(nanos) * u128::from(SCALE) / u128::from(self.length);
        let parts = i64::try_from(parts).expect("at most four rounds");
        let (ran, primary) = (usize::from(ran), usize::from(primary));
        let most = 16 * i64::from(SCALE);
        if ran < self.credit.len()
            && primary < self.credit.len()
            && self.credit[ran] > -most
            && self.credit[primary] < most
        {
            self.credit[ran] -= parts;
            self.credit[primary] += parts;
        }
    }

    /// What each level is owed, in parts of a round, by rank; the sum is zero.
    pub fn owed(&self) -> &[i64] {
        &self.credit
    }
}

/// Tijdeman's choice: the earliest deadline among the levels that are owed enough.
fn by_deadline(credit: &[i64], parts: &[u32]) -> usize {
    let states = parts.iter().filter(|&&parts| parts > 0).count() as i64;
    let scale = i64::from(SCALE);
    let (least, most) = if states > 1 {
        (scale / (2 * states - 2), scale - scale / (2 * states - 2))
    } else {
        (i64::MIN, scale)
    };
    let sharing = || (0..parts.len()).filter(|&rank| parts[rank] > 0);
    // Draws until it is owed too much: (most - credit) / share, compared without division.
    let sooner = |&a: &usize, &b: &usize| {
        let (to_a, to_b) = (most - credit[a], most - credit[b]);
        (to_a * i64::from(parts[b])).cmp(&(to_b * i64::from(parts[a])))
    };
    let eligible = sharing().filter(|&rank| credit[rank] >= least);
    eligible
        .min_by(sooner)
        // After a charge nobody may be owed that much.
        .or_else(|| sharing().max_by_key(|&rank| (credit[rank], usize::MAX - rank)))
        .expect("some level has a share")
}

/// A draw with the shares as probabilities.
fn by_lot(parts: &[u32], dice: &mut Dice) -> usize {
    let mut lot = dice.below(u64::from(SCALE)) as u32;
    for (rank, &parts) in parts.iter().enumerate() {
        if lot < parts {
            return rank;
        }
        lot -= parts;
    }
    unreachable!("the parts sum to the scale")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_criterion() -> impl Strategy<Value = Criterion> {
        proptest::collection::vec(0u32..100, 1..=64).prop_filter_map("all zero", |weights| {
            let sum: u32 = weights.iter().sum();
            let shares: Vec<f64> = weights
                .iter()
                .map(|&w| f64::from(w) / f64::from(sum))
                .collect();
            Criterion::from_shares(&shares).ok()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn after_any_number_of_draws_each_level_has_had_its_share_to_within_one_round(
            criterion in any_criterion(),
        ) {
            let mut rounds = Rounds::new(criterion.clone());
            let mut count = vec![0i64; criterion.parts().len()];
            for n in 1..=2000i64 {
                count[usize::from(rounds.draw())] += 1;
                for (rank, &parts) in criterion.parts().iter().enumerate() {
                    let off = count[rank] * i64::from(SCALE) - n * i64::from(parts);
                    prop_assert!(off.abs() <= i64::from(SCALE), "level {rank} is off by {off} after {n}");
                }
            }
        }

        #[test]
        fn in_any_window_of_draws_each_level_has_its_share_to_within_two_rounds(
            criterion in any_criterion(),
            from in 0usize..500,
            length in 1usize..500,
        ) {
            let mut rounds = Rounds::new(criterion.clone());
            let drawn: Vec<u8> = (0..from + length).map(|_| rounds.draw()).collect();
            for rank in 0..criterion.parts().len() {
                let had = drawn[from..].iter().filter(|&&l| usize::from(l) == rank).count() as f64;
                let due = length as f64 * criterion.share(rank as u8);
                prop_assert!((had - due).abs() <= 2.0, "level {rank}: {had} of {due}");
            }
        }

        #[test]
        fn with_rounds_of_uneven_length_time_is_shared_to_within_twice_the_longest(
            criterion in any_criterion(),
            lengths in proptest::collection::vec(1u64..4000, 100..500),
        ) {
            let mut rounds = Rounds::new(criterion.clone()).with_length(1000);
            let mut time = vec![0u64; criterion.parts().len()];
            for &nanos in &lengths {
                let level = rounds.draw();
                time[usize::from(level)] += nanos;
                rounds.charge(level, nanos);
            }
            let total: u64 = lengths.iter().sum();
            for (rank, &time) in time.iter().enumerate() {
                let due = total as f64 * criterion.share(rank as u8);
                prop_assert!(time as f64 - due <= 8000.0, "level {rank}: {time} of {due}");
            }
            prop_assert_eq!(rounds.owed().iter().sum::<i64>(), 0);
        }

        #[test]
        fn time_that_another_level_took_of_a_round_comes_back(
            share in 0.2f64..0.8,
            taken in proptest::collection::vec(0u64..200, 2000..2500),
        ) {
            let mut rounds = Rounds::new(Criterion::from_shares(&[share, 1.0 - share]).unwrap()).with_length(1000);
            let mut above = 0;
            for &taken in &taken {
                let primary = rounds.draw();
                above += if primary == 0 { 1000 } else { taken };
                if primary == 1 {
                    rounds.move_time(0, 1, taken);
                }
            }
            let due = share * 1000.0 * taken.len() as f64;
            prop_assert!((above as f64 - due).abs() <= 8000.0, "{above} of {due}");
        }

        #[test]
        fn a_level_without_a_share_is_never_drawn(seed in any::<u64>(), independent in any::<bool>()) {
            let criterion = Criterion::from_shares(&[0.0, 0.4, 0.0, 0.6]).unwrap();
            let mut rounds = Rounds::new(criterion);
            if independent {
                rounds = rounds.independent(seed);
            }
            for _ in 0..500 {
                let level = rounds.draw();
                prop_assert!(level == 1 || level == 3);
            }
        }
    }

    #[test]
    fn a_change_of_the_criterion_holds_from_the_next_draw() {
        let mut rounds = Rounds::new(Criterion::from_shares(&[0.9, 0.1]).unwrap());
        for _ in 0..7 {
            rounds.draw();
        }
        rounds.change(Criterion::from_shares(&[0.1, 0.5, 0.4]).unwrap());
        let mut count = [0; 3];
        for _ in 0..10 {
            count[usize::from(rounds.draw())] += 1;
        }
        assert_eq!(count, [1, 5, 4]);
    }

    #[test]
    fn independent_draws_have_the_shares_in_the_long_run_only() {
        let criterion = Criterion::from_shares(&[0.5, 0.5]).unwrap();
        let mut rounds = Rounds::new(criterion).independent(7);
        let drawn: Vec<u8> = (0..10_000).map(|_| rounds.draw()).collect();
        let top = drawn.iter().filter(|&&l| l == 0).count();
        assert!((4800..5200).contains(&top), "{top}");
        let off_by_more_than_two = drawn.windows(50).filter(|w| {
            let top = w.iter().filter(|&&l| l == 0).count();
            !(23..=27).contains(&top)
        });
        assert!(off_by_more_than_two.count() > 100);
    }
}
