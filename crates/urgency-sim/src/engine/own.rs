//! Orders of a user's own: their answers are made to fit, and what their policies do not find is found.
//!
//! The runtime does the same (rule 3 of `sched/order/queues.rs` there). The built-in policies answer with what exists,
//! and nothing here is asked about them.

use super::{Engine, find::Look};
use urgency_policy::{
    dice::Dice,
    pool::{Amount, AnyOrder, Fitted, LOOKS, Layout, PoolPolicy, Queue, around},
};

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
        None => Box::new(Fitted::new((layout, workers), me, policy)),
    }
}

impl Engine<'_> {
    /// Whether the order is a user's own.
    pub(super) fn is_own(&self) -> bool {
        self.machine.pool.kind().is_none()
    }

    /// What the worker takes of a level, after its own policy has looked in vain; `is_over`: it does not look again.
    /// It costs as much as if the policy had looked there. What has nothing is passed by without a look.
    pub(super) fn sweep(&mut self, me: usize, level: u8, is_over: bool) -> Look {
        if !self.is_own() || !is_over && self.workers[me].failed < LOOKS {
            return Look::Empty;
        }
        match self.layout {
            Layout::Central => self.sweep_central(me, level),
            Layout::Deques => self.sweep_deques(me, level),
            Layout::Queues(_) => self.sweep_queues(me, level),
        }
    }

    fn sweep_central(&mut self, me: usize, level: u8) -> Look {
        for queue in [Queue::Mugging, Queue::Regular] {
            while !self.deques.central(level, queue).is_empty() {
                let look = self.look_at_head(me, level, queue);
                if let Look::Found(..) = look {
                    return look;
                }
            }
        }
        Look::Empty
    }

    fn sweep_deques(&mut self, me: usize, level: u8) -> Look {
        for worker in around(me, self.workers.len()) {
            if let Some(&deque) = self.deques.set(worker, level).first() {
                return self.look_at_deque(me, worker, Some(deque));
            }
        }
        self.sweep_central(me, level)
    }

    fn sweep_queues(&mut self, me: usize, level: u8) -> Look {
        if let Some(vertex) = self.queues.slot(me, level).take() {
            return Look::Found(vertex, 0);
        }
        if let Some(vertex) = self.queues.own(me, level).pop_front() {
            self.seen(level, false);
            return Look::Found(vertex, 0);
        }
        for worker in around(me, self.workers.len()) {
            if self.queues.len(worker, level) > 0 {
                return self.steal_from_queue(me, level, worker, Amount::One, 1);
            }
        }
        match self.queues.occupied(level) {
            0 => Look::Empty,
            shared => self.look_at_shared(level, shared.trailing_zeros() as usize),
        }
    }
}
