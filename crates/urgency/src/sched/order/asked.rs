//! One worker's policy of an order within a level, as the queues ask it.
//!
//! A policy may be a user's. Here its answers are made to fit the level's structures, as
//! `urgency_policy::pool::PoolOrder` promises, so that the queues need no more checks:
//!
//! - a place that does not exist is the own queue; with central queues it is the regular one;
//! - a source that does not exist is nowhere, and then the queues are swept (`queues.rs`, rule 3);
//! - a policy that panics is not asked again, and each of its answers is one that does not exist. The panic has been
//!   printed by then. It goes no further, whatever the drop of its payload does: the calling code is the scheduler's.
//!   Nor does the panic of a policy's own drop;
//! - a policy that waits or forks panics by that (`policy_code.rs`, rule 2).

use crate::{
    sched::policy_code::{as_policy, drop_policy},
    tasks::discard_payload,
};
use urgency_policy::pool::{
    Arrival, Chooser, Layout, Place, PoolPolicy, Queue, Shed, Sight, Source,
};

/// The structures of a level, as far as answers can name them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) workers: usize,
    /// How many shared queues there are: two stand for the central ones.
    pub(super) shared: usize,
    pub(super) is_central: bool,
    pub(super) is_sorted: bool,
    pub(super) is_lock_free: bool,
    /// How many spawners may wait for room at once.
    pub(super) most_waiting: usize,
}

/// The number of the shared queue that is the mugging queue, in a central layout.
pub(super) const MUGGING: usize = 0;

/// The number of the shared queue that is the regular queue, in a central layout.
pub(super) const REGULAR: usize = 1;

impl Shape {
    pub(super) fn of(layout: Layout, workers: usize) -> Self {
        let shape = Shape {
            workers,
            shared: 1,
            is_central: false,
            is_sorted: false,
            is_lock_free: false,
            most_waiting: 0,
        };
        match layout {
            Layout::Central => Shape {
                shared: 2,
                is_central: true,
                ..shape
            },
            Layout::Deques => shape,
            Layout::Queues(queues) => Shape {
                shared: queues.shared,
                is_sorted: queues.by_depth,
                is_lock_free: queues.is_lock_free,
                most_waiting: if queues.spawners_wait {
                    queues.capacity
                } else {
                    0
                },
                ..shape
            },
        }
    }

    /// Where an entry of worker `me` goes of which no policy says anything.
    pub(super) fn usual_home(&self, me: usize) -> Home {
        match self.is_central {
            true => Home::Shared(REGULAR),
            false => Home::Worker(me),
        }
    }

    /// The number of a queue that all workers share, if it exists.
    pub(super) fn number_of(&self, queue: Queue) -> Option<usize> {
        match queue {
            Queue::Mugging => self.is_central.then_some(MUGGING),
            Queue::Regular => self.is_central.then_some(REGULAR),
            Queue::Shared(number) => (!self.is_central && number < self.shared).then_some(number),
        }
    }
}

/// Where an entry goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    Slot,
    /// This worker's queue.
    Worker(usize),
    /// The shared queue of this number.
    Shared(usize),
    /// The own queue, which is full: the spawner is to wait.
    Full,
}

/// See the module's text.
pub(super) struct Asked {
    me: usize,
    shape: Shape,
    /// `None`: it has panicked.
    policy: Option<Box<dyn PoolPolicy + Send>>,
}

impl Asked {
    pub(super) fn new(me: usize, shape: Shape, policy: Box<dyn PoolPolicy + Send>) -> Self {
        let policy = Some(policy);
        Asked { me, shape, policy }
    }

    fn ask<T>(&mut self, question: impl FnOnce(&mut (dyn PoolPolicy + Send)) -> T) -> Option<T> {
        let policy = self.policy.as_mut()?;
        let answer = as_policy(|| question(&mut **policy));
        let answer = answer.map_err(|payload| {
            // Broken off in the middle, it is not even dropped.
            std::mem::forget(self.policy.take());
            discard_payload(payload);
        });
        answer.ok()
    }

    pub(super) fn place(&mut self, arrival: Arrival, own: usize) -> Home {
        let place = self.ask(|policy| policy.place(arrival, own));
        let home = match place {
            Some(Place::Slot) if !self.shape.is_central => Some(Home::Slot),
            Some(Place::Full) if self.shape.most_waiting > 0 => Some(Home::Full),
            Some(Place::Worker(worker))
                if worker < self.shape.workers && !self.shape.is_central =>
            {
                Some(Home::Worker(worker))
            }
            Some(Place::Tail(queue)) => self.shape.number_of(queue).map(Home::Shared),
            _ => None,
        };
        home.unwrap_or(self.shape.usual_home(self.me))
    }

    /// A shared queue is named by its number among these.
    pub(super) fn take_from(&mut self, sight: Sight) -> Source {
        let source = self.ask(|policy| policy.take_from(sight));
        match source.unwrap_or(Source::Nowhere) {
            Source::Head(queue) => {
                let number = self.shape.number_of(queue);
                number.map_or(Source::Nowhere, |number| {
                    Source::Head(Queue::Shared(number))
                })
            }
            Source::Steal { victim, .. } if victim >= self.shape.workers => Source::Nowhere,
            source => source,
        }
    }

    /// May be a number of no deque.
    pub(super) fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        self.ask(|policy| policy.choose(deques, chooser))
            .unwrap_or(0)
    }

    pub(super) fn shed(&mut self, own: usize) -> Shed {
        match self.ask(|policy| policy.shed(own)) {
            Some(Shed::Ask(other) | Shed::Deal(other)) if other >= self.shape.workers => Shed::Keep,
            shed => shed.unwrap_or(Shed::Keep),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        drop_policy(self.policy.take());
    }
}

debug_struct!(Asked, |it| me: it.me, has_panicked: it.policy.is_none());
