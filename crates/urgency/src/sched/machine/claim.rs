//! How a worker comes out of the idle set, and into it.
//!
//! A thread that has work for a worker takes it out of the idle set by [`Job::claim`], and says which it [`Want`]s. The
//! worker is the thread's then: it serves the thread's job, its time asleep is accounted, and nobody else has it. The
//! thread delivers it, most often by [`Job::start`]. A job that has as many workers as it may gets none
//! (`protocol/crew.rs`).
//!
//! A thread that has no work for its worker puts it back by [`Job::release`], and looks once more
//! ([`Job::release_and_look`]): an insertion that saw no idle worker may rely on that look.

use crate::{
    protocol::idle::Idle,
    sched::{
        job::Job,
        stack::Me,
        worker::{NO_LEVEL, Worker},
    },
};

/// Which idle worker a thread wants for its job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// Any.
    Any,
    /// Any, and this one rather than another.
    Rather(usize),
    /// This one.
    This(usize),
    /// This one, however many the job has: for what no other worker may run, or where nothing runs
    /// (`cores/blocked.rs`).
    Beyond(usize),
    /// One that serves one of these levels. Where no seat waits that is any, whatever the levels.
    Serving(u64),
    /// One that serves what is offered; the caller knows that something is.
    Offered,
}

impl Job {
    /// Takes a worker out of the idle set for the caller.
    #[inline]
    pub(crate) fn claim(&self, want: Want) -> Option<&Worker> {
        let idle = &self.core.idle;
        let rather = |id| self.admitted(|| idle.claim(id));
        match want {
            Want::Any => rather(0),
            // Another one may have another seat.
            Want::Rather(id) if self.seats.waits() => self.claim_this(id),
            Want::Rather(id) => rather(id),
            Want::This(id) => self.claim_this(id),
            Want::Beyond(id) => idle.claim_exactly(id).then(|| self.claimed(id)),
            Want::Serving(levels) if self.seats.waits() => self.claim_serving(levels),
            Want::Offered if self.seats.waits() => self.claim_serving(self.levels_offered()),
            Want::Serving(_) | Want::Offered => rather(0),
        }
    }

    /// As [`Job::claim`], for a thread that is awake or a stack that can go on: it may have a worker of the reserve,
    /// but where no more workers may run than the process may use (`entitled.rs`).
    #[inline]
    pub(crate) fn claim_awake(&self, want: Want) -> Option<&Worker> {
        let idle = &self.core.idle;
        let is_bound = idle.may_hold_back() && self.core.entitled.binds();
        if is_bound && !idle.is_any_hungry() {
            return None;
        }
        self.claim(want)
    }

    fn claim_this(&self, id: usize) -> Option<&Worker> {
        self.admitted(|| self.core.idle.claim_exactly(id).then_some(id))
    }

    #[cold]
    fn claim_serving(&self, levels: u64) -> Option<&Worker> {
        let mut idle = self.idle_serving(levels);
        idle.find_map(|worker| self.claim_this(worker.id))
    }

    /// The worker that `claim` takes out of the idle set, unless the job has as many as it may.
    #[inline]
    fn admitted(&self, claim: impl FnOnce() -> Option<usize>) -> Option<&Worker> {
        self.crew.admit(
            || self.workers().count(),
            || claim().map(|id| self.claimed(id)),
        )
    }

    fn claimed(&self, id: usize) -> &Worker {
        let worker = &*self.core.workers[id];
        let slept = worker.lap();
        worker.counters.asleep.add(slept);
        self.core.threads.idle_spin.learn(slept);
        worker.serve(self);
        self.begins_to_share();
        worker
    }

    /// Starts an idle worker for what is ready, if there is an idle worker that is not in reserve. Otherwise sees to it
    /// that the busy workers check in.
    pub(crate) fn start_idle(&self) {
        self.start_idle_by(|worker| self.start(worker), || self.arm_for_queued());
    }

    /// As [`Job::start_idle`], after an insertion at `level` of something that is not the forks of a stack.
    pub(in crate::sched) fn start_idle_after(&self, level: u8) {
        self.start_idle_by(|worker| self.start(worker), || self.arm_for_inserted(level));
    }

    /// As [`Job::start_idle`], where `start` starts it, and `arm` sees to the busy ones.
    pub(in crate::sched) fn start_idle_by(&self, start: impl FnOnce(&Worker), arm: impl FnOnce()) {
        let claimed = if self.seats.waits() {
            self.claim(Want::Serving(self.pools.ready.levels()))
        } else if self.core.idle.is_any_hungry() {
            self.claim(Want::Any)
        } else {
            None
        };
        let served = || {
            let is_due = self.core.does_any_overrun();
            self.revoke_overrun(is_due.then(|| self.most_urgent_queued()).flatten()?)
        };
        match claimed.or_else(served) {
            Some(worker) => start(worker),
            None => {
                self.ask_for_worker();
                arm();
            }
        }
    }

    /// As [`Job::start_idle`], for something at these levels that is in no pool.
    pub(crate) fn start_idle_for(&self, levels: u64) {
        match self.claim(Want::Serving(levels)) {
            Some(worker) => self.start(worker),
            None => {
                self.ask_for_worker();
                self.arm_relief();
            }
        }
    }

    /// Puts a worker that no stack uses into the idle set.
    pub(crate) fn release(&self, worker: &Worker) {
        self.release_by(worker, |idle| idle.release(worker.id));
    }

    /// As [`Job::release`], of a searcher that has found nothing.
    pub(crate) fn give_up(&self, worker: &Worker) {
        self.release_by(worker, |idle| self.searchers.give_up(idle, worker.id));
    }

    fn release_by(&self, worker: &Worker, put_in: impl FnOnce(&Idle)) {
        worker.set_level(NO_LEVEL);
        worker.note_cpu();
        self.core.places.leaves(&worker.place);
        worker.lap();
        worker.serve_none();
        if self.core.is_shared() {
            self.notes_if_quiet(worker);
        }
        put_in(&self.core.idle);
        if self.core.threads.are_provided() {
            self.nudge_for_pinned();
        }
    }

    /// As [`Job::release`], and looks once more: no worker is idle while anything is ready.
    pub(crate) fn release_and_look(&self, me: Me<'_>, worker: &Worker) {
        self.release(worker);
        self.look_for_pinned(worker);
        if self.is_anything_left(Some(me), worker)
            && (self.searchers.count() == 0 || self.seats.waits())
        {
            self.start_idle();
        }
        self.start_other(me, worker);
    }
}
