//! The reserve: workers beyond the processors, and when they are needed after all.
//!
//! In a runtime with more workers than processors some idle workers are in reserve (`idle.rs`): an insertion does not
//! start them, and the stacks that run keep their forks to themselves. That is right while these stacks use the
//! processors, and come to scheduling points. A stack whose thread sleeps in the kernel does neither, and for its sake
//! programs have more workers than processors. And a stack that spins until another stack does something must not keep
//! that other stack from running.
//!
//! 1. An insertion while the idle workers are in reserve arms the relief timer, as if there were no idle worker. A
//!    stack that goes to user code arms the timer as well, for some periods (`relief_timer.rs`).
//! 2. An expiry counts the stacks that have not answered since the expiry before. By that number, fewer workers are in
//!    reserve from then on. All stacks that run are asked to check in.
//! 3. As many workers are started as are no longer in reserve, at most one for each piece of work that waits. For forks
//!    one worker is started: it is hungry, asks for forks or takes hidden ones, and starts the next worker if there are
//!    more. So a worker of the reserve comes first. Only where there is none does a stack lose its worker
//!    (`relief.rs`).
//! 4. While a stack has forks, the timer is armed again. So an expiry's count is never older than some periods.
//!
//! *Named race, "go under expiry"*: a stack sees that the timer is set, and the timer expires before the expiry can see
//! that the stack runs. So the stack's worker shows its level, *then* the stack looks at the timer. An expiry switches
//! the timer off, *then* looks at the levels.
//!
//! Rules 1 and 4 hold whether a worker is idle or not: a worker that searches, or is on its way to a thread, is not
//! idle for a moment. (An expiry in that moment did nothing, and a stack in a long leaf kept its forks for good.)
//!
//! If the process may use more processors than before (`entitled.rs`), rule 3 holds for the workers that are no longer
//! in reserve. Where no more workers may run than the process may use, a stack counts for rule 2 only if its thread
//! sleeps: one that computes uses a processor.
//!
//! Where seats are assigned (`seats.rs`), each has a worker of its own, and none is in reserve.
//!
//! Work that sleeps in the kernel gets more workers with each expiry: 2, 4, 8, ... on two processors.

use super::relief::Waiting;
use crate::sched::{
    core::{Core, JobList},
    job::Job,
    machine::claim::Want,
    stack::Stack,
    worker::{NO_LEVEL, Worker},
};
use crate::sys::{
    self,
    primitives::atomic::{Ordering, fence},
};
use urgency_policy::level::{LevelPolicy, Prompt};

impl Job {
    /// A stack goes to user code: rule 1.
    #[inline]
    pub(crate) fn watch_reserve(&self) {
        if self.core.idle.may_hold_back() {
            // The expiry that is not seen here sees the level that this worker has shown.
            fence(Ordering::SeqCst);
            if !self.core.relief_timer.is_set() {
                self.watch_reserve_cold();
            }
        }
    }

    #[cold]
    fn watch_reserve_cold(&self) {
        if !self.seats.is_on() {
            self.arm_late();
        }
    }

    /// A worker that is no longer in reserve, for forked closures: rules 3 and 4.
    fn start_for_forks(&self) {
        let runs = self.workers().filter(|worker| worker.level() != NO_LEVEL);
        let mut holders = runs.filter_map(|worker| self.core.holder(worker));
        if holders.any(|stack| stack.is_of(self) && !stack.deque.seems_empty()) {
            self.arm_late();
            if self.core.idle.is_any_hungry()
                && let Some(worker) = self.claim(Want::Any)
            {
                self.start(worker);
            }
        }
    }

    /// Workers that are no longer in reserve, for what waits: rule 3.
    pub(super) fn call_reserve<'a>(&'a self, waiting: &mut Waiting, called: &mut Vec<&'a Worker>) {
        if self.seats.is_on() {
            return;
        }
        while let Some(level) = Prompt.serve(waiting.levels)
            && self.core.idle.is_any_hungry()
            && let Some(worker) = self.claim(Want::Any)
        {
            waiting.serve(level);
            called.push(worker);
        }
    }
}

impl Core {
    /// The relief timer expired: rules 2 and 4, and 3 for forked closures.
    pub(super) fn recount_reserve(&self, jobs: &JobList) {
        let has_seats = jobs.iter().any(|job| job.seats.is_on());
        let has_more = self.follow_entitlement(has_seats);
        if has_seats {
            return self.give_each_seat_its_worker(jobs);
        }
        if !(has_more || self.idle.may_hold_back()) {
            return;
        }
        fence(Ordering::SeqCst);
        let is_blocked = |stack: &Stack| {
            !self.entitled.binds() || sys::thread::is_blocked(stack.tid.load(Ordering::Relaxed))
        };
        let mut held = 0;
        for worker in &self.workers {
            if worker.level() == NO_LEVEL {
                continue;
            }
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            held += usize::from(stack.is_silent() && is_blocked(stack));
        }
        self.idle.set_held(held);
        jobs.iter().for_each(|job| job.start_for_forks());
    }

    /// No worker is in reserve where seats are assigned. An expiry that counted before the seats came, and ended after
    /// that, has put some there again.
    fn give_each_seat_its_worker(&self, jobs: &JobList) {
        if self.idle.in_reserve() != 0 {
            self.idle.set_held(usize::MAX);
            jobs.iter().for_each(|job| job.may_have_more());
        }
    }
}
