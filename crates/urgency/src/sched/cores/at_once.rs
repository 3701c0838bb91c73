//! Decisions at the event: a job that starts does not wait for the relief timer, nor does a worker that is free, nor a
//! demand that changes.
//!
//! 1. *A job without a worker begins to wait*, and no worker is idle. The thread that made its work ready asks the
//!    policy, and asks the workers that are to leave for attention. A holder that comes to scheduling points leaves at
//!    the next one; from one that does not, an expiry of the relief timer revokes the worker (`mod.rs`).
//! 2. *The last worker leaves a job*, and several others have work. The policy decides which of them the worker goes
//!    to.
//! 3. *A demand changes* of a job that has work. The thread that changes it asks, as in 1. (A job that has none, such
//!    as a container that is taken for a job or parked after it, has no part in a decision.)
//!
//! A job asks once until a worker has come, or until the policy has seen it without work: not again each time when work
//! becomes ready, or when another worker is released and looks at all that wait. (A job that might ask again after each
//! expiry did so at such a release: one decision for each job that waited.)
//!
//! One thread decides at a time. A thread that comes meanwhile leaves its event to the relief timer: it may hold locks
//! of the program, or be in the policy itself.
//!
//! In a runtime without other jobs this is one load, where an insertion has found no idle worker.

use super::State;
use crate::{
    protocol::attention::PREEMPT,
    sched::{
        core::{Core, JobList, PATIENCE, RELIEF_PERIOD},
        job::Job,
    },
};
use std::{
    ptr,
    sync::{MutexGuard, TryLockError, atomic::Ordering},
};
use urgency_policy::cores::Boundary;

impl Job {
    /// Work waits here, and no worker is idle: event 1.
    #[inline]
    pub(in crate::sched) fn ask_for_worker(&self) {
        if self.core.is_shared() {
            self.ask_for_worker_cold();
        }
    }

    #[cold]
    fn ask_for_worker_cold(&self) {
        if self.workers().next().is_none() && !self.has_asked.swap(true, Ordering::Relaxed) {
            self.core.decide_at_once(&self.core.jobs());
        }
    }

    /// A worker has come, or the job has no work any more.
    #[inline]
    pub(in crate::sched) fn may_ask_again(&self) {
        if self.has_asked.load(Ordering::Relaxed) {
            self.has_asked.store(false, Ordering::Relaxed);
        }
    }

    /// A worker has left for one of several jobs that wait: event 2, if it was the last.
    pub(super) fn ask_after_exit(&self, jobs: &JobList) {
        if self.workers().next().is_none() {
            self.core.decide_at_once(jobs);
        }
    }

    /// The job asks for something else than before: event 3.
    pub(super) fn ask_after_change(&self) {
        let is_divided = self.core.is_shared() || self.has_too_many();
        if is_divided && (self.workers().next().is_some() || self.levels_queued() != 0) {
            self.core.decide_at_once(&self.core.jobs());
        }
    }

    /// Whether work of another job waits: a worker without work goes there, and does not search for long.
    #[inline]
    pub(in crate::sched) fn is_another_waiting(&self) -> bool {
        self.core.is_shared() && self.is_another_waiting_cold()
    }

    #[cold]
    fn is_another_waiting_cold(&self) -> bool {
        let jobs = self.core.jobs();
        let mut others = jobs.iter().filter(|job| !ptr::eq(&***job, self));
        others.any(|job| job.levels_queued() != 0)
    }

    /// Whether fewer workers serve the job than the policy gave it.
    pub(super) fn has_less_than_given(&self) -> bool {
        let entitled = self.entitled.load(Ordering::Relaxed);
        entitled != usize::MAX && self.workers().count() < entitled
    }
}

impl Core {
    /// Asks the policy, and asks the workers that are to leave.
    fn decide_at_once(&self, jobs: &JobList) {
        let Some(state) = self.sharing.try_lock() else {
            return self.arm_relief(RELIEF_PERIOD);
        };
        let moves = self.decide_moves_in(jobs, state);
        let mut leave = moves
            .iter()
            .filter(|going| going.at == Boundary::Point)
            .peekable();
        if leave.peek().is_some() {
            self.arm_relief(PATIENCE);
        }
        for stack in leave.filter_map(|going| self.holder(going.worker)) {
            stack.attention.request(PREEMPT);
        }
    }
}

impl super::Sharing {
    /// The state, unless a thread decides now.
    fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => unreachable!("nothing panics under this lock"),
        }
    }
}
