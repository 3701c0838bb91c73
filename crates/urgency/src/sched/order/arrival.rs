//! What becomes ready at a level with another pool policy than aging: at which worker, and as what.
//!
//! The policies distinguish arrivals that are alike under aging: a new closure, a task that was woken, a task that
//! yields, near or far. They are told apart here, so that the default path does not ask.
//!
//! - An entry becomes ready *at the worker* that the calling stack holds. A thread of the runtime that comes from the
//!   poller counts as the worker that it held last; a thread from outside counts as no worker.
//! - A task that is inserted by its own poll *yields*.

use super::{entry::Entry, queues::Queues};
use crate::protocol::attention::FULL;
use crate::sched::{
    job::Job,
    poll_context,
    stack::{Me, Stack},
};
use crate::tasks::TaskRef;
use std::cell::Cell;
use urgency_policy::pool::Arrival;

thread_local! {
    /// The poll on this thread that yielded last does so until something else has happened.
    static FAR: Cell<bool> = const { Cell::new(false) };
}

/// The poll on the calling thread is about to yield, perhaps in the far form. (The form is not asked for after a poll
/// that ends all the same, or a yield that is not a task's.)
pub(crate) fn yields(is_far: bool) {
    FAR.set(is_far);
    poll_context::yields();
}

impl Job {
    /// A task became ready whose level has queues.
    #[cold]
    pub(crate) fn insert_task_into_queues(&self, task: TaskRef) {
        let level = task.level();
        let yields =
            Stack::with_current(|me| me.is_some_and(|me| me.task() == Some(task.as_raw())));
        let arrival = if yields {
            if FAR.take() {
                Arrival::YieldedFar
            } else {
                Arrival::Yielded
            }
        } else if task.is_closure() {
            Arrival::Root
        } else {
            Arrival::Task
        };
        self.put(level, arrival, Entry::Task(task));
    }

    /// Puts an entry into the queues of a level.
    #[cold]
    pub(crate) fn put_into_queues(
        &self,
        queues: &Queues,
        level: u8,
        arrival: Arrival,
        entry: Entry,
    ) {
        Stack::with_own(|me| {
            let me = me.filter(|me| me.is_of(self));
            let at = me.and_then(|me| self.core.worker_of(me.shared()));
            let at = at.map(|worker| worker.id);
            let waits = queues.push(at, arrival, entry);
            if waits
                && let Some(me) = me
                && me.level() == level
            {
                me.attention.request(FULL);
            }
        });
    }

    /// The stack filled a bounded queue: what is in it goes first, once.
    #[cold]
    pub(crate) fn wait_for_room(&self, me: Me<'_>) {
        if let Some(queues) = self.pools.at(me.level()).queues() {
            queues.as_waiting_spawner(|| {
                self.give_turn(me);
            });
        }
    }
}
