//! What the sets of jobs hear of from below: that a demand has changed, and that code waits for a task of a job.
//!
//! A demand that could not be had may be had when another demand on these workers has changed, or when the runtime that
//! had it has ended. The code that changes a demand, or ends a runtime, tells it afterwards, when it has no lock: what
//! hears of it starts jobs, and so calls code of the program. Code of the core policy tells nothing: it starts no job.
//!
//! Code that begins to wait for a task of another job tells it, so that the task's job is as urgent meanwhile.

use crate::{
    sched::core::Core,
    sys::{fork::Process, mutex::Mutex},
    tasks::{Loan, TaskRef},
};
use std::sync::{Arc, Weak};

/// See the module's text.
pub(crate) trait Hearer: Send + Sync {
    /// A demand on these workers has changed, or a runtime has ended.
    fn demands_changed(self: Arc<Self>);

    /// The calling code waits for this task. If it is of one of the set's jobs, that job is as urgent as the calling
    /// code's until the loan is dropped.
    fn lend_for(&self, awaited: &TaskRef) -> Option<Loan>;
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Hearers(Mutex<Vec<Weak<dyn Hearer>>>);

impl Hearers {
    fn add(&self, it: Weak<dyn Hearer>, process: Process) {
        if let Some(mut all) = self.0.lock_in(process) {
            all.retain(|hearer| hearer.strong_count() != 0);
            all.push(it);
        }
    }

    fn alive(&self) -> Vec<Arc<dyn Hearer>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Core {
    /// From now on, and for as long as it lives, `it` hears of what happens on these workers.
    pub(crate) fn tell(&self, it: Weak<dyn Hearer>) {
        self.sharing.hearers.add(it, self.process);
    }

    /// The calling code, which runs on these workers, waits for a task that is not of its own runtime.
    #[cold]
    pub(crate) fn lend_for(&self, awaited: &TaskRef) -> Option<Loan> {
        if !self.process.is_this() {
            // The lock may be a thread's that is not here.
            return None;
        }
        let hearers = self.sharing.hearers.alive();
        hearers.into_iter().find_map(|it| it.lend_for(awaited))
    }

    /// A demand has changed, or a runtime has ended. The caller has no lock.
    pub(crate) fn demands_changed(&self) {
        if self.process.is_this() && !self.is_deciding() {
            let hearers = self.sharing.hearers.alive();
            hearers.into_iter().for_each(|it| it.demands_changed());
        }
    }
}
