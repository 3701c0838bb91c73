//! A plan for the queues of workers: what distinguishes the schedulers that have a queue for each
//! (`queues.rs` runs it).
//!
//! It says in which [`Order`] a worker takes from its own queue, how work is [shared](Sharing) between
//! workers, how long a queue may get and what then ([`Overflow`]).

use super::{Amount, Order, Sharing, Victims};
use core::fmt;

/// What happens when a worker's queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// It grows.
    Grow,
    /// The spawner waits for room.
    Wait,
    /// The entry goes to one of so many shared queues, at random.
    Shared(usize),
    /// The same; the queues are to have no lock.
    LockFree(usize),
}

/// The most shared queues: a [`Sight`](super::Sight) has a bit for each.
pub(super) const MOST_SHARED: usize = u64::BITS as usize;

/// Which number of a [`Plan`] is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A queue holds no entry.
    Capacity,
    /// The number of shared queues is not between 1 and 64.
    SharedQueues(usize),
    /// A probability is above 100 percent.
    Percent(u8),
    /// A queue is to be reversed after every 0 takings.
    Every,
    /// A thief has no neighbours.
    Reach,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity => write!(
                f,
                "a queue with a capacity of 0 entries was asked for; it must hold at least 1"
            ),
            Self::SharedQueues(given) => write!(
                f,
                "{given} shared queues were asked for; there can be 1 to {MOST_SHARED}"
            ),
            Self::Percent(given) => write!(
                f,
                "the newest entry is to be taken with {given} percent; it is a probability, 0 to 100"
            ),
            Self::Every => write!(
                f,
                "a queue is to be reversed after every 0 takings; it must be at least 1: `Order::Oldest` takes the oldest always"
            ),
            Self::Reach => write!(
                f,
                "thieves are to look at their next 0 neighbours; it must be at least 1"
            ),
        }
    }
}

impl core::error::Error for PlanError {}

/// What distinguishes these schedulers.
///
/// ```
/// use urgency_policy::{
///     dice::Dice,
///     pool::{Chooser, Kind, Order, Overflow, Plan, PoolPolicy, Sharing, Shed},
/// };
///
/// // The newest first, dealt, in queues of 64, with two shared ones behind them.
/// let plan = Plan::FIFO
///     .in_order(Order::Newest)
///     .shared_by(Sharing::Deal)
///     .bounded(64, Overflow::Shared(2));
/// plan.check()?;
/// let mut policy = Kind::Queues(plan).policy(0, 4, &Dice::new(1));
/// assert_eq!(policy.shed(0), Shed::Keep, "it has nothing to give");
/// assert_eq!(policy.choose(1, Chooser::Thief), 0, "there is one");
///
/// assert_eq!(Plan::PARSIMONIOUS.order, Order::Newest);
/// assert_eq!(Plan::BANKS.sharing, Sharing::Deal);
/// # Ok::<(), urgency_policy::pool::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// In which order a worker takes from its own queue.
    pub order: Order,
    /// How work comes to other workers.
    pub sharing: Sharing,
    /// How many entries a queue holds before it overflows.
    pub capacity: usize,
    /// What happens then.
    pub overflow: Overflow,
    /// Every how many looks a worker looks at the shared queues first; 0 for never.
    pub look: u32,
}

impl Plan {
    /// First in, first out; a worker without entries steals half of a random queue; queues grow.
    pub const FIFO: Plan = Plan {
        order: Order::Oldest,
        sharing: Sharing::Steal {
            victims: Victims::All,
            amount: Amount::Half,
            least: 1,
        },
        capacity: 256,
        overflow: Overflow::Grow,
        look: 32,
    };

    /// Parsimonious stealing: the newest first, one stolen at a time.
    pub const PARSIMONIOUS: Plan = Plan {
        order: Order::Newest,
        sharing: Sharing::Steal {
            victims: Victims::All,
            amount: Amount::One,
            least: 1,
        },
        ..Plan::FIFO
    };

    /// Depth-ordered banks: the deepest first, a quarter of the fork potential dealt.
    pub const BANKS: Plan = Plan {
        order: Order::Deepest,
        sharing: Sharing::Deal,
        ..Plan::FIFO
    };

    /// This plan in another order.
    #[must_use]
    pub const fn in_order(self, order: Order) -> Plan {
        Plan { order, ..self }
    }

    /// This plan with another way of sharing.
    #[must_use]
    pub const fn shared_by(self, sharing: Sharing) -> Plan {
        Plan { sharing, ..self }
    }

    /// This plan with queues that hold so many.
    #[must_use]
    pub const fn bounded(self, capacity: usize, overflow: Overflow) -> Plan {
        Plan {
            capacity,
            overflow,
            ..self
        }
    }

    /// Whether its numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.capacity == 0 {
            return Err(PlanError::Capacity);
        }
        match self.overflow {
            Overflow::Shared(queues) | Overflow::LockFree(queues)
                if !(1..=MOST_SHARED).contains(&queues) =>
            {
                return Err(PlanError::SharedQueues(queues));
            }
            _ => {}
        }
        match self.order {
            Order::Mix { newest } if newest > 100 => return Err(PlanError::Percent(newest)),
            Order::Reverse { every: 0 } => return Err(PlanError::Every),
            _ => {}
        }
        match self.sharing {
            Sharing::Steal {
                victims: Victims::Neighbours(0),
                ..
            } => Err(PlanError::Reach),
            _ => Ok(()),
        }
    }

    /// How many shared queues it needs: at least one, for far yields.
    pub fn shared_queues(&self) -> usize {
        match self.overflow {
            Overflow::Shared(queues) | Overflow::LockFree(queues) => queues.max(1),
            Overflow::Grow | Overflow::Wait => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_their_range_are_named() {
        let mix = |newest| Plan::FIFO.in_order(Order::Mix { newest }).check();
        assert_eq!((mix(100), mix(101)), (Ok(()), Err(PlanError::Percent(101))));
        let bounded = |capacity, overflow| Plan::FIFO.bounded(capacity, overflow).check();
        assert_eq!(bounded(0, Overflow::Grow), Err(PlanError::Capacity));
        assert_eq!(
            bounded(1, Overflow::Shared(65)),
            Err(PlanError::SharedQueues(65))
        );
        for (name, kind, _) in super::super::Kind::NAMED {
            assert_eq!(kind.check(), Ok(()), "{name}");
        }
    }
}
