//! How a stack waits, is abandoned, and comes back.
//!
//! All three end in the same way: the stack's forks become stealable, its worker goes on without it, the thread parks
//! in its mailbox, and the thread that claims the stack from the pool delivers a worker.
//!
//! - [`Job::suspend`]: the stack waits for a wake-up. Before it parks, its thread looks for the
//!   worker's next work itself: if that is a resumable stack, the worker goes straight to it; if it is
//!   the waiting stack itself, nothing moves at all; if there is none, the worker becomes idle and a
//!   later wake-up comes with it directly.
//! - [`Job::abandon`]: more urgent work is in hand. The thread that will run it is secured first: if
//!   there is none, the work goes back and the stack goes on.
//! - [`Job::regain`]: the worker was taken while the stack ran user code. An idle worker will do;
//!   otherwise the stack queues as if it had been abandoned, at the moment when it was noticed.

use crate::protocol::suspension::Retracted;
use crate::sched::{
    Work,
    inherit::inheriting::run_as,
    job::Job,
    machine::claim::Want,
    poll_context,
    rescue::revoke::Restored,
    serve::run,
    stack::{Binding, Delivery, FOR_ANYTHING, Me},
    worker::Worker,
};
use crate::sys::clock;
use crate::sys::primitives::atomic::{Ordering, fence};

impl Job {
    /// The stack waits until it is woken. Called inside the scheduler with a worker held; returns the same way. May
    /// return early: every wait is a loop around its condition.
    pub(crate) fn suspend(&self, me: Me<'_>) {
        self.suspend_or_run(me, false, None);
    }

    /// `in_hand`: what its worker goes on with, if nothing has woken the stack. Returns whether a poll ran on top of
    /// the wait, before which nothing had.
    pub(super) fn suspend_or_run(&self, me: Me<'_>, lends: bool, in_hand: Option<Work>) -> bool {
        if !self.core.process.is_this() {
            self.go_on(me);
            self.core.process.must_be_this();
        }
        me.note_wait();
        me.note_cpu();
        self.share_all(me);
        if in_hand.is_none()
            && me.number().is_some()
            && let Some(forked) = self.pinned.fork_of_thread(me)
        {
            self.run_here(me, Work::Fork(forked));
            return false;
        }
        if !me.suspension().suspend() {
            if let Some(work) = in_hand {
                self.put_back(me.worker(), work);
            }
            return false;
        }
        me.ran_awaited.store(0, Ordering::Relaxed);
        let worker = me.worker();
        let found = match in_hand.map_or_else(|| self.restore(me, worker), Restored::Found) {
            Restored::Done => {
                self.core.recall_poller();
                self.await_worker(me);
                return false;
            }
            Restored::Not => None,
            Restored::Found(work) => Some(work),
        };
        // What is in the inbox of a worker goes along with the worker. What is in the inbox of a thread does not: if it
        // came after the look above, its sender wakes this stack.
        let inbox = (!self.core.threads.are_provided()).then_some(worker.id);
        let Some(work) = found.or_else(|| self.find(me, worker, inbox)) else {
            self.start_other(me, worker);
            // This thread does not go into the poller, as a spare would.
            self.core.recall_poller();
            self.await_worker(me);
            return false;
        };
        match work {
            Work::Resume(stack) if std::ptr::eq(&*stack, me.shared()) => self.goes_on(me),
            Work::Resume(stack) => {
                self.at(worker, me.level()).hand_offs.add(1);
                self.hand_back(me, worker, &stack);
                self.await_worker(me);
            }
            work => {
                let runs_here = lends && work.is_poll();
                let handed = match runs_here {
                    true => Err(work),
                    false => self.hand_to_spare(me, worker, work, true),
                };
                let Err(work) = handed else {
                    self.at(worker, me.level()).hand_offs.add(1);
                    self.await_worker(me);
                    return false;
                };
                if !runs_here && self.is_for_another(me) {
                    self.put_back(worker, work);
                    self.leave_without_thread(me, worker);
                    self.await_worker_asking(me, true);
                    return false;
                }
                match me.suspension().retract() {
                    // A worker is coming: what this thread has found is for others.
                    Retracted::Claimed => {
                        self.put_back(worker, work);
                        self.release_and_look(me, worker);
                        self.await_worker(me);
                    }
                    Retracted::Woken if !runs_here => self.put_back(worker, work),
                    retracted => {
                        self.run_here(me, work);
                        return runs_here && retracted == Retracted::Unwoken;
                    }
                }
            }
        }
        false
    }

    /// Runs the work in hand on top of this stack: the task for which it waits. There are two exceptions to the rule
    /// that a stack runs nothing but its own computation. Where no thread can be had, any work may run here
    /// (`without_thread.rs`). And a stack that lends its thread runs polls (`lending.rs`).
    #[cold]
    pub(crate) fn run_here(&self, me: Me<'_>, work: Work) {
        let (level, waits_as) = match &work {
            Work::Task(next) => (next.level(), next.base_level()),
            Work::Fork(forked) => (forked.origin.level, forked.origin.waits_as),
            Work::Resume(_) => unreachable!("a stack has its own thread"),
        };
        me.interrupts_wait(|| me.covered(level, waits_as, || self.run_on_top(me, work)));
    }

    fn run_on_top(&self, me: Me<'_>, work: Work) {
        let (level, base) = (me.level(), me.deque.bottom());
        let waits_as = me.waits_as();
        match work {
            Work::Task(next) => {
                let level = next.level();
                let (worker, now) = (me.worker(), clock::now());
                self.go(me, level);
                me.set_waits_as(next.base_level());
                let below = me.set_on_top(next.as_raw());
                let ran = run_as(None, || {
                    let ran = poll_context::on_top(next.is_closure(), || {
                        let claimed = |next: &_| self.begins_task(me, worker, next, level, now);
                        next.run_then(me.runner(), claimed, |_| ())
                    });
                    me.set_below(&below);
                    run::run_pushed_above(me, base);
                    ran
                });
                self.tasks.count_cancelled(ran);
            }
            Work::Fork(forked) => {
                self.go(me, forked.origin.level);
                run::run_stolen(me, forked);
            }
            Work::Resume(_) => unreachable!("a stack has its own thread"),
        }
        self.come_in(me);
        self.flush_ring(&me);
        me.set_level(level);
        me.set_waits_as(waits_as);
        fence(Ordering::SeqCst);
        // A thread that raised the task of this stack meanwhile saw another task here, or the level of another.
        me.raised_meanwhile();
    }

    /// Work that `worker` found, but that cannot be run here, returns to where it was.
    pub(crate) fn put_back(&self, worker: &Worker, work: Work) {
        match work {
            Work::Task(task) => self.insert_task(task),
            Work::Resume(stack) => {
                stack.suspension.abandon();
                self.insert_abandoned(stack);
            }
            Work::Fork(forked) if forked.pinned => self.pinned.put_back(worker, forked),
            Work::Fork(forked) => self.insert_fork(forked),
        }
    }

    /// Leaves the stack for more urgent work. `false`: there is no thread for that work; it went back.
    pub(crate) fn abandon(&self, me: Me<'_>, work: Work) -> bool {
        self.abandon_under(me, work, ())
    }

    /// As [`Job::abandon`], under a lock that is given back when the stack is in its pool.
    pub(in crate::sched) fn abandon_under<L>(&self, me: Me<'_>, work: Work, lock: L) -> bool {
        let worker = me.worker();
        let level = me.level();
        match work {
            Work::Resume(stack) => {
                self.leave_resumable(me);
                drop(lock);
                self.at(worker, level).abandonments.add(1);
                self.at(worker, level).hand_offs.add(1);
                if self.seats.has_rounds() {
                    // Compute in turns: the kernel would wake it on the processor that idles, which has slept
                    // for a round.
                    self.hand_over(me, worker, &stack);
                } else {
                    self.hand_back(me, worker, &stack);
                }
            }
            work => {
                let Some(spare) = self.secure_spare(me, work.level()) else {
                    self.put_back(worker, work);
                    if !self.leaves_to_poller(me) {
                        return false;
                    }
                    self.leave_resumable(me);
                    drop(lock);
                    self.at(worker, level).abandonments.add(1);
                    self.start(worker);
                    self.await_worker(me);
                    self.came_back(me);
                    return true;
                };
                self.leave_resumable(me);
                drop(lock);
                self.at(worker, level).abandonments.add(1);
                self.at(worker, level).hand_offs.add(1);
                worker.hand(Some(work));
                self.hand_over(me, worker, &spare);
            }
        }
        self.await_worker(me);
        self.came_back(me);
        true
    }

    /// The worker was taken from this stack. Returns when it holds one again.
    #[cold]
    pub(crate) fn regain(&self, me: Me<'_>) {
        if !self.core.process.is_this() {
            // No other thread is here that has the worker.
            return;
        }
        if let Some(worker) = self.claim_awake(Want::Serving(1 << me.level())) {
            me.hold(worker);
            return;
        }
        self.leave_resumable(me);
        self.await_worker(me);
        self.came_back(me);
    }

    /// Leaves the stack, which can go on, while `give` gives its worker away. Returns when it holds one again.
    pub(in crate::sched) fn give_up_worker(&self, me: Me<'_>, give: impl FnOnce()) {
        self.leave_resumable(me);
        give();
        self.await_worker(me);
        self.came_back(me);
    }

    fn leave_resumable(&self, me: Me<'_>) {
        me.note_cpu();
        self.share_all(me);
        if poll_context::polls_task() {
            self.abandoned_polls.fetch_add(1, Ordering::Relaxed);
        }
        me.suspension.abandon();
        self.insert_abandoned(me.arc());
        self.wait_as_external(me);
    }

    /// The stack, which was abandoned, has a worker again.
    fn came_back(&self, me: Me<'_>) {
        if poll_context::polls_task() {
            self.abandoned_polls.fetch_sub(1, Ordering::Relaxed);
        }
        self.came_back_as_external(me);
    }

    /// Parks until a worker is delivered.
    fn await_worker(&self, me: Me<'_>) {
        self.await_worker_asking(me, false);
    }

    /// `asks`: the stack has left work to another thread for want of one (`without_thread.rs`).
    fn await_worker_asking(&self, me: Me<'_>, asks: bool) {
        loop {
            let delivery = if asks || self.core.threads.may_be_refused() {
                self.receive_without_thread(me)
            } else {
                me.receive(&self.core)
            };
            match delivery {
                Delivery::Worker(worker) => {
                    me.hold(worker);
                    return self.goes_on(me);
                }
                // Meant for a spare thread, and stale.
                Delivery::Look => {}
            }
        }
    }

    /// A stack that was ready has a worker.
    fn goes_on(&self, me: Me<'_>) {
        if self.pools.are_several() {
            me.lowers_late_raise();
        }
        if let Some(ticks) = me.no_longer_waits() {
            self.at(me.worker(), me.level()).latency.record(ticks);
        }
    }

    /// A plain thread enters: it borrows a stack and waits for a worker. The thread keeps the runtime
    /// alive until [`Job::leave_external`].
    pub(crate) fn enter_external(&self, level: Option<u8>) -> Binding {
        self.core.process.must_be_this();
        // SAFETY: the stack was taken off the list of stacks without a thread, or is new.
        let mut binding = unsafe { Binding::new(self.core.borrow_external()) };
        binding.take_up(self.arc());
        let me = binding.me();
        me.set_waits_as(level.unwrap_or(FOR_ANYTHING));
        // A thread of the program's own has no level, and waits for its call: nothing of the runtime's comes first.
        let level = level.unwrap_or(0);
        me.begins_without_task(level);
        me.set_level(level);
        match self.claim_awake(Want::Serving(1 << level)) {
            Some(worker) => me.hold(worker),
            None => {
                self.externals.enters(me.arc());
                me.suspension.abandon();
                self.insert_resumable(me.arc());
                self.ask_equals(level);
                self.await_worker(me);
                self.externals.has_entered(&me);
            }
        }
        me.frames.enter_external();
        self.go(me, level);
        binding
    }

    /// The plain thread leaves; its worker goes on without it.
    pub(crate) fn leave_external(&self, mut binding: Binding) {
        let me = binding.me();
        debug_assert_eq!(me.deque.bottom(), 0, "an external thread left forks behind");
        me.frames.leave_external();
        if self.finish(me, me.what()) {
            self.flush_ring(&me);
            let worker = me.worker();
            match self.restore(me, worker) {
                Restored::Done => {}
                Restored::Not => self.release_and_look(me, worker),
                Restored::Found(work) => {
                    if let Err(work) = self.hand_to_spare(me, worker, work, false) {
                        self.put_back(worker, work);
                        self.release_and_look(me, worker);
                    }
                }
            }
            self.core.recall_poller();
        }
        binding.leave_job();
        self.core.return_external(binding.end());
    }
}
