//! When a job starts: at once, when its turn comes, or because code of a running job waits for it.
//!
//! A job starts at once if fewer run than may, and no queued job has its turn before. When a job is over, queued ones
//! start for as long as more may run. A queued job whose demand cannot be had beside the others' keeps its turn, and so
//! holds back the jobs behind it: otherwise smaller jobs would take what it needs for ever. More urgent jobs have their
//! turn before it, and are not held back.
//!
//! Whether a queued job can have its demand shows when its container is had: a *trial* (`protocol/trial.rs`), without
//! the lock. The job counts as one that runs meanwhile.
//!
//! # Invariants
//!
//! 1. *A job that runs beside others, and was refused its demand, is not left in the queue while it could have it.* All
//!    that gives back what it may need, or leaves it room, calls [`Set::start_next`] afterwards: a job that is over or
//!    was not started, one that leaves the queue, and each demand on these cores that changes or ends
//!    (`sched/cores/hearers.rs`). A job leaves the list of running jobs under the same lock under which the trial
//!    hears of it: a trial that finds no other job there, and no news, was refused for good.
//! 2. *No job passes one that is as urgent and older*, be that one queued or tried ([`State::is_before`]). So one
//!    thread at a time starts jobs of the queue. A thread that comes meanwhile leaves its news, and goes on.
//! 3. *A wait, a cancel, and a change of the demand, of a job that is tried* find it neither in the queue nor started.
//!    The first two are looked at after a refusal, under the lock under which they looked for it; the last is news.

use super::{Place, Set, State, parked::Container};
use crate::{
    BuildError, Builder, Stats,
    jobs::{
        JobErrorKind, JobId, SubmitError,
        record::{Record, Waits},
    },
    runtime::Handle,
    sched::{cores::Hearer, job::Job},
    sys::{fork::Process, mutex::MutexGuard},
    tasks::{Loan, TaskRef, contained, discard_payload},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::Arc,
};
use urgency_policy::cores::{Demand, Refusal};

/// A job that has not started.
pub(in crate::jobs) struct Pending {
    pub(in crate::jobs) record: Arc<Record>,
    pub(in crate::jobs) shape: Arc<Builder>,
    /// Starts the root.
    pub(in crate::jobs) start: Box<dyn FnOnce(&Handle) + Send>,
}

impl Pending {
    /// The job is never started. What it captured, which is the program's, is gone before its waiters go on.
    fn refuse(self, why: JobErrorKind) {
        contained(|| self.record.as_its_code(|| drop(self.start)));
        self.record.refuse(why);
    }
}

impl Hearer for Set {
    fn demands_changed(self: Arc<Self>) {
        let lent: Vec<_> = {
            let state = self.state.lock();
            let lent = state.running.iter().filter(|job| job.has_runtime_waiting());
            lent.cloned().collect()
        };
        lent.iter().for_each(|job| job.tell_all());
        self.start_next();
    }

    fn lend_for(&self, awaited: &TaskRef) -> Option<Loan> {
        let job = self.job_where(|container| awaited.is_of(container))?;
        Some(Box::new(Waits::begin_for_part(job, self)?))
    }
}

impl Set {
    /// The process that has the cores.
    pub(in crate::jobs) fn process(&self) -> Process {
        self.keeper.job().core.process
    }

    /// Whether a runtime is on the cores of the set.
    pub(in crate::jobs) fn has_workers_of(&self, runtime: &Job) -> bool {
        Arc::ptr_eq(&self.keeper.job().core, &runtime.core)
    }

    /// The job that runs in this container.
    pub(in crate::jobs) fn job_in(&self, container: &Job) -> Option<Arc<Record>> {
        self.job_where(|its| ptr::eq(its, container))
    }

    /// The running job for whose container this holds.
    fn job_where(&self, holds: impl Fn(&Job) -> bool) -> Option<Arc<Record>> {
        let state = self.state.lock();
        let job = state.running.iter().find(|job| job.is_in(&holds));
        job.cloned()
    }

    /// Whether the calling code is the core policy's, in a decision.
    pub(in crate::jobs) fn is_deciding(&self) -> bool {
        self.keeper.job().core.is_deciding()
    }

    /// Whether a job could ever have this demand. What a job in the queue lacks, it may have later.
    pub(in crate::jobs) fn could_keep(&self, demand: Demand) -> Result<(), Refusal> {
        self.keeper.job().core.could_keep(demand)
    }

    /// Starts the job, or queues it.
    pub(in crate::jobs) fn submit(
        self: &Arc<Self>,
        pending: Pending,
        place: Place,
    ) -> Result<(), SubmitError> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(SubmitError::ShutDown);
        }
        Self::keep_place(&mut state, place);
        // Before it runs: it may be over before the return.
        state.submitted += 1;
        let is_full = state.running.len() >= self.most_running;
        if is_full || state.is_before(pending.record.demand().priority) {
            state.queue.put(pending);
            return Ok(());
        }
        state.running.push(pending.record.clone());
        drop(state);
        self.start(pending).map_err(|(pending, error)| {
            let mut state = self.no_longer_runs(&pending.record);
            state.submitted -= 1;
            self.jobs_left(state);
            self.start_next();
            error.into()
        })
    }

    /// Starts a job that counts as running.
    fn start(self: &Arc<Self>, pending: Pending) -> Result<(), (Pending, BuildError)> {
        let demand = pending.record.asked();
        // Schedules and orders may be code of the program.
        let container = catch_unwind(AssertUnwindSafe(|| self.container(&pending.shape, demand)));
        let container = container.unwrap_or_else(|payload| {
            discard_payload(payload);
            Err(BuildError::Panicked)
        });
        let (container, before) = match container {
            Ok(container) => container,
            Err(error) => return Err((pending, error)),
        };
        let handle = container.runtime.handle().clone();
        if let Err(error) = pending.record.enter(handle.clone(), before, demand) {
            return Err((pending, error));
        }
        let (set, record) = (self.clone(), pending.record.clone());
        let over = move || {
            let its = record.clone();
            record.tasks_ended_and(Box::new(move || set.job_is_over(&its, container)));
        };
        handle.job().tasks.when_empty(Box::new(over));
        pending.record.run(|| (pending.start)(&handle));
        Ok(())
    }

    /// A container of this shape, for a job with this demand; with its accounts, if an earlier job had it.
    fn container(
        &self,
        shape: &Arc<Builder>,
        demand: Demand,
    ) -> Result<(Container, Option<Box<Stats>>), BuildError> {
        let (parked, spoilt) = {
            let parked = &mut self.state.lock().parked;
            (parked.take(shape), parked.take_spoilt())
        };
        spoilt.into_iter().for_each(|it| contained(|| drop(it)));
        if let Some(container) = parked {
            let job = container.runtime.job();
            if demand != Demand::default()
                && let Err(refusal) = job.set_demand(demand)
            {
                let surplus = self.state.lock().parked.put(container, self.most_running);
                contained(|| drop(surplus));
                return Err(refusal.into());
            }
            shape.restore_schedule(&container.runtime);
            job.begin_anew();
            let before = Box::new(Stats::of(job));
            return Ok((container, Some(before)));
        }
        let shape = shape.clone();
        let builder = Builder::clone(&shape).share_workers_with(&self.keeper);
        let runtime = builder.demand(demand).build()?;
        self.state.lock().built += 1;
        Ok((Container { runtime, shape }, None))
    }

    /// All of a job has ended. Returns what follows when its waiters have the result.
    fn job_is_over(
        self: &Arc<Self>,
        record: &Arc<Record>,
        container: Container,
    ) -> Box<dyn FnOnce()> {
        let job = container.runtime.job();
        let has_demand = job.demand() != Demand::default();
        if has_demand {
            job.give_demand_back();
        }
        let is_spoilt = job.is_spoilt();
        let surplus = {
            let mut state = self.state.lock();
            match is_spoilt || state.is_closed {
                false => state.parked.put(container, self.most_running),
                true => Some(container),
            }
        };
        // What its description captured is the program's.
        contained(|| drop(surplus));
        let mut state = self.no_longer_runs(record);
        // Until now it counts as one that runs.
        state.over += 1;
        self.jobs_left(state);
        let set = self.clone();
        Box::new(move || match has_demand {
            // What the job had others may have: also jobs of other sets on these cores.
            true => set.keeper.job().core.demands_changed(),
            false => set.start_next(),
        })
    }

    /// The trial hears of it, if there is one: what the job had may be what the one that is tried lacks.
    fn no_longer_runs(&self, record: &Arc<Record>) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        state.forget_running(record);
        state.trial.tell();
        state
    }

    /// Starts queued jobs for as long as more may run. Something was given back that they may need.
    fn start_next(self: &Arc<Self>) {
        while self.try_first() {}
    }

    /// Starts the first queued job, if more may run and it can have its demand. Whether there may be more to start.
    fn try_first(self: &Arc<Self>) -> bool {
        let mut state = self.state.lock();
        if state.is_drained() {
            drop(state);
            self.drained.notify_waiters();
            return false;
        }
        if state.trial.tell() || state.running.len() >= self.most_running {
            return false;
        }
        let Some(pending) = state.queue.take_first() else {
            return false;
        };
        state.running.push(pending.record.clone());
        state.trial.begin(pending.record.clone());
        drop(state);
        let refused = self.start(pending).err();
        let mut state = self.state.lock();
        let has_news = state.trial.end();
        let Some((pending, error)) = refused else {
            return true;
        };
        let record = &pending.record;
        state.forget_running(record);
        let is_cancelled = record.cancel.is_asked();
        // A wait that began meanwhile has not found it in the queue, and may be a wait of the only running job.
        let may_wait = !is_cancelled && !record.is_awaited();
        if may_wait && (has_news || !state.running.is_empty()) {
            // Without news other jobs have what it needs: it has its turn when one of them is over.
            state.queue.put(pending);
            return has_news;
        }
        // A cancel that came meanwhile has not found it in the queue.
        let why = match is_cancelled {
            true => JobErrorKind::Cancelled,
            false => JobErrorKind::Refused(error),
        };
        self.refuse(state, vec![pending], why);
        true
    }

    /// Code of a job waits for this one. If it is queued it starts now, beyond the number that may run; if it is never
    /// to start, that is over now.
    pub(in crate::jobs) fn start_awaited(self: &Arc<Self>, record: &Arc<Record>) {
        let mut state = self.state.lock();
        let Some(pending) = state.queue.take(record.id) else {
            drop(state);
            return self.refuse_if_left(record.id);
        };
        state.running.push(record.clone());
        self.jobs_left(state);
        if let Err((pending, error)) = self.start(pending) {
            // It may need the cores of the job that waits.
            let state = self.no_longer_runs(record);
            self.refuse(state, vec![pending], JobErrorKind::Refused(error));
            // A job that ended meanwhile found this one in a place that is free now.
            self.start_next();
        }
    }

    /// The job asks for something else than before. If it is queued, its place follows its priority, and it may hold
    /// back others no more. If it runs, it may have given back what a queued one needs.
    pub(in crate::jobs) fn demand_changed(&self, record: &Record) {
        self.state.lock().queue.follow(record);
        self.keeper.job().core.demands_changed();
    }

    /// Cancels a job that is in the queue. Whether it was there.
    pub(in crate::jobs) fn unqueue(self: &Arc<Self>, record: &Record) -> bool {
        let mut state = self.state.lock();
        let Some(pending) = state.queue.take(record.id) else {
            return false;
        };
        self.refuse(state, vec![pending], JobErrorKind::Cancelled);
        self.go_on();
        true
    }

    /// These jobs are never started. A drain waits until they are over.
    pub(super) fn refuse(
        &self,
        mut state: MutexGuard<'_, State>,
        jobs: Vec<Pending>,
        why: JobErrorKind,
    ) {
        let ids: Vec<_> = jobs.iter().map(|job| job.record.id).collect();
        state.over += ids.len() as u64;
        state.refused.extend(&ids);
        let refused = jobs
            .into_iter()
            .map(|job| (job.record.id, (job, why.clone())));
        state.to_refuse.extend(refused);
        self.jobs_left(state);
        ids.into_iter().for_each(|id| self.refuse_if_left(id));
    }

    /// The job is refused, if it is to be and no other thread does it. (What one of several captured may wait for the
    /// next one when it is dropped.)
    fn refuse_if_left(&self, id: JobId) {
        let refused = self.state.lock().to_refuse.remove(&id);
        let Some((job, why)) = refused else {
            return;
        };
        job.refuse(why);
        self.state.lock().refused.remove(&id);
    }

    /// After a job has left the queue without a start: it may have held others back, or have been the last one.
    pub(super) fn go_on(self: &Arc<Self>) {
        // The policy starts no job: the next job that is over does.
        if !self.is_deciding() {
            self.start_next();
        } else if self.state.lock().is_drained() {
            self.drained.notify_waiters();
        }
    }
}

impl State {
    /// Whether a job of this priority would have its turn after one that is queued or tried.
    fn is_before(&self, priority: u8) -> bool {
        let is_tried = |tried: &Arc<Record>| tried.demand().priority <= priority;
        self.queue.is_before(priority) || self.trial.of().is_some_and(is_tried)
    }

    fn forget_running(&mut self, record: &Arc<Record>) {
        let place = self.running.iter().position(|job| Arc::ptr_eq(job, record));
        place.into_iter().for_each(|place| {
            self.running.swap_remove(place);
        });
    }
}
