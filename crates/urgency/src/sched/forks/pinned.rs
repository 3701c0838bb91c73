//! Pinned forks: closures for one certain worker.
//!
//! Most work may run on any worker. A broadcast may not: it runs one closure on each worker. Each of them is a *pinned*
//! fork and waits in its worker's inbox. The stack that holds the worker takes it when it looks for work, unless more
//! urgent work is ready.
//!
//! What is sent and what is looked at, and why no wake-up is lost, is in `protocol/inboxes.rs`. If the worker is not
//! idle when a fork is sent, a stack holds it and will look.
//!
//! If the threads are provided, the inboxes are the threads': the sender wakes the thread, if it waits, and any worker
//! will do. There are as many workers as threads, so there is a worker for the thread. But at the moment when the
//! thread looks, another thread may hold that worker, to start it for something else. So a thread that releases a
//! worker wakes the threads for which a fork waits. A thread that waits in the middle of a computation first runs what
//! is in its inbox, on top of the computation, since no other thread may.
//!
//! Within an inbox the oldest fork of the most urgent level is next.

use crate::{
    protocol::inboxes::Inboxes,
    sched::{
        StolenFork, Work, core::Core, job::Job, machine::claim::Want, stack::Me, worker::Worker,
    },
};

/// The inboxes of all workers.
#[derive(Debug)]
pub(crate) struct Pinned(Inboxes<StolenFork>);

impl Pinned {
    pub(crate) fn new(workers: usize) -> Self {
        Pinned(Inboxes::new(workers))
    }

    /// Whether any pinned fork waits.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0.any()
    }

    /// Whether a fork waits for this worker.
    #[inline]
    pub(crate) fn has(&self, worker: usize) -> bool {
        self.0.has(worker)
    }

    fn push(&self, worker: usize, forked: StolenFork) {
        self.0.push(worker, forked);
    }

    /// The oldest fork of the most urgent level in this inbox, if `admit` allows that level.
    #[inline]
    fn pop(&self, inbox: Option<usize>, admit: impl FnOnce(u8) -> bool) -> Option<StolenFork> {
        let level = |forked: &StolenFork| forked.origin.level;
        self.any().then(|| self.0.pop(inbox?, level, admit))?
    }

    /// Whether a fork waits in this inbox.
    #[inline]
    pub(crate) fn waits_in(&self, inbox: Option<usize>) -> bool {
        inbox.is_some_and(|inbox| self.has(inbox))
    }

    /// The next fork for this provided thread, which is about to wait: whatever else is ready, the thread would not
    /// come back for the fork.
    pub(crate) fn fork_of_thread(&self, me: Me<'_>) -> Option<StolenFork> {
        self.pop(me.number(), |_| true)
    }

    /// A fork that was in `worker`'s inbox, and that its stack cannot run, goes back. The worker is released next.
    pub(crate) fn put_back(&self, worker: &Worker, forked: StolenFork) {
        self.push(worker.id, forked);
    }
}

impl Job {
    /// Leaves a fork for the worker, or the provided thread, with this number.
    pub(crate) fn insert_pinned(&self, number: usize, forked: StolenFork) {
        debug_assert!(forked.pinned);
        self.pinned.push(number, forked);
        if self.core.threads.are_provided() {
            self.nudge(number);
        } else if let Some(worker) = self.claim(Want::Beyond(number)) {
            self.start(worker);
        } else if self.core.is_shared() {
            // It may serve another job.
            self.arm_relief();
        }
    }

    /// Whether a fork waits for this worker.
    pub(in crate::sched) fn has_pinned_for(&self, worker: &Worker) -> bool {
        !self.core.threads.are_provided() && self.pinned.has(worker.id)
    }

    /// The next fork in this inbox, unless more urgent work is ready for `worker`.
    #[inline]
    pub(crate) fn pinned_fork(&self, worker: &Worker, inbox: Option<usize>) -> Option<StolenFork> {
        self.pinned
            .pop(inbox, |level| !self.is_drawn(worker, level))
    }

    /// Runs a fork of this level or a more urgent one that is for the calling stack with its worker alone, on top of
    /// what the stack runs. Called from there. Returns whether there was any.
    pub(crate) fn run_pinned(&self, me: Me<'_>) -> bool {
        if !self.pinned.any() {
            return false;
        }
        self.come_in(me);
        let (worker, own) = (me.worker(), me.level());
        let admit = |level| level <= own && !self.is_drawn(worker, level);
        let inbox = self.core.inbox_of(me, worker);
        let forked = self.pinned.pop(inbox, admit);
        let ran = forked.map(|forked| self.run_here(me, Work::Fork(forked)));
        self.go_on(me);
        ran.is_some()
    }

    /// A worker was released in a runtime of provided threads.
    pub(crate) fn nudge_for_pinned(&self) {
        if self.pinned.any() {
            let waits = |number: &usize| self.pinned.has(*number);
            let numbers = 0..self.core.workers.len();
            numbers.filter(waits).for_each(|number| self.nudge(number));
        }
    }

    /// The look after a release of `worker`.
    pub(crate) fn look_for_pinned(&self, worker: &Worker) {
        if !self.core.threads.are_provided()
            && self.pinned.has(worker.id)
            && let Some(worker) = self.claim(Want::Beyond(worker.id))
        {
            self.start(worker);
        }
    }

    /// Whether a spare thread has to look at inboxes.
    pub(crate) fn has_pinned_for_spare(&self, me: Me<'_>) -> bool {
        match me.number() {
            Some(number) => self.pinned.has(number),
            None => self.pinned.any() && !self.core.threads.are_provided(),
        }
    }

    /// For a spare thread: an idle worker for which a fork waits, or any idle worker if a fork waits for the thread.
    pub(crate) fn claim_for_pinned(&self, me: Me<'_>) -> Option<&Worker> {
        if !self.has_pinned_for_spare(me) {
            return None;
        }
        if me.number().is_some() {
            return self.claim(Want::Any);
        }
        let mut workers = 0..self.core.workers.len();
        workers.find_map(|id| {
            let waits = self.pinned.has(id);
            waits.then(|| self.claim(Want::Beyond(id))).flatten()
        })
    }
}

impl Core {
    /// The inbox that a stack looks into; an external thread in a runtime of provided threads has none.
    #[inline]
    pub(crate) fn inbox_of(&self, me: Me<'_>, worker: &Worker) -> Option<usize> {
        if self.threads.are_provided() {
            me.number()
        } else {
            Some(worker.id)
        }
    }
}
