//! What a job's container hears of what the job asks for.
//!
//! # Races
//!
//! - *Two changes of one job's priority.* Each reads what the job asks for, and what waits for it, under the lock under
//!   which the runtime is told. So the last one tells what holds.
//! - *A change against a start, or against the end.* A job gets its container, and gives it up, under that same lock.
//!   So a start reads what was changed, or the change finds the container; and no change comes to the container's next
//!   job. A start that cannot have what it reads does not begin: the change was of a queued job, and had no error.
//! - *A change against code of the program.* What follows from a change starts threads, whose names are code of the
//!   program, and may drop the last reference to a runtime, and so what is the program's. All of that comes after the
//!   lock of the telling is released, and so in any order: it looks at what each job asks for then. (A program whose
//!   code took a lock there that another thread had while it changed the same job's demand waited for ever.)
//! - *The core policy against a change.* A thread that tells the runtime asks for the turn to decide, under the lock of
//!   the telling. So code of the policy, which has the turn, never waits for that lock: it may look at jobs and cancel
//!   them (the lock of the stage, which is not held meanwhile), and another demand is refused first. The end of a wait
//!   is news (`protocol/turn.rs`) to a thread that has the lock. (A policy that cancelled a job waited for ever for a
//!   thread that changed the job's demand. After a policy had dropped a handle, its job stayed as urgent as the wait.)

use super::Record;
use crate::{BuildError, sys::mutex::MutexGuard};
use urgency_policy::cores::{Demand, Refusal};

impl Record {
    pub(in crate::jobs) fn set_demand(&self, demand: Demand) -> Result<(), BuildError> {
        if self.is_deciding() {
            return Err(Refusal::Deciding.into());
        }
        if let Some(set) = self.set.upgrade() {
            set.could_keep(demand)?;
        }
        let telling = self.tells.take();
        let inherited = self.inherited(demand);
        let change = || {
            *self.demand.lock() = demand;
            self.tells.give_back(telling);
        };
        let told = match self.container() {
            Some(handle) => handle.job().set_demand_and(inherited, change),
            None => {
                change();
                Ok(())
            }
        };
        if told.is_ok()
            && let Some(set) = self.set.upgrade()
        {
            set.demand_changed(self);
        }
        // After a refusal as well: there may be news.
        self.tell_all();
        Ok(told?)
    }

    /// Whether the calling code is the core policy's, in a decision.
    fn is_deciding(&self) -> bool {
        self.set.upgrade().is_some_and(|set| set.is_deciding())
    }

    /// The container hears how urgent the job is now, by its own priority or by a waiter's. All else that it asks for
    /// it has heard. (The policy was asked, and might refuse: then the job for which a more urgent one waited stayed
    /// as it was, and nobody heard of it.)
    pub(super) fn tell(&self) {
        if self.is_deciding() {
            self.tells.tell();
        } else {
            self.tell_in(self.tells.take());
        }
        self.tell_news();
    }

    /// The thread has given the turn to tell back: tells what others left to it.
    pub(super) fn tell_news(&self) {
        while let Some(telling) = self.tells.take_for_news() {
            self.tell_in(telling);
        }
    }

    fn tell_in(&self, telling: MutexGuard<'_, ()>) {
        let give_back = || self.tells.give_back(telling);
        match self.container() {
            Some(handle) => {
                let priority = self.asked().priority;
                handle.job().set_priority_and(priority, give_back);
            }
            None => give_back(),
        }
    }

    /// As [`Record::tell`], of the job and of all that it waits for.
    pub(in crate::jobs) fn tell_all(&self) {
        self.tell();
        self.awaited().for_each(|awaited| awaited.tell());
    }
}
