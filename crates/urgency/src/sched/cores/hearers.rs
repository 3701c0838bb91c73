//! What hears that a demand has changed: the sets of jobs, where jobs wait for cores that others were promised.
//!
//! A demand that could not be had may be had when another demand on these workers has changed, or when the runtime that
//! had it has ended. The code that changes a demand, or ends a runtime, tells it afterwards, when it has no lock: what
//! hears of it starts jobs, and so calls code of the program. Code of the core policy tells nothing: it starts no job.

use crate::{
    sched::core::Core,
    sys::{fork::Process, mutex::Mutex},
};
use std::sync::{Arc, Weak};

/// See the module's text.
pub(crate) trait HearsOfDemands: Send + Sync {
    /// A demand on these workers has changed, or a runtime has ended.
    fn demands_changed(self: Arc<Self>);
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Hearers(Mutex<Vec<Weak<dyn HearsOfDemands>>>);

impl Hearers {
    fn add(&self, it: Weak<dyn HearsOfDemands>, process: Process) {
        if let Some(mut all) = self.0.lock_in(process) {
            all.retain(|hearer| hearer.strong_count() != 0);
            all.push(it);
        }
    }

    fn alive(&self) -> Vec<Arc<dyn HearsOfDemands>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Core {
    /// From now on, and for as long as it lives, `it` hears of the demands on these workers.
    pub(crate) fn tell_of_demands(&self, it: Weak<dyn HearsOfDemands>) {
        self.sharing.hearers.add(it, self.process);
    }

    /// A demand has changed, or a runtime has ended. The caller has no lock.
    pub(crate) fn demands_changed(&self) {
        if self.process.is_this() && !self.is_deciding() {
            let hearers = self.sharing.hearers.alive();
            hearers.into_iter().for_each(|it| it.demands_changed());
        }
    }
}
