//! Fixed shares: each worker belongs to one level, for good.

use super::{Criterion, Otherwise, SCALE, Seat};
use alloc::vec::Vec;

/// A fixed number of workers for each level.
///
/// This is the staged architecture of the OCaml dissertation (section 4.3.2) seen from the workers: a pool
/// of workers for each kind of work. It degrades gracefully, keeps each level's state in few caches, and
/// wastes what a level does not use, unless idle workers donate.
///
/// ```
/// use urgency_policy::level::{Criterion, FixedShares, Otherwise};
///
/// let fixed = FixedShares::new(&Criterion::from_shares(&[0.25, 0.75])?, Otherwise::Wait);
/// let primary = |worker| fixed.seat(worker, 8).primary();
/// assert_eq!((0..8).filter(|&worker| primary(worker) == Some(0)).count(), 2);
/// assert_eq!(fixed.counts(8), [2, 6]);
/// assert_eq!(fixed.counts(2), [1, 1], "a level with a share has a worker, if there are enough");
/// # Ok::<(), urgency_policy::level::CriterionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedShares {
    given: Given,
    otherwise: Otherwise,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    /// Parts of [`SCALE`], by rank.
    Parts(Vec<u32>),
    /// Workers, by rank.
    Workers(Vec<usize>),
}

impl FixedShares {
    /// Workers in proportion to these shares.
    pub fn new(shares: &Criterion, otherwise: Otherwise) -> Self {
        FixedShares {
            given: Given::Parts(shares.parts().to_vec()),
            otherwise,
        }
    }

    /// So many workers for each level, by rank: the stages of a program. It is a schedule for as many workers as
    /// that is together.
    ///
    /// ```
    /// use urgency_policy::level::{FixedShares, Otherwise};
    ///
    /// let stages = FixedShares::of_workers(&[1, 1, 2], Otherwise::Wait);
    /// assert_eq!(stages.seat(1, 4).primary(), Some(1));
    /// assert_eq!(stages.seat(3, 4).primary(), Some(2));
    /// ```
    pub fn of_workers(workers: &[usize], otherwise: Otherwise) -> Self {
        FixedShares {
            given: Given::Workers(workers.to_vec()),
            otherwise,
        }
    }

    /// How many levels it has.
    pub fn levels(&self) -> usize {
        match &self.given {
            Given::Parts(parts) => parts.len(),
            Given::Workers(workers) => workers.len(),
        }
    }

    /// How many workers it is for, if it names them.
    pub fn workers(&self) -> Option<usize> {
        match &self.given {
            Given::Parts(_) => None,
            // A sum that wraps would fit some other number of workers.
            Given::Workers(workers) => Some(workers.iter().copied().fold(0, usize::saturating_add)),
        }
    }

    /// How many of `workers` each level gets, by rank. If the counts were named, these are the counts. Otherwise each
    /// level gets the whole part of its due, at least one worker if it has a share and there are enough; the workers
    /// that are left go by largest remainder.
    pub fn counts(&self, workers: usize) -> Vec<usize> {
        let parts = match &self.given {
            Given::Parts(parts) => parts,
            Given::Workers(workers) => return workers.clone(),
        };
        let due = |parts: u32| parts as usize * workers;
        let mut counts: Vec<usize> = parts
            .iter()
            .map(|&parts| due(parts) / SCALE as usize)
            .collect();
        let sharing = || (0..parts.len()).filter(|&rank| parts[rank] > 0);
        let mut left = workers - counts.iter().sum::<usize>();
        for rank in sharing() {
            if counts[rank] == 0 && left > 0 {
                counts[rank] = 1;
                left -= 1;
            }
        }
        while left > 0 {
            let behind = |&rank: &usize| {
                let due = due(parts[rank]) as i128 - (counts[rank] * SCALE as usize) as i128;
                (due, usize::MAX - rank)
            };
            let rank = sharing()
                .max_by_key(behind)
                .expect("some level has a share");
            counts[rank] += 1;
            left -= 1;
        }
        // Small shares may have taken the last workers: each from the level that is best served.
        for rank in sharing() {
            if counts[rank] == 0 {
                let most = (0..counts.len()).filter(|&r| counts[r] > 1);
                if let Some(most) = most.max_by_key(|&r| (counts[r], usize::MAX - r)) {
                    counts[most] -= 1;
                    counts[rank] += 1;
                }
            }
        }
        counts
    }

    /// Whether a worker whose level has nothing to do serves another.
    pub fn donates(&self) -> bool {
        self.otherwise == Otherwise::Donate
    }

    /// The seat of this worker of so many.
    pub fn seat(&self, worker: usize, workers: usize) -> Seat {
        let mut past = 0;
        for (rank, count) in self.counts(workers).into_iter().enumerate() {
            past += count;
            if worker < past {
                let rank = u8::try_from(rank).expect("there are at most 64 levels");
                return Seat::at(rank, self.otherwise);
            }
        }
        Seat::PROMPT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_worker_has_a_level_and_every_sharing_level_a_worker_if_there_are_enough(
            weights in proptest::collection::vec(0u32..50, 1..=20),
            workers in 1usize..200,
        ) {
            let sum: u32 = weights.iter().sum();
            prop_assume!(sum > 0);
            let shares: Vec<f64> = weights.iter().map(|&w| f64::from(w) / f64::from(sum)).collect();
            let criterion = Criterion::from_shares(&shares).unwrap();
            let fixed = FixedShares::new(&criterion, Otherwise::Wait);
            let counts = fixed.counts(workers);
            prop_assert_eq!(counts.iter().sum::<usize>(), workers);
            let sharing = weights.iter().filter(|&&w| w > 0).count();
            for (rank, &count) in counts.iter().enumerate() {
                if workers >= sharing {
                    prop_assert_eq!(count > 0, weights[rank] > 0, "level {}: {}", rank, count);
                }
                let seated = (0..workers).filter(|&w| fixed.seat(w, workers).primary() == Some(rank as u8));
                prop_assert_eq!(seated.count(), count);
            }
        }
    }

    #[test]
    fn shares_that_divide_the_workers_are_exact() {
        let criterion = Criterion::from_shares(&[0.5, 0.25, 0.25]).unwrap();
        let fixed = FixedShares::new(&criterion, Otherwise::Donate);
        assert_eq!(fixed.counts(16), [8, 4, 4]);
    }
}
