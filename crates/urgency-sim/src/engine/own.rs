//! Orders of a user's own: their answers are made to fit, as `urgency_policy::pool::PoolOrder` promises, and what their
//! policies do not find is found.
//!
//! The runtime does the same (`sched/order/asked.rs` and rule 3 of `queues.rs` there). The built-in policies answer
//! with what exists, and nothing here is asked about them.

use super::Engine;
use crate::dag::Vertex;
use urgency_policy::{
    dice::Dice,
    pool::{
        AnyOrder, Arrival, Chooser, Layout, Left, Place, PoolPolicy, Queue, Shed, Sight, Source,
    },
};

/// How many looks of a worker may fail before it takes what it finds: as many as in the runtime.
const LOOKS: u32 = 16;

/// The policy of worker `me`.
pub(super) fn policy_of(
    (order, layout): (&AnyOrder, Layout),
    me: usize,
    workers: usize,
    dice: &Dice,
) -> Box<dyn PoolPolicy + Send> {
    let policy = order.policy(me, workers, dice);
    match order.kind() {
        Some(_) => policy,
        None => Box::new(Own {
            policy,
            layout,
            me,
            workers,
        }),
    }
}

/// The policy of one worker.
struct Own {
    policy: Box<dyn PoolPolicy + Send>,
    layout: Layout,
    me: usize,
    workers: usize,
}

impl PoolPolicy for Own {
    fn place(&mut self, arrival: Arrival, own: usize) -> Place {
        let place = self.policy.place(arrival, own);
        let fits = match (self.layout, place) {
            (Layout::Central, place) => matches!(
                place,
                Place::Tail(Queue::Mugging) | Place::Tail(Queue::Regular)
            ),
            (_, Place::Worker(worker)) => worker < self.workers,
            (Layout::Deques, place) => place == Place::Tail(Queue::Shared(0)),
            (Layout::Queues(all), Place::Tail(Queue::Shared(number))) => number < all.shared,
            (Layout::Queues(all), Place::Full) => all.spawners_wait && own >= all.capacity,
            (Layout::Queues(_), place) => place == Place::Slot,
        };
        match self.layout {
            _ if fits => place,
            Layout::Central => Place::Tail(Queue::Regular),
            _ => Place::Worker(self.me),
        }
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        let source = self.policy.take_from(sight);
        let fits = match (self.layout, source) {
            (Layout::Central, Source::Head(Queue::Mugging)) => sight.mugging,
            (Layout::Central, Source::Head(Queue::Regular)) => sight.regular,
            (Layout::Central, _) => false,
            (_, Source::Steal { victim, .. }) => victim < self.workers,
            (Layout::Deques, Source::Head(queue)) => queue == Queue::Shared(0) && sight.shared != 0,
            (Layout::Deques, source) => source == Source::OwnDeque && sight.own > 0,
            (Layout::Queues(all), Source::Head(Queue::Shared(number))) => number < all.shared,
            (Layout::Queues(_), Source::Advert { .. }) => sight.adverts,
            (Layout::Queues(_), source) => matches!(source, Source::Own(_)),
        };
        match self.layout {
            _ if fits => source,
            // What the policy does not find.
            Layout::Central if sight.mugging => Source::Head(Queue::Mugging),
            Layout::Central if sight.regular => Source::Head(Queue::Regular),
            _ => Source::Nowhere,
        }
    }

    fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        let nth = self.policy.choose(deques, chooser);
        nth.min(deques.saturating_sub(1))
    }

    fn after_steal(&mut self, left: Left) -> Place {
        match (self.layout, self.policy.after_steal(left)) {
            (Layout::Central, Place::Tail(_)) => Place::Tail(Queue::Regular),
            _ => Place::Dropped,
        }
    }

    fn shed(&mut self, own: usize) -> Shed {
        match self.policy.shed(own) {
            Shed::Ask(other) | Shed::Deal(other) if other >= self.workers => Shed::Keep,
            shed => shed,
        }
    }
}

impl Engine<'_> {
    /// What the worker takes of a level, after its own policy has looked in vain. `is_over`: it does not look again.
    pub(super) fn sweep(&mut self, me: usize, level: u8, is_over: bool) -> Option<Vertex> {
        let is_own = self.machine.pool.kind().is_none();
        if !is_own || !is_over && self.workers[me].failed < LOOKS {
            return None;
        }
        match self.layout {
            Layout::Central => None,
            Layout::Deques => self.sweep_deques(me, level),
            Layout::Queues(_) => self.sweep_queues(me, level),
        }
    }

    fn others_from(&self, me: usize) -> impl Iterator<Item = usize> + use<> {
        let workers = self.workers.len();
        (0..workers).map(move |step| (me + step) % workers)
    }

    fn sweep_deques(&mut self, me: usize, level: u8) -> Option<Vertex> {
        for worker in self.others_from(me) {
            if let Some(&deque) = self.deques.set(worker, level).first() {
                return self.take_from_deque(me, deque).map(|(vertex, _)| vertex);
            }
        }
        let yielded = &self.deques.central[usize::from(level)].regular;
        if yielded.is_empty() {
            return None;
        }
        match self.look_at_yielded(me, level) {
            super::find::Look::Found(vertex, _) => Some(vertex),
            _ => None,
        }
    }

    fn sweep_queues(&mut self, me: usize, level: u8) -> Option<Vertex> {
        if let Some(vertex) = self.queues.slot(me, level).take() {
            return Some(vertex);
        }
        let mut others = self.others_from(me);
        let found = others.find_map(|worker| self.queues.own(worker, level).pop_front());
        let occupied = self.queues.occupied(level);
        let found = found.or_else(|| {
            let number = (occupied != 0).then(|| occupied.trailing_zeros() as usize);
            self.queues.shared(level, number?).pop_front()
        });
        if found.is_some() {
            self.seen(level, false);
        }
        found
    }
}
