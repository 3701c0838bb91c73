//! A queue for each worker: the schedulers of Go, Tokio, OCaml's and many others, as one type with a plan.

use super::{
    Amount, Arrival, Asking, Left, Order, Overflow, Picker, Place, Plan, PoolPolicy, Queue,
    Sharing, Shed, Sight, Source, Victims,
};
use crate::dice::Dice;

/// After so many failed looks in a row a thief takes from anybody.
const RESCUE: u32 = 8;

/// One worker's view of such a scheduler.
///
/// What distinguishes them is a [`Plan`]. Stacks are not bound to a queue: a stack that waits leaves its worker the
/// rest (*parsimonious* stealing), and a stack that becomes ready goes to the queue of the worker that made it ready.
///
/// # Rules
///
/// 1. Now and then, every [`Plan::look`]-th time, a worker looks at the shared queues first. Otherwise what is
///    there, overflow and far yields, would wait as long as any queue has work.
/// 2. Otherwise it takes from its own queue; then it does what somebody asked of it, looks at the adverts, at the
///    shared queues, and steals.
/// 3. What is yielded goes to the end of the own queue, unless the order has no end that is taken last
///    ([`Order::Newest`] and its kin would give it straight back): then to a shared queue, as all far yields.
///
/// ```
/// use urgency_policy::{dice::Dice, pool::{Arrival, End, Plan, Place, PoolPolicy, Queues, Sight, Source}};
///
/// let mut policy = Queues::new(0, 4, Plan::FIFO, Dice::new(1));
/// assert_eq!(policy.place(Arrival::Task, 10), Place::Worker(0));
/// let sight = Sight { own: 11, ..Sight::default() };
/// assert_eq!(policy.take_from(sight), Source::Own(End::Oldest));
/// assert!(matches!(policy.take_from(Sight::default()), Source::Steal { victim: 1..4, .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues {
    me: usize,
    workers: usize,
    plan: Plan,
    picker: Picker,
    dice: Dice,
    looks: u32,
    /// The worker that asked it last, if requests are sticky.
    sticks_to: Option<usize>,
}

impl Queues {
    /// For the worker with the number `me` of so many.
    pub fn new(me: usize, workers: usize, plan: Plan, dice: Dice) -> Self {
        Queues {
            me,
            workers,
            plan,
            picker: Picker::new(plan.order, dice.split(1)),
            dice,
            looks: 0,
            sticks_to: None,
        }
    }

    /// Any other worker, or this one if there is no other.
    fn anybody(&mut self) -> usize {
        self.among(self.workers.saturating_sub(1))
    }

    /// One of the `reach` workers that follow.
    fn among(&mut self, reach: usize) -> usize {
        let reach = reach.min(self.workers.saturating_sub(1));
        if reach == 0 {
            return self.me;
        }
        let step = 1 + self.dice.below(reach as u64) as usize;
        (self.me + step) % self.workers
    }

    /// One of the shared queues that have an entry.
    fn a_shared(&mut self, occupied: u64) -> Queue {
        let mut rest = occupied;
        for _ in 0..self.dice.below(u64::from(occupied.count_ones())) {
            rest &= rest - 1;
        }
        Queue::Shared(rest.trailing_zeros() as usize)
    }

    fn steal(&mut self, failed: u32) -> Source {
        let rescues = failed % RESCUE == RESCUE - 1;
        let (victim, amount, least) = match self.plan.sharing {
            Sharing::Steal {
                victims,
                amount,
                least,
            } => {
                let victim = match victims {
                    Victims::Neighbours(reach) if !rescues => self.among(reach),
                    _ => self.anybody(),
                };
                (victim, amount, if rescues { 1 } else { least })
            }
            Sharing::Request { .. } if rescues => (self.anybody(), Amount::Half, 1),
            Sharing::Request { .. } | Sharing::Deal => return Source::Nowhere,
        };
        if victim == self.me {
            return Source::Nowhere;
        }
        Source::Steal {
            victim,
            amount,
            least,
        }
    }
}

impl PoolPolicy for Queues {
    fn place(&mut self, arrival: Arrival, own: usize) -> Place {
        let shared = |this: &mut Self| {
            let queues = this.plan.shared_queues() as u64;
            Place::Tail(Queue::Shared(this.dice.below(queues) as usize))
        };
        match arrival {
            Arrival::YieldedFar => return shared(self),
            Arrival::Yielded if matches!(self.plan.order, Order::Newest | Order::Deepest) => {
                return shared(self);
            }
            Arrival::Task | Arrival::Resumable
                if matches!(self.plan.order, Order::Slot { .. }) && own < self.plan.capacity =>
            {
                return Place::Slot;
            }
            _ => {}
        }
        if own < self.plan.capacity {
            return Place::Worker(self.me);
        }
        match self.plan.overflow {
            Overflow::Grow => Place::Worker(self.me),
            Overflow::Wait => Place::Full,
            Overflow::Shared(_) | Overflow::LockFree(_) => shared(self),
        }
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        self.looks = self.looks.wrapping_add(1);
        if self.plan.look > 0 && self.looks.is_multiple_of(self.plan.look) && sight.shared != 0 {
            return Source::Head(self.a_shared(sight.shared));
        }
        if sight.own > 0 || sight.slot {
            return Source::Own(self.picker.pick(sight.own, sight.slot));
        }
        if let Sharing::Request { asking, .. } = self.plan.sharing {
            let asked_by = match asking {
                Asking::Simple => sight.asked_by,
                Asking::Sticky => {
                    self.sticks_to = sight.asked_by.or(self.sticks_to);
                    self.sticks_to
                }
                Asking::Advertised if sight.adverts => {
                    return Source::Advert {
                        amount: Amount::Half,
                    };
                }
                Asking::Advertised => None,
            };
            if let Some(victim) = asked_by
                && victim != self.me
                // A sticky victim may have nothing left: the others come in between.
                && sight.failed.is_multiple_of(2)
            {
                return Source::Steal {
                    victim,
                    amount: Amount::Half,
                    least: 1,
                };
            }
        }
        if sight.shared != 0 {
            return Source::Head(self.a_shared(sight.shared));
        }
        self.steal(sight.failed)
    }

    fn after_steal(&mut self, _left: Left) -> Place {
        Place::Dropped
    }

    fn shed(&mut self, own: usize) -> Shed {
        match self.plan.sharing {
            Sharing::Steal { .. } => Shed::Keep,
            Sharing::Request { asking, load } => {
                if own < load || self.workers < 2 {
                    return Shed::Keep;
                }
                match asking {
                    Asking::Simple | Asking::Sticky => Shed::Ask(self.anybody()),
                    Asking::Advertised => Shed::Advertise,
                }
            }
            Sharing::Deal => {
                if own <= 1 || self.workers < 2 {
                    return Shed::Keep;
                }
                Shed::Deal(self.anybody())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::End, *};
    use proptest::prelude::*;

    fn policy(plan: Plan) -> Queues {
        Queues::new(5, 64, plan, Dice::new(11))
    }

    const NEIGHBOURS: Sharing = Sharing::Steal {
        victims: Victims::Neighbours(15),
        amount: Amount::Half,
        least: 10,
    };

    #[test]
    fn neighbours_are_within_reach_and_small_queues_left_alone_except_to_rescue() {
        let mut thief = policy(Plan::FIFO.shared_by(NEIGHBOURS));
        for failed in 0..200 {
            let sight = Sight {
                failed,
                ..Sight::default()
            };
            let Source::Steal { victim, least, .. } = thief.take_from(sight) else {
                panic!("a thief steals");
            };
            if failed % RESCUE == RESCUE - 1 {
                assert_eq!(least, 1);
            } else {
                assert!((6..=20).contains(&victim), "{victim}");
                assert_eq!(least, 10);
            }
        }
    }

    #[test]
    fn a_full_queue_overflows_as_the_plan_says() {
        let at = |overflow| policy(Plan::FIFO.bounded(8, overflow)).place(Arrival::Task, 8);
        assert_eq!(at(Overflow::Grow), Place::Worker(5));
        assert_eq!(at(Overflow::Wait), Place::Full);
        assert_eq!(at(Overflow::Shared(1)), Place::Tail(Queue::Shared(0)));
        assert!(matches!(
            at(Overflow::Shared(20)),
            Place::Tail(Queue::Shared(0..20))
        ));
        assert_eq!(policy(Plan::FIFO).place(Arrival::Task, 7), Place::Worker(5));
    }

    #[test]
    fn shared_queues_are_looked_at_regularly_though_the_own_queue_has_work() {
        let mut policy = policy(Plan::FIFO);
        let sight = Sight {
            own: 9,
            shared: 0b100,
            ..Sight::default()
        };
        let looks = (0..320).filter(|_| policy.take_from(sight) == Source::Head(Queue::Shared(2)));
        assert_eq!(looks.count(), 10);
    }

    #[test]
    fn a_simple_request_is_followed_once_and_a_sticky_one_until_another_asks() {
        let by = |asking| policy(Plan::FIFO.shared_by(Sharing::Request { asking, load: 4 }));
        let asked = |by| Sight {
            asked_by: by,
            ..Sight::default()
        };
        let from = |source| match source {
            Source::Steal { victim, .. } => Some(victim),
            _ => None,
        };
        let mut simple = by(Asking::Simple);
        assert_eq!(from(simple.take_from(asked(Some(9)))), Some(9));
        assert_eq!(from(simple.take_from(asked(None))), None);
        let mut sticky = by(Asking::Sticky);
        for (asked_by, victim) in [(Some(9), 9), (None, 9), (Some(2), 2), (None, 2)] {
            assert_eq!(from(sticky.take_from(asked(asked_by))), Some(victim));
        }
    }

    #[test]
    fn only_the_overloaded_ask_and_only_the_free_read_adverts() {
        let mut policy = policy(Plan::FIFO.shared_by(Sharing::Request {
            asking: Asking::Advertised,
            load: 4,
        }));
        assert_eq!(policy.shed(3), Shed::Keep);
        assert_eq!(policy.shed(4), Shed::Advertise);
        let busy = Sight {
            own: 1,
            adverts: true,
            ..Sight::default()
        };
        assert_eq!(policy.take_from(busy), Source::Own(End::Oldest));
        let free = Sight { own: 0, ..busy };
        assert_eq!(
            policy.take_from(free),
            Source::Advert {
                amount: Amount::Half
            }
        );
    }

    #[test]
    fn a_yield_never_comes_straight_back() {
        let far = |plan| policy(plan).place(Arrival::Yielded, 0);
        assert!(matches!(
            far(Plan::PARSIMONIOUS),
            Place::Tail(Queue::Shared(_))
        ));
        assert_eq!(far(Plan::FIFO), Place::Worker(5));
        let mut slot = policy(Plan::FIFO.in_order(Order::Slot { most: 3 }));
        assert_eq!(slot.place(Arrival::Yielded, 0), Place::Worker(5));
        assert_eq!(slot.place(Arrival::Task, 0), Place::Slot);
    }

    #[test]
    fn a_bank_with_one_entry_deals_nothing() {
        let mut policy = policy(Plan::BANKS);
        assert_eq!(policy.shed(1), Shed::Keep);
        assert!(matches!(policy.shed(2), Shed::Deal(worker) if worker != 5));
    }

    proptest! {
        #[test]
        fn no_worker_ever_steals_from_or_asks_itself(
            me in 0usize..9,
            extra in 0usize..9,
            failed in 0u32..40,
            reach in 0usize..20,
        ) {
            let workers = me + 1 + extra;
            let victims = Victims::Neighbours(reach);
            let sharing = Sharing::Steal { victims, amount: Amount::One, least: 1 };
            for sharing in [sharing, Sharing::Request { asking: Asking::Simple, load: 0 }, Sharing::Deal] {
                let mut policy = Queues::new(me, workers, Plan::FIFO.shared_by(sharing), Dice::new(3));
                let sight = Sight { failed, ..Sight::default() };
                if let Source::Steal { victim, .. } = policy.take_from(sight) {
                    prop_assert!(victim != me && victim < workers);
                }
                if let Shed::Ask(other) | Shed::Deal(other) = policy.shed(100) {
                    prop_assert!(other != me && other < workers);
                }
            }
        }
    }
}
