//! How work comes from the worker that has it to the one that has none.

/// How much a thief takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// One entry.
    One,
    /// Half of the entries, rounded up.
    Half,
}

impl Amount {
    /// So many of `entries`.
    pub fn of(self, entries: usize) -> usize {
        match self {
            Amount::One => entries.min(1),
            Amount::Half => entries.div_ceil(2),
        }
    }
}

/// The workers that a thief looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Victims {
    /// Any other worker.
    All,
    /// One of so many that follow it in the row of workers, which is a ring.
    Neighbours(usize),
}

/// How a worker that has too much asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asking {
    /// A random worker, for one steal.
    Simple,
    /// A random worker, until somebody else asks that one.
    Sticky,
    /// Any free worker.
    Advertised,
}

/// How work is shared.
///
/// - **Stealing**: a worker that has no work takes from another's queue, one entry or half of them. Victims are any
///   other worker, or only its neighbours (the OCaml dissertation, section 5.1.1: with one spawner and many workers the
///   neighbours are the one extension that clearly helped, since few contend for the spawner's queue and work spreads
///   along the row).
/// - **Requesting**: a worker that has too much asks another one to steal from it. *Simple*: it asks a random worker,
///   once. *Sticky*: the asked worker comes back to the same victim until another asks. *Advertised*: the busy worker
///   puts its number into a shared queue, and only free workers read it. Since an asked worker looks only when it has
///   nothing left, the request may be stale by then; and the tasks that stand behind a long one must be rescued. So a
///   worker that was not asked steals at random, now and then.
/// - **Dealing**: a worker that has more than one entry sends the oldest to a random worker that has none. How many is
///   counted in *fork potential* (the fairness paper, section 5.2): an entry at depth d of the DAG counts 2^-d, as it
///   may fork about that part of the whole. The oldest entries go that together have a quarter of the bank's potential.
///
/// ```
/// use urgency_policy::pool::{Amount, Asking, Plan, Sharing, Victims};
///
/// // One entry at a time, of the next four workers.
/// let steal = Sharing::Steal { victims: Victims::Neighbours(4), amount: Amount::One, least: 1 };
/// let request = Sharing::Request { asking: Asking::Sticky, load: 8 };
/// for sharing in [steal, request, Sharing::Deal] {
///     Plan::FIFO.shared_by(sharing).check()?;
/// }
/// # Ok::<(), urgency_policy::pool::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// A worker that has no entry steals.
    Steal {
        /// The workers to steal from.
        victims: Victims,
        /// How much.
        amount: Amount,
        /// The least number of entries that a victim must have. After every 8th failure any number is enough, so that
        /// nothing is left behind a long task.
        least: usize,
    },
    /// A worker that has at least `load` entries asks another one to steal.
    Request {
        /// The worker that is asked.
        asking: Asking,
        /// From how many entries on.
        load: usize,
    },
    /// A worker that has more than one entry deals.
    Deal,
}

/// How many of a bank's entries are dealt. `depths` are the depths of its entries, from the least deep on.
///
/// As many as have at least a quarter of the bank's fork potential; none if there is only one.
///
/// ```
/// use urgency_policy::pool::deal;
///
/// assert_eq!(deal(&[1, 2, 3, 4]), 1, "the first has half of all");
/// assert_eq!(deal(&[5; 8]), 2);
/// assert_eq!(deal(&[1]), 0);
/// ```
pub fn deal(depths: &[u32]) -> usize {
    if depths.len() <= 1 {
        return 0;
    }
    // Relative to the least deep; what is 63 deeper counts nothing beside it.
    let potential = |depth: u32| 1u128 << (63 - depth.saturating_sub(depths[0]).min(63));
    let total: u128 = depths.iter().map(|&depth| potential(depth)).sum();
    let mut dealt = 0;
    for (count, &depth) in depths.iter().enumerate() {
        dealt += potential(depth);
        if dealt * 4 >= total {
            return count + 1;
        }
    }
    depths.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_is_rounded_up_so_that_one_entry_can_be_stolen() {
        assert_eq!([0, 1, 2, 3].map(|n| Amount::Half.of(n)), [0, 1, 1, 2]);
        assert_eq!([0, 1, 5].map(|n| Amount::One.of(n)), [0, 1, 1]);
    }

    proptest! {
        #[test]
        fn a_deal_is_the_fewest_oldest_entries_with_a_quarter_of_the_potential(
            mut depths in proptest::collection::vec(0u32..50, 2..40),
        ) {
            depths.sort_unstable();
            let potential = |d: &u32| 0.5f64.powi(*d as i32);
            let total: f64 = depths.iter().map(potential).sum();
            let n = deal(&depths);
            let part = |n: usize| depths[..n].iter().map(potential).sum::<f64>() / total;
            prop_assert!(part(n) >= 0.25 - 1e-12);
            prop_assert!(part(n - 1) < 0.25 + 1e-12);
        }
    }
}
