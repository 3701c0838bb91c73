//! Workers that are asked to leave their job.
//!
//! The core set notes a [`Leaving`]; the worker's holder finds it at the boundary that it names, and goes. Until then it
//! is a hint: a job that ends, and a worker that goes to another job by itself, leave one behind that says nothing.

use crate::sched::{job::Job, worker::Worker};
use std::sync::{Arc, Weak};
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
