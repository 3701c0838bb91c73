//! Waits for jobs, and for their parts: what an awaited job inherits, and which waits would never end.
//!
//! Code of a job that waits lends the job's priority, also to all that the awaited job waits for. So does code of a
//! runtime beside the jobs, on the same workers ([`CoreSet::beside`]): the priority of the runtime's own demand. Such
//! code has no place among the jobs that may run, so it starts no queued job; and nothing is known of a job that waits
//! for the runtime, so there are no circles. Code of neither takes nothing from these workers, and lends nothing.
//!
//! Code that waits for a *task* of a job lends in the same way, for as long as it waits. Such a wait closes no circle:
//! the task may well end while the rest of its job waits for the waiter's. Nor does it start a job: the task's runs.
//!
//! # Races
//!
//! - *Two jobs that begin to wait for each other.* A wait is noted, then its job looks whether the awaited one waits
//!   for it: the last of a circle's waits sees the others, and is refused.
//! - *A wait against a change of the waiter's priority.* A wait is noted on both sides, then the awaited job reads the
//!   waiter's priority; a change writes the priority, then looks at what the job waits for. So a change reaches all
//!   that the job waits for. After a change of a runtime's priority its sets look at all jobs that run
//!   (`set/turns.rs`).

use super::{CURRENT, Record};
#[cfg(doc)]
use crate::jobs::CoreSet;
use crate::{
    jobs::{JobErrorKind, JobId, JobState, set::Set},
    sched::{
        cores::DemandOf,
        stack::{Me, Stack},
    },
    sys::mutex::Mutex,
};
use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};
use urgency_policy::cores::Demand;

impl Record {
    /// With what it inherits: the priority of the most urgent code that waits for it, or for what waits for it.
    pub(super) fn inherited(&self, demand: Demand) -> Demand {
        let mut priority = demand.priority.min(self.lent_by_runtimes());
        // Nothing is more urgent than 0: in the usual case no job is looked at.
        let mut reached = Reached::from(waiters(self));
        while priority > 0
            && let Some(record) = reached.next(waiters)
        {
            let its = record.demand().priority.min(record.lent_by_runtimes());
            priority = priority.min(its);
        }
        Demand { priority, ..demand }
    }

    /// The most urgent priority of the runtimes whose code waits for it.
    fn lent_by_runtimes(&self) -> u8 {
        let by = self.awaited_by.lock();
        let lent = by.iter().filter_map(|waiter| match waiter {
            Waiter::Job(_) => None,
            Waiter::Runtime(demand) => Some(demand.now()?.priority),
        });
        lent.min().unwrap_or(u8::MAX)
    }

    /// Whether code of a runtime waits for it.
    pub(in crate::jobs) fn has_runtime_waiting(&self) -> bool {
        let by = self.awaited_by.lock();
        by.iter().any(|waiter| matches!(waiter, Waiter::Runtime(_)))
    }

    /// What it waits for, and what that waits for, and so on.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Arc<Record>> + use<> {
        let mut reached = Reached::from(self.awaits(|_| true));
        std::iter::from_fn(move || reached.next(|record| record.awaits(|_| true)))
    }

    fn awaits(&self, which: impl Fn(&Awaited) -> bool) -> Vec<Arc<Record>> {
        let all = self.awaits.lock();
        let some = all.iter().filter(|its| which(its));
        some.map(|its| its.job.clone()).collect()
    }

    /// Whether code of a job waits for it.
    pub(in crate::jobs) fn is_awaited(&self) -> bool {
        let by = self.awaited_by.lock();
        by.iter().any(|waiter| matches!(waiter, Waiter::Job(_)))
    }

    /// Whether it is this job, or waits for it, or for a job that waits for it, and so on. A job that is over has its
    /// result, and waits for nothing: of its waits there may be some that it gave to other code.
    fn waits_for(self: &Arc<Self>, job: &Arc<Record>) -> bool {
        let awaits = |record: &Record| match record.state() {
            JobState::Over => Vec::new(),
            _ => record.awaits(|its| its.end),
        };
        let mut reached = Reached::from(vec![self.clone()]);
        let mut reached = std::iter::from_fn(|| reached.next(awaits));
        reached.any(|it| Arc::ptr_eq(&it, job) && it.state() != JobState::Over)
    }
}

fn waiters(record: &Record) -> Vec<Arc<Record>> {
    let by = record.awaited_by.lock();
    by.iter().filter_map(Waiter::job).collect()
}

/// What a job waits for.
pub(super) struct Awaited {
    job: Arc<Record>,
    /// For its end, and not for a part of it.
    end: bool,
}

/// Whose code waits.
#[derive(Clone)]
pub(super) enum Waiter {
    Job(Weak<Record>),
    /// A runtime on the workers of the awaited job, which is not this job's.
    Runtime(DemandOf),
}

impl Waiter {
    /// The calling code, which is going to wait for a job of this set.
    pub(super) fn current(set: Option<&Set>) -> Option<Self> {
        if let Some(current) = CURRENT.get() {
            return Some(Waiter::Job(Arc::downgrade(&current.0)));
        }
        let set = set?;
        Stack::with_own(|me| {
            let runtime = me.map(Me::runtime)?;
            if !set.has_workers_of(runtime) {
                return None;
            }
            // A task in a job's container may come from other code than the job's.
            Some(match set.job_in(runtime) {
                Some(job) => Waiter::Job(Arc::downgrade(&job)),
                None => Waiter::Runtime(runtime.demand_of()),
            })
        })
    }

    pub(super) fn job(&self) -> Option<Arc<Record>> {
        match self {
            Waiter::Job(record) => record.upgrade(),
            Waiter::Runtime(_) => None,
        }
    }

    fn is(&self, other: &Waiter) -> bool {
        match (self, other) {
            (Waiter::Job(one), Waiter::Job(other)) => one.ptr_eq(other),
            (Waiter::Runtime(one), Waiter::Runtime(other)) => one.is(other),
            _ => false,
        }
    }
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

/// Code waits for a job, or for a part of it. Dropped when the wait has ended.
pub(in crate::jobs) struct Waits {
    waiter: Option<Waiter>,
    awaited: Arc<Record>,
    /// For the end of the job.
    end: bool,
}

impl Waits {
    /// The calling code begins to wait for this job.
    pub(in crate::jobs) fn begin(awaited: &Arc<Record>) -> Result<Self, JobErrorKind> {
        let set = awaited.set.upgrade();
        let open = set.as_deref().filter(|_| awaited.state() != JobState::Over);
        open.into_iter()
            .for_each(|set| set.process().must_be_this());
        let waits = Waits::noted(Waiter::current(open), awaited.clone(), true);
        if let Some(waiter) = &waits.waiter {
            let job = waiter.job();
            if job.as_ref().is_some_and(|job| awaited.waits_for(job)) {
                return Err(JobErrorKind::WaitsForItself);
            }
            awaited.tell_all();
            if job.is_some()
                && let Some(set) = set
            {
                set.start_awaited(awaited);
            }
        }
        Ok(waits)
    }

    /// The calling code begins to wait for a task of this job, which runs. `None`: it lends the job nothing.
    pub(in crate::jobs) fn begin_for_part(awaited: Arc<Record>, set: &Set) -> Option<Self> {
        let waiter = Waiter::current(Some(set))?;
        if waiter.job().is_some_and(|job| Arc::ptr_eq(&job, &awaited)) {
            return None;
        }
        let waits = Waits::noted(Some(waiter), awaited, false);
        waits.awaited.tell_all();
        Some(waits)
    }

    fn noted(waiter: Option<Waiter>, awaited: Arc<Record>, end: bool) -> Self {
        if let Some(waiter) = &waiter {
            if let Some(job) = waiter.job() {
                let awaited = Awaited {
                    job: awaited.clone(),
                    end,
                };
                job.awaits.lock().push(awaited);
            }
            awaited.awaited_by.lock().push(waiter.clone());
        }
        Waits {
            waiter,
            awaited,
            end,
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            if let Some(job) = waiter.job() {
                let is_it =
                    |its: &Awaited| its.end == self.end && Arc::ptr_eq(&its.job, &self.awaited);
                forget_one(&job.awaits, is_it);
            }
            forget_one(&self.awaited.awaited_by, |it| it.is(waiter));
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
