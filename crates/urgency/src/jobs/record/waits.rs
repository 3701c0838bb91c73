//! Waits of jobs for jobs: what an awaited job inherits, and which waits would never end.
//!
//! # Races
//!
//! - *Two jobs that begin to wait for each other.* A wait is noted, then its job looks whether the awaited one waits
//!   for it: the last of a circle's waits sees the others, and is refused.
//! - *A wait against a change of the waiter's priority.* A wait is noted on both sides, then the awaited job reads the
//!   waiter's priority; a change writes the priority, then looks at what the job waits for. So a change reaches all
//!   that the job waits for.

use super::{CURRENT, Current, Record};
use crate::{
    jobs::{JobErrorKind, JobId, JobState},
    sys::mutex::Mutex,
};
use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};
use urgency_policy::cores::Demand;

impl Record {
    /// With what it inherits: the priority of the most urgent job that waits for it, or for what waits for it.
    pub(super) fn inherited(&self, demand: Demand) -> Demand {
        let mut priority = demand.priority;
        // Nothing is more urgent than 0: in the usual case no waiter is looked at.
        let mut reached = Reached::from(waiters(self));
        while priority > 0
            && let Some(record) = reached.next(waiters)
        {
            priority = priority.min(record.demand().priority);
        }
        Demand { priority, ..demand }
    }

    /// What it waits for, and what that waits for, and so on.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Arc<Record>> + use<> {
        let awaits = |record: &Record| record.awaits.lock().clone();
        let mut reached = Reached::from(awaits(self));
        std::iter::from_fn(move || reached.next(awaits))
    }

    /// Whether code of a job waits for it.
    pub(in crate::jobs) fn is_awaited(&self) -> bool {
        !self.awaited_by.lock().is_empty()
    }

    /// Whether it is this job, or waits for it, or for a job that waits for it, and so on.
    fn waits_for(self: &Arc<Self>, job: &Arc<Record>) -> bool {
        Arc::ptr_eq(self, job) || self.awaited().any(|it| Arc::ptr_eq(&it, job))
    }
}

fn waiters(record: &Record) -> Vec<Arc<Record>> {
    let by = record.awaited_by.lock();
    by.iter().filter_map(Weak::upgrade).collect()
}

/// Some jobs, what is next to each, and so on; each once. A step costs what is next to one job, so the whole is linear
/// in the number of waits.
struct Reached {
    known: HashSet<JobId>,
    to_come: Vec<Arc<Record>>,
}

impl Reached {
    fn from(first: Vec<Arc<Record>>) -> Self {
        Reached {
            known: HashSet::new(),
            to_come: first,
        }
    }

    fn next(&mut self, next: impl Fn(&Record) -> Vec<Arc<Record>>) -> Option<Arc<Record>> {
        loop {
            let record = self.to_come.pop()?;
            if self.known.insert(record.id) {
                self.to_come.extend(next(&record));
                return Some(record);
            }
        }
    }
}

/// Code of one job waits for another job. Dropped when the wait has ended.
pub(in crate::jobs) struct Waits<'a> {
    waiter: Option<Arc<Current>>,
    awaited: &'a Arc<Record>,
}

impl<'a> Waits<'a> {
    /// The calling code begins to wait for this job.
    pub(in crate::jobs) fn begin(awaited: &'a Arc<Record>) -> Result<Self, JobErrorKind> {
        if awaited.state() != JobState::Over
            && let Some(set) = awaited.set.upgrade()
        {
            set.process().must_be_this();
        }
        let waiter = CURRENT.get();
        if let Some(current) = &waiter {
            let waiter = &current.0;
            waiter.awaits.lock().push(awaited.clone());
            awaited.awaited_by.lock().push(Arc::downgrade(waiter));
        }
        let waits = Waits { waiter, awaited };
        if let Some(current) = &waits.waiter {
            let waiter = &current.0;
            if awaited.waits_for(waiter) {
                return Err(JobErrorKind::WaitsForItself);
            }
            awaited.tell_all();
            if let Some(set) = awaited.set.upgrade() {
                set.start_awaited(awaited);
            }
        }
        Ok(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(current) = &self.waiter {
            let waiter = &current.0;
            forget_one(&waiter.awaits, |job| Arc::ptr_eq(job, self.awaited));
            forget_one(&self.awaited.awaited_by, |job| {
                std::ptr::eq(job.as_ptr(), Arc::as_ptr(waiter))
            });
            self.awaited.tell_all();
        }
    }
}

fn forget_one<T>(list: &Mutex<Vec<T>>, is_it: impl FnMut(&T) -> bool) {
    let mut list = list.lock();
    if let Some(place) = list.iter().position(is_it) {
        list.swap_remove(place);
    }
}
