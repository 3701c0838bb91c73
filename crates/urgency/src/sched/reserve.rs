//! The reserve: workers beyond the processors, and when they are needed after all.
//!
//! In a runtime with more workers than processors some idle workers are in reserve (`idle.rs`): an insertion does not
//! start them, and the stacks that run keep their forks to themselves. That is right while these stacks use the
//! processors. A stack whose thread sleeps in the kernel uses none, and for its sake programs have more workers than
//! processors. And a stack that spins until another stack does something must not keep that other stack from running
//! for good. These stacks are *held up*.
//!
//! 1. An insertion while the idle workers are in reserve arms the relief timer, as if there were no idle worker. A
//!    stack that goes to user code arms the timer as well, for some periods (`relief_timer.rs`).
//! 2. An expiry counts the stacks that are held up: they have not answered since the expiry before and their threads
//!    sleep, or they have not answered for [`LONG`]. By that number, fewer workers are in reserve from then on. All
//!    stacks that run are asked to check in.
//! 3. As many workers are started as are no longer in reserve, at most one for each piece of work that waits. For forks
//!    one worker is started: it is hungry, asks for forks or takes hidden ones, and starts the next worker if there are
//!    more. So a worker of the reserve comes first. Only where there is none does a stack lose its worker
//!    (`relief.rs`).
//! 4. While a stack has forks, the timer is armed again. So an expiry's count is never older than some periods.
//! 5. If more workers run than there are processors and stacks that are held up, a worker that has ended what it ran
//!    joins the reserve, unless what waits is more urgent than what another worker runs. It never leaves something that
//!    it has begun: the other stacks may spin until that goes on.
//!
//! So threads that compute do not become more than the processors, however many workers there are, and urgent work
//! competes with no more of them than in a runtime with a worker for each processor. What waits for stacks that run for
//! long, and come to scheduling points, takes turns with them (`turns.rs`).
//!
//! *Named race, "go under expiry"*: a stack sees that the timer is set, and the timer expires before the expiry can see
//! that the stack runs. So the stack's worker shows its level, *then* the stack looks at the timer. An expiry switches
//! the timer off, *then* looks at the levels.
//!
//! *Named race, "two join"*: two workers are superfluous by one, and both join the reserve. Each looks for work after
//! its release, and then one of them is hungry.
//!
//! Rules 1 and 4 hold whether a worker is idle or not: a worker that searches, or is on its way to a thread, is not
//! idle for a moment. (An expiry in that moment did nothing, and a stack in a long leaf kept its forks for good.)
//!
//! If the process may use more processors than before (`entitled.rs`), rule 3 holds for the workers that are no longer
//! in reserve. Where no more workers may run than the process may use, a stack counts for rule 2 only if its thread
//! sleeps: one that computes uses a processor.
//!
//! Work that sleeps in the kernel gets more workers with each expiry: 2, 4, 8, ... on two processors.
//!
//! # Rejected
//!
//! To count each stack that has not answered since the expiry before. With more workers than processors a thread often
//! has not run since then, and was a reason for one worker more, whose thread kept the next one from running: with 64
//! workers on 2 processors all 64 computed, and urgent work waited for its turn among as many threads.

use super::{
    claim::Want,
    core::{Core, JobList},
    job::Job,
    relief::{LONG, Waiting},
    stack::{Me, Stack},
    worker::{NO_LEVEL, Worker},
};
use crate::sys::{
    clock,
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

    /// Whether `worker` is in reserve from now on: rule 5. It has ended what it ran.
    #[inline]
    pub(super) fn joins_reserve(&self, me: Me<'_>, worker: &Worker) -> bool {
        self.core.idle.is_one_superfluous() && self.joins_reserve_cold(me, worker)
    }

    #[cold]
    fn joins_reserve_cold(&self, me: Me<'_>, worker: &Worker) -> bool {
        let begins = |level| self.served.below(level) != 0;
        if self.seats.is_on() || self.most_urgent_queued().is_none_or(begins) {
            return false;
        }
        self.flush_ring(&me);
        worker.counters.scheduling.add(worker.lap());
        self.release_and_look(me, worker);
        true
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
        called.extend(self.ask_for_turns(waiting.levels));
    }
}

impl Core {
    /// The relief timer expired: rules 2 and 4, and 3 for forked closures.
    pub(super) fn recount_reserve(&self, jobs: &JobList) {
        let has_seats = jobs.iter().any(|job| job.seats.is_on());
        let has_more = self.follow_entitlement(has_seats);
        if has_seats || !(has_more || self.idle.may_hold_back()) {
            return;
        }
        fence(Ordering::SeqCst);
        let long = clock::ticks(LONG.as_nanos() as f64);
        let is_long = |stack: &Stack| {
            let asked = stack.check_in_asked_at.load(Ordering::Relaxed);
            !self.entitled.binds() && clock::now().saturating_sub(asked) >= long
        };
        let mut held = 0;
        for worker in &self.workers {
            if worker.level() == NO_LEVEL {
                continue;
            }
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            held += usize::from(stack.is_silent() && (stack.sleeps() || is_long(stack)));
        }
        self.idle.set_held(held);
        jobs.iter().for_each(|job| job.start_for_forks());
    }
}
