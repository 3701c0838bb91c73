//! By how much work an entry may be overtaken in a level's queue that is in shards.
//!
//! One FIFO queue for each level makes aging exact, and is a few cache lines that all cores write. So where there are
//! many cores the queue is in *shards*, one for each group of cores (`sched/order/pool.rs`), and a shard is two FIFO
//! *lists* (`sched/order/lists.rs`). A worker takes from the shard of its own group, and from the ring of its stack.
//! Here is what keeps the groups in step.
//!
//! # Rules
//!
//! An entry carries a *stamp*: the time at which it became ready, read from the clock before it is put in.
//!
//! 1. A list keeps the youngest stamp that it has *given* ([`Given`]). The word only grows.
//! 2. A worker keeps, for each level, the youngest stamp that it has taken, from lists and rings alike, and how many
//!    entries it may still take without a look ([`Pace`]): [`FREE`] at most.
//! 3. When these are used up the worker *looks* at all lists that have an entry, in its own shard as well. If
//!    each of them has given something as young as what the worker has taken, it may take `FREE` more. Otherwise a list
//!    *lags*: the worker takes an entry of the list that has given the oldest, and looks again before it takes anything
//!    else. A worker that finds nothing in its own shard and ring takes of that list as well.
//! 4. A shard with an abandoned stack counts as one with a list that has given nothing, and the worker takes that
//!    stack. An abandoned stack of the own shard goes before a look.
//!
//! # Bound
//!
//! *Before an entry is taken, each worker takes at most `FREE` + L - 1 entries that became ready after it was put in*,
//! where L is the number of lists: three for each group.
//!
//! Let entry e be put into list A, and T the time after that. As long as e is in A, A has given nothing younger than T:
//! what is taken from a FIFO list before e was put in before e, and stamped before that. Let worker w take an entry f
//! that is younger than T.
//!
//! - f was free. From now on w has taken something younger than T, so each of its looks finds that A lags, as long as e
//!   is there. So w takes nothing free after its next look: f and what follows are at most `FREE` entries.
//! - w took f because of a look, from list B, which had given the oldest: nothing younger than T, for A was there to
//!   choose. w notes what B has given before it looks again. So w does this once for each B, and B is not A: L - 1
//!   entries at most.
//!
//! The number of older entries, and how long they take, does not matter: a worker that is ahead works off what is
//! older, wherever it is. Nor does a worker wait for another one.
//!
//! What is not counted: abandoned stacks, which go before all others by the policy; brief work that has a turn
//! (`sched/rescue/turns.rs`), up to 64 pieces in each turn and half of the time in all; entries that turn out to be
//! stale; what a worker that searches finds in its own ring while the level is hidden for a moment. An entry in a
//! *ring* is its stack's to take, as before.
//!
//! The bound needs that a look sees an entry that was put in before something was stamped that the worker took. The
//! inserter shows the shard in the level's word (`groups.rs`) behind a barrier, before its insertion returns. Clocks of
//! two processors that differ by d make "after" mean "later by d".
//!
//! *Named mistake, "the own shard is in order anyway"*: a look that left it out let a worker that was ahead go over to
//! a list that lagged less than its own shard, for as many entries as that list had.
//!
//! # Cost
//!
//! A free taking costs what it costs with one queue, and a load and two stores on a line that only this worker writes.
//! A look reads the words and the ends of the lists of all groups that show something: five lines of a shard that is
//! empty, some more of one in which all places have something. That is for `FREE` entries, so long as no list lags.
//! The most lists that there can be are 192, three times `FREE`: of 64 groups.

use crate::sys::primitives::atomic::{AtomicU32, AtomicU64, Ordering};
use urgency_policy::pool::lagging;

#[cfg(not(urgency_loom))]
use urgency_policy::pool::FREE;
#[cfg(urgency_loom)]
const FREE: u32 = 1;

/// The youngest stamp that a list has given.
#[derive(Debug)]
pub(crate) struct Given {
    stamp: AtomicU64,
    /// There are other shards. If not, the word may go back for a moment, and costs no locked instruction.
    is_exact: bool,
}

impl Given {
    pub(crate) fn new(stamp: u64, is_exact: bool) -> Self {
        let stamp = AtomicU64::new(stamp);
        Given { stamp, is_exact }
    }

    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    /// The list gave an entry with this stamp.
    #[inline]
    pub(crate) fn note(&self, stamp: u64) {
        if !self.is_exact {
            self.stamp.store(stamp, Ordering::Relaxed);
        } else if self.stamp() < stamp {
            self.stamp.fetch_max(stamp, Ordering::Relaxed);
        }
    }
}

/// What a worker has taken at one level. Only its holder comes here.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    youngest: AtomicU64,
    free: AtomicU32,
}

impl Pace {
    /// Whether the worker must look before it takes anything.
    #[inline]
    pub(crate) fn must_look(&self) -> bool {
        self.free.load(Ordering::Relaxed) == 0
    }

    /// The worker took an entry with this stamp.
    #[inline]
    pub(crate) fn takes(&self, stamp: u64) {
        if self.youngest.load(Ordering::Relaxed) < stamp {
            self.youngest.store(stamp, Ordering::Relaxed);
        }
        let free = self.free.load(Ordering::Relaxed);
        self.free.store(free.saturating_sub(1), Ordering::Relaxed);
    }

    /// Looks at the lists that have an entry: which, and the youngest stamp that it has given. Returns the list to take
    /// from, if one lags, with that stamp.
    pub(crate) fn look<L>(&self, lists: impl Iterator<Item = (L, u64)>) -> Option<(L, u64)> {
        let lags = lagging(self.youngest.load(Ordering::Relaxed), lists);
        if lags.is_none() {
            self.free.store(FREE, Ordering::Relaxed);
        }
        lags
    }
}

#[cfg(all(test, urgency_loom))]
#[path = "pace_loom.rs"]
mod loom_models;
