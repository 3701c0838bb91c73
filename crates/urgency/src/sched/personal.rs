//! Personal jobs: jobs for one certain worker.
//!
//! Most work is anybody's. A broadcast is not: it runs one job on each worker. Such a job waits in the worker's
//! inbox, and whoever serves with that worker takes it when it looks for work, unless more urgent work is ready.
//!
//! # Protocol (no lost wake-up)
//!
//! - Sender: 1. put the job into the inbox; 2. count it (`SeqCst`); 3. if the worker is idle, claim it and start
//!   it. If it is not, it is served by somebody who will look.
//! - Whoever releases the worker: 1. [`Idle::release`](super::idle::Idle::release), which ends with a full
//!   barrier; 2. look at the count and the inbox once more.
//!
//! The two barriers exclude that the sender sees no idle worker and the releaser no job.
//!
//! If the embedder brought the threads, the inboxes are the threads': the sender wakes the thread, if it waits, and
//! any worker will do. There are as many workers as threads, so there is one.

use super::{StolenJob, shared::Shared, stack::Stack, worker::Worker};
use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

type Inbox = Mutex<VecDeque<StolenJob>>;

/// The inboxes of all workers.
#[derive(Debug)]
pub(crate) struct Personal {
    inboxes: Box<[Inbox]>,
    waiting: AtomicUsize,
}

fn locked(inbox: &Inbox) -> MutexGuard<'_, VecDeque<StolenJob>> {
    inbox.lock().expect("nothing panics under an inbox's lock")
}

impl Personal {
    pub(crate) fn new(workers: usize) -> Self {
        Personal {
            inboxes: (0..workers).map(|_| Inbox::default()).collect(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Whether any job waits.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) != 0
    }

    /// Whether a job waits for this worker.
    #[inline]
    pub(crate) fn has(&self, worker: usize) -> bool {
        self.any() && !locked(&self.inboxes[worker]).is_empty()
    }

    fn push(&self, worker: usize, job: StolenJob) {
        locked(&self.inboxes[worker]).push_back(job);
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// The oldest job for this worker, if `admit` allows its level.
    #[cold]
    fn pop(&self, worker: usize, admit: impl FnOnce(u8) -> bool) -> Option<StolenJob> {
        let mut inbox = locked(&self.inboxes[worker]);
        if !admit(inbox.front()?.level) {
            return None;
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        inbox.pop_front()
    }
}

impl Shared {
    /// Leaves a job for the worker, or the brought thread, with this number.
    pub(crate) fn insert_personal(&self, number: usize, job: StolenJob) {
        self.personal.push(number, job);
        if self.threads.are_brought() {
            self.nudge(number);
        } else if let Some(worker) = self.claim_exactly(number) {
            self.start(worker);
        }
    }

    /// Whose inbox a stack looks into.
    #[inline]
    fn inbox_of(me: &Stack, worker: &Worker) -> usize {
        me.number().unwrap_or(worker.id)
    }

    /// Whether a job waits for this stack with this worker.
    #[inline]
    pub(crate) fn has_personal(&self, me: &Stack, worker: &Worker) -> bool {
        self.personal.has(Self::inbox_of(me, worker))
    }

    /// The next job for this stack with this worker alone.
    #[inline]
    pub(crate) fn personal_job(&self, me: &Stack, worker: &Worker) -> Option<StolenJob> {
        if !self.personal.any() {
            return None;
        }
        let admit = |level| !self.is_drawn(worker, level);
        self.personal.pop(Self::inbox_of(me, worker), admit)
    }

    /// The look after a release of `worker`.
    pub(crate) fn look_for_personal(&self, me: &Stack, worker: &Worker) {
        if me.number().is_none()
            && self.personal.has(worker.id)
            && let Some(worker) = self.claim_exactly(worker.id)
        {
            self.start(worker);
        }
    }

    /// Whether a spare thread has to look at inboxes.
    pub(crate) fn has_personal_for_spare(&self, me: &Stack) -> bool {
        match me.number() {
            Some(number) => self.personal.has(number),
            None => self.personal.any() && !self.threads.are_brought(),
        }
    }

    /// For a spare thread: an idle worker for which a job waits, or any if one waits for the thread.
    pub(crate) fn claim_for_personal(&self, me: &Stack) -> Option<&Worker> {
        if !self.has_personal_for_spare(me) {
            return None;
        }
        if me.number().is_some() {
            return self.claim_idle();
        }
        let mut workers = 0..self.workers.len();
        workers.find_map(|id| {
            let waits = self.personal.has(id);
            waits.then(|| self.claim_exactly(id)).flatten()
        })
    }
}
