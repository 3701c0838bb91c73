//! Workers that are asked to leave their job.
//!
//! The core set notes a [`Leaving`]; the worker's holder finds it at the boundary that it names, and goes. Until then
//! it is a hint: a job that ends, and a worker that goes to another job by itself, leave one behind that says nothing.

use super::State;
use crate::{
    sched::{
        core::{Core, JobList},
        job::Job,
        worker::{NO_LEVEL, Worker},
    },
    sys::clock,
};
use std::sync::{Arc, Weak, atomic::Ordering};
use urgency_policy::cores::Boundary;

/// A worker, by its number, is asked to leave its job.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) worker: usize,
    pub(super) to: Destination,
    pub(super) at: Boundary,
}

/// Where a worker is to go.
#[derive(Debug, Clone)]
pub(super) enum Destination {
    Job(Weak<Job>),
    /// To the idle set: its job has more than it may have.
    Idle,
}

impl Destination {
    pub(super) fn is(&self, job: &Job) -> bool {
        matches!(self, Destination::Job(to) if std::ptr::eq(to.as_ptr(), job))
    }
}

/// A worker's way out of its job.
pub(super) enum Exit {
    To(Arc<Job>),
    Idle,
}

impl Leaving {
    pub(super) fn exit(&self) -> Option<Exit> {
        match &self.to {
            Destination::Job(job) => job.upgrade().map(Exit::To),
            Destination::Idle => Some(Exit::Idle),
        }
    }
}

/// A worker that is to leave.
pub(super) struct Going<'a> {
    pub(super) worker: &'a Worker,
    pub(super) from: Arc<Job>,
    pub(super) exit: Exit,
    pub(super) at: Boundary,
}

impl State {
    pub(super) fn leaving(&self, worker: &Worker) -> Option<&Leaving> {
        self.leaving
            .iter()
            .find(|leaving| leaving.worker == worker.id)
    }

    pub(super) fn is_leaving(&self, worker: &Worker) -> bool {
        self.leaving(worker).is_some()
    }

    pub(super) fn send(&mut self, worker: &Worker, to: Destination, at: Boundary) {
        self.forget(worker);
        worker.ask_to_leave(clock::now());
        let worker = worker.id;
        self.leaving.push(Leaving { worker, to, at });
    }

    pub(super) fn forget(&mut self, worker: &Worker) {
        self.leaving.retain(|leaving| leaving.worker != worker.id);
    }

    /// Sends the worker of this job that serves its least urgent level, if any stays.
    pub(super) fn send_one_of(&mut self, job: &Job, to: Destination) {
        let stays = |worker: &&Worker| worker.level() != NO_LEVEL && !self.is_leaving(worker);
        let worker = job.workers().filter(stays).max_by_key(|w| w.level());
        if let Some(worker) = worker {
            self.send(worker, to, self.division.manner.leaves_at());
        }
    }

    /// So many workers have to leave, of the jobs that have most above what they were given.
    pub(super) fn send_superfluous(&mut self, count: usize, jobs: &JobList) {
        let to_idle = |leaving: &&Leaving| matches!(leaving.to, Destination::Idle);
        let leave = self.leaving.iter().filter(to_idle).count();
        for _ in leave..count {
            let above = |job: &&Arc<Job>| {
                let staying = self.staying(job);
                (
                    staying.saturating_sub(job.entitled.load(Ordering::Relaxed)),
                    staying,
                )
            };
            if let Some(job) = jobs.iter().max_by_key(above) {
                self.send_one_of(job, Destination::Idle);
            }
        }
    }

    /// How many workers of this job stay.
    pub(super) fn staying(&self, job: &Job) -> usize {
        let workers = job.workers();
        workers.filter(|worker| !self.is_leaving(worker)).count()
    }
}

impl Core {
    /// Where a worker is to go that serves `job`, for its holder, which is at this boundary.
    pub(super) fn exit_of(&self, worker: &Worker, job: &Job, at: Boundary) -> Option<Exit> {
        let mut state = self.sharing.turn.take();
        let leaving = state.leaving(worker);
        let stays =
            leaving.is_some_and(|leaving| leaving.at != Boundary::Point && leaving.at != at);
        let exit = leaving.filter(|_| !stays).and_then(Leaving::exit);
        if !stays {
            worker.stays();
            state.forget(worker);
        }
        self.sharing.turn.give_back(state);
        self.decide_news();
        exit.filter(|exit| match exit {
            Exit::To(to) => !std::ptr::eq(&**to, job),
            Exit::Idle => true,
        })
    }
}
