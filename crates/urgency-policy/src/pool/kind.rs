//! The pool policies by name, and one type for all of them.

use super::{
    Aging, Amount, Arrival, Asking, Chooser, Left, Order, Overflow, Pick, Place, Plan, PlanError,
    PoolPolicy, Proactive, Queues, Sharing, Shed, Sight, Source, Victims,
};
use crate::dice::Dice;
use core::{fmt, str::FromStr};

/// Which pool policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Aging`].
    #[default]
    Aging,
    /// [`Proactive`].
    Proactive {
        /// What an owner picks of its resumable deques.
        owner: Pick,
        /// What a thief picks of its victim's deques.
        thief: Pick,
    },
    /// [`Queues`].
    Queues(Plan),
}

const fn proactive(owner: Pick, thief: Pick) -> Kind {
    Kind::Proactive { owner, thief }
}

const fn fifo(order: Order) -> Kind {
    Kind::Queues(Plan::FIFO.in_order(order))
}

const fn stealing(victims: Victims, amount: Amount, least: usize) -> Kind {
    let steal = Sharing::Steal {
        victims,
        amount,
        least,
    };
    Kind::Queues(Plan::FIFO.shared_by(steal))
}

const fn requesting(asking: Asking) -> Kind {
    Kind::Queues(Plan::FIFO.shared_by(Sharing::Request { asking, load: 8 }))
}

const fn overflowing(capacity: usize, overflow: Overflow) -> Kind {
    let mut plan = Plan::FIFO.bounded(capacity, overflow);
    plan.look = 10;
    Kind::Queues(plan)
}

impl Kind {
    /// All that have a name, with what it stands for.
    ///
    /// ```
    /// use urgency_policy::pool::Kind;
    ///
    /// for (name, kind, what) in Kind::NAMED {
    ///     assert_eq!(name.parse(), Ok(kind), "{what}");
    /// }
    /// ```
    pub const NAMED: [(&'static str, Kind, &'static str); 24] = [
        (
            "aging",
            Kind::Aging,
            "one FIFO queue for all, abandoned stacks first (the default)",
        ),
        (
            "proactive",
            proactive(Pick::Random, Pick::Random),
            "random stealing, whole deques suspended and donated (Cilk-L)",
        ),
        (
            "proactive-newest",
            proactive(Pick::Newest, Pick::Newest),
            "the same, newest deque first (the source of I-Cilk)",
        ),
        (
            "proactive-aging",
            proactive(Pick::Oldest, Pick::Random),
            "the same, own resumable deques oldest first (Adaptive + aging)",
        ),
        (
            "parsimonious",
            Kind::Queues(Plan::PARSIMONIOUS),
            "own newest first, one stolen at random, nothing suspended",
        ),
        (
            "fifo",
            Kind::Queues(Plan::FIFO),
            "own oldest first, half stolen at random",
        ),
        (
            "lifo",
            fifo(Order::Newest),
            "own newest first, half stolen at random",
        ),
        (
            "slot",
            fifo(Order::Slot { most: 3 }),
            "fifo with a slot for the newest (Go, Tokio)",
        ),
        (
            "alternating",
            fifo(Order::Alternating),
            "newest and oldest in turn",
        ),
        (
            "mix",
            fifo(Order::Mix { newest: 50 }),
            "newest or oldest by lot",
        ),
        (
            "mix-newest",
            fifo(Order::Mix { newest: 80 }),
            "newest in 4 of 5",
        ),
        (
            "mix-oldest",
            fifo(Order::Mix { newest: 20 }),
            "oldest in 4 of 5",
        ),
        (
            "reverse",
            fifo(Order::Reverse { every: 256 }),
            "lifo, turned around every 256",
        ),
        (
            "steal-one",
            stealing(Victims::All, Amount::One, 1),
            "fifo, one stolen",
        ),
        (
            "steal-ten",
            stealing(Victims::All, Amount::Half, 10),
            "fifo, nothing stolen from queues below ten",
        ),
        (
            "neighbours",
            stealing(Victims::Neighbours(15), Amount::Half, 1),
            "fifo, stealing from the next 15",
        ),
        (
            "request",
            requesting(Asking::Simple),
            "fifo, the busy ask a random worker to steal",
        ),
        (
            "request-sticky",
            requesting(Asking::Sticky),
            "the same, and it comes back",
        ),
        (
            "request-advertised",
            requesting(Asking::Advertised),
            "the busy advertise, the free read",
        ),
        (
            "overflow",
            overflowing(128, Overflow::Shared(1)),
            "fifo of 128, the rest in one shared queue",
        ),
        (
            "overflow-lock-free",
            overflowing(128, Overflow::LockFree(1)),
            "the same, and that queue has no lock",
        ),
        (
            "overflow-multi",
            overflowing(128, Overflow::Shared(5)),
            "fifo of 128, the rest in five",
        ),
        (
            "bounded",
            Kind::Queues(Plan::FIFO.bounded(128, Overflow::Wait)),
            "fifo of 128, spawners wait",
        ),
        (
            "banks",
            Kind::Queues(Plan::BANKS),
            "own deepest first, a quarter of the fork potential dealt",
        ),
    ];

    /// The policy of one worker of so many.
    pub fn policy(self, me: usize, workers: usize, dice: &Dice) -> Policy {
        let dice = dice.split(me as u64);
        match self {
            Kind::Aging => Policy::Aging(Aging),
            Kind::Proactive { owner, thief } => {
                Policy::Proactive(Proactive::new(me, workers, owner, thief, dice))
            }
            Kind::Queues(plan) => Policy::Queues(Queues::new(me, workers, plan, dice)),
        }
    }

    /// Whether its numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub fn check(self) -> Result<(), PlanError> {
        match self {
            Kind::Queues(plan) => plan.check(),
            Kind::Aging | Kind::Proactive { .. } => Ok(()),
        }
    }

    /// How many shared queues a level needs under it.
    pub fn shared_queues(self) -> usize {
        match self {
            Kind::Queues(plan) => plan.shared_queues(),
            Kind::Proactive { .. } => 1,
            Kind::Aging => 0,
        }
    }
}

/// The name of a pool policy that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindError;

impl fmt::Display for KindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no pool policy of this name; there are")?;
        for (number, (name, ..)) in Kind::NAMED.iter().enumerate() {
            write!(f, "{} {name}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for KindError {}

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(name: &str) -> Result<Self, KindError> {
        let found = Kind::NAMED.iter().find(|(known, ..)| *known == name);
        found.map(|(_, kind, _)| *kind).ok_or(KindError)
    }
}

/// The policy of one worker, of any kind; [`Kind::policy`] makes it.
///
/// ```
/// use urgency_policy::{dice::Dice, pool::{Kind, Policy}};
///
/// let policy: Policy = Kind::Aging.policy(0, 4, &Dice::new(1));
/// assert!(matches!(policy, Policy::Aging(_)));
/// ```
#[derive(Clone, Debug)]
pub enum Policy {
    /// See [`Aging`].
    Aging(Aging),
    /// See [`Proactive`].
    Proactive(Proactive),
    /// See [`Queues`].
    Queues(Queues),
}

/// The same call of whatever policy it is.
macro_rules! each {
    ($self:ident.$call:ident($($argument:ident),*)) => {
        match $self {
            Policy::Aging(policy) => policy.$call($($argument),*),
            Policy::Proactive(policy) => policy.$call($($argument),*),
            Policy::Queues(policy) => policy.$call($($argument),*),
        }
    };
}

impl PoolPolicy for Policy {
    #[inline]
    fn place(&mut self, arrival: Arrival, own: usize) -> Place {
        each!(self.place(arrival, own))
    }

    #[inline]
    fn take_from(&mut self, sight: Sight) -> Source {
        each!(self.take_from(sight))
    }

    #[inline]
    fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        each!(self.choose(deques, chooser))
    }

    #[inline]
    fn after_steal(&mut self, left: Left) -> Place {
        each!(self.after_steal(left))
    }

    #[inline]
    fn shed(&mut self, own: usize) -> Shed {
        each!(self.shed(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_named_policy_is_found_by_its_name_and_no_two_are_the_same() {
        for (number, (name, kind, _)) in Kind::NAMED.iter().enumerate() {
            assert_eq!(name.parse(), Ok(*kind));
            for (_, other, _) in &Kind::NAMED[..number] {
                assert_ne!(kind, other, "{name} is there twice");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "filo".parse::<Kind>().unwrap_err().to_string();
        assert!(error.contains("fifo, lifo, slot"), "{error}");
    }
}
