//! The queue of jobs: the most urgent priority first, and the oldest job first within one.
//!
//! Jobs are numbered in the order in which they are submitted, so a job's place is its priority and its number. A job
//! that is taken out of the middle, and one whose priority changes, is found by its number. Nothing here walks along
//! the queue, which may have thousands of jobs.
//!
//! *A change of a priority against the queue.* A change writes the demand, then has the queue follow; a job that comes
//! into the queue, or back into it, reads the demand under the queue's lock. So the place fits the last demand.

use super::turns::Pending;
use crate::jobs::{JobId, record::Record};
use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

/// See the module's text.
#[derive(Default)]
pub(super) struct Queue {
    jobs: BTreeMap<(u8, JobId), Pending>,
    priorities: HashMap<JobId, u8>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether a job of this priority would have its turn after a job that is queued.
    pub(super) fn is_before(&self, priority: u8) -> bool {
        let first = self.jobs.first_key_value();
        first.is_some_and(|(&(first, _), _)| first <= priority)
    }

    /// The job has the place that its priority and its number give it: also if it was queued before.
    pub(super) fn put(&mut self, pending: Pending) {
        let (priority, id) = (pending.record.demand().priority, pending.record.id);
        self.priorities.insert(id, priority);
        self.jobs.insert((priority, id), pending);
    }

    /// The job whose turn it is.
    pub(super) fn take_first(&mut self) -> Option<Pending> {
        let ((_, id), pending) = self.jobs.pop_first()?;
        self.priorities.remove(&id);
        Some(pending)
    }

    pub(super) fn take(&mut self, id: JobId) -> Option<Pending> {
        let priority = self.priorities.remove(&id)?;
        self.jobs.remove(&(priority, id))
    }

    /// Takes out the jobs that are less urgent than this priority; without one all.
    pub(super) fn take_less_urgent(&mut self, than: Option<u8>) -> Vec<Pending> {
        let first = match than.map(|than| than.checked_add(1)) {
            None => 0,
            Some(Some(first)) => first,
            Some(None) => return Vec::new(),
        };
        let taken = self.jobs.split_off(&(first, JobId::FIRST));
        for (_, id) in taken.keys() {
            self.priorities.remove(id);
        }
        taken.into_values().collect()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().map(|&(_, id)| id)
    }

    /// When the oldest job was submitted: the first one of some priority.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let priorities = (0..=u8::MAX).filter_map(|priority| {
            let (_, first) = self.jobs.range((priority, JobId::FIRST)..).next()?;
            Some(first.record.times().submitted)
        });
        priorities.min()
    }

    /// The job's priority may have changed, if it is queued.
    pub(super) fn follow(&mut self, record: &Record) {
        let pending = self.take(record.id);
        pending.into_iter().for_each(|pending| self.put(pending));
    }
}
