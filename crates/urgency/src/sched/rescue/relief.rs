//! Relief: work that waits gets a worker, whatever the stacks that hold the workers do.
//!
//! When work was inserted and no worker was idle, a one-shot timer of one relief period is armed. When it expires and
//! work still waits, the thread in the poller looks at every worker. It asks each stack to check in (CHECK_IN), and
//! from stacks that have left that unanswered for half a period it revokes workers by these rules:
//!
//! 1. **A thread that sleeps in the kernel holds nothing worth having.** Its worker goes to whatever waits, at
//!    any level that the worker serves, and in any job that shares the workers (`cores/blocked.rs`). All such workers
//!    go at one look. Code that sleeps often, and for a moment only, is such a thread too: it sleeps when it is looked
//!    at, and has for most of the time since it was asked.
//! 2. **A running thread loses its worker to more urgent work**, if it has left a request unanswered for half a period.
//!    As many workers go at one look as there are pieces of such work, the least urgent first. The thread is lowered
//!    (`demotion.rs`), and its worker is restored when the urgent work is done (`revoke.rs`).
//! 3. **A running thread does not lose its worker to its equals because they wait**, except to brief ones, for a turn
//!    (`turns.rs`). An endless loop among equals loses its worker after [`LONG`] of its own time. At most P such
//!    threads go on without a worker at a time: the kernel's time sharing gains nothing from more.
//! 4. **A stack that waits to go on after relief is no reason for relief** among its equals: by rule 3. It is first in
//!    its level's pool, and its worker comes back to it before the worker begins anything new.
//!
//! So at most P leaves of a computation are begun for each time that it is overtaken as a whole. With two levels at
//! most 2 P pieces of work are in progress, of both levels together, so at most 2 P threads compute, however often
//! events come. Each further level adds P. Code that runs for [`LONG`] between two scheduling points is an endless loop
//! by rule 3, two leaves of a `join` of half that length as well: P of these go on besides, at all levels together. So
//! there are at most 2 P leaves at the least urgent of two levels, and 3 P pieces.
//!
//! If a stack whose worker was revoked still has not checked in at an expiry, its forks are made public. Which forks
//! else no worker sees, `hidden.rs` says.
//!
//! # Forks of stacks that run
//!
//! Suppose that all that waits is public forks of stacks that run, at the most urgent level with work, and no worker
//! serves anything less urgent. Then nothing that is more urgent than what runs has to wait: the stacks come to their
//! forks themselves. Therefore the timer expires after [`LATE_PERIODS`] only (`relief_timer.rs`), as it does after a
//! look that found nothing but equals waiting for threads that run.
//!
//! # Rejected
//!
//! - To revoke workers for equals after half a period. A leaf of 40 ms that lost its worker to an urgent task waited to
//!   go on, which was a reason to take the next leaf's: 73 to 100 of 128 were in progress at once, with 2 workers.
//! - One worker for each expiry: the k-th blocked thread kept its worker for k milliseconds.
//! - To ask whether the thread of a less urgent stack has run meanwhile: more urgent work should have what there is.

use super::{
    hidden,
    revoke::Cause,
    silence::{Idleness, answer_time},
    turns::{can_have_turn, runs_briefly},
};
use crate::{
    protocol::{
        attention::{CHECK_IN, PREEMPT},
        fence,
    },
    sched::{
        core::{Core, JobList, RELIEF_PERIOD},
        job::Job,
        worker::{NO_LEVEL, Worker, runs::Runs},
    },
    sys::{chaos, clock, primitives::atomic::Ordering},
};
use std::time::Duration;
use urgency_policy::{cores::Usage, level::LevelPolicy};

/// After how many relief periods relief looks if nothing waits but forks of stacks that run.
const LATE_PERIODS: u32 = 4;

/// A stack that runs for so long without checking in is taken for an endless loop.
pub(in crate::sched) const LONG: Duration = Duration::from_nanos(Usage::MOST_BESIDE);

/// How many pieces of work wait, by level.
pub(in crate::sched) struct Waiting {
    pub(in crate::sched) levels: u64,
    counts: [usize; 64],
}

impl Waiting {
    #[cfg(test)]
    pub(in crate::sched) fn count(&self) -> usize {
        self.counts.iter().sum()
    }

    /// A worker was found for one of these levels.
    pub(super) fn serve(&mut self, level: u8) {
        let count = &mut self.counts[usize::from(level)];
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.levels &= !(1 << level);
        }
    }
}

impl Job {
    /// Relief must look at the busy workers within the relief period.
    #[inline]
    pub(crate) fn arm_relief(&self) {
        let core = &self.core;
        if !core.closing.load(Ordering::Relaxed) && !core.relief_timer.is_soon() {
            core.arm_relief(self.seats.until_expiry());
        }
    }

    /// As [`Job::arm_relief`], for an insertion without a barrier.
    #[inline]
    pub(crate) fn arm_light(&self) {
        let core = &self.core;
        if !core.closing.load(Ordering::Relaxed) && !core.relief_timer.is_light() {
            core.arm_light(self.seats.until_expiry());
        }
    }

    /// Relief must look within some periods.
    pub(crate) fn arm_late(&self) {
        self.core.arm_late();
    }

    /// Something was inserted, and no worker is idle.
    pub(crate) fn arm_for_queued(&self) {
        if self.core.relief_timer.is_soon() {
            return;
        }
        match self.most_urgent_queued() {
            Some(level) => self.arm_for(level),
            // Hidden for a moment under a bit that is being cleared.
            None => self.arm_relief(),
        }
    }

    /// As [`Job::arm_for_queued`], where what was inserted at `level` is not the forks of a stack: if nothing more
    /// urgent waits, no look at the stacks is needed.
    pub(in crate::sched) fn arm_for_inserted(&self, level: u8) {
        if self.core.relief_timer.is_soon() {
            return;
        }
        let may_be_above = self.pools.ready.levels() & !(u64::MAX << level) != 0;
        match may_be_above.then(|| self.most_urgent_queued()).flatten() {
            Some(above) if above < level => self.arm_for(above),
            _ => self.arm_relief(),
        }
    }

    /// The most urgent that waits is at `level`.
    pub(crate) fn arm_for(&self, level: u8) {
        if self.are_forks_of_running(level) {
            self.arm_late();
        } else {
            self.arm_relief();
        }
    }

    /// All that waits at `level`, the most urgent with work, is forks of stacks that run there, and no worker serves
    /// anything less urgent.
    fn are_forks_of_running(&self, level: u8) -> bool {
        if self.seats.is_on() || self.is_anybody_below(level, None) {
            return false;
        }
        let deques = self
            .stacks_at(level)
            .filter(|stack| stack.pooled.has(level));
        self.queued(level) <= deques.count()
    }

    /// An expiry of the relief timer that was to come soon is over. What polls that still run made ready lightly is
    /// announced; the caller has had a barrier on all processors.
    fn announce_light(&self) {
        for worker in self.workers() {
            if let Some(stack) = self.core.holder(worker)
                && let Some(level) = self.level_of(stack)
                && !stack.ring.is_empty()
            {
                self.pools.announce_ring(stack, worker, level);
            }
        }
    }

    /// What the code on a long stack has made ready goes into the pool, where turns look for brief work. (The body of a
    /// current-thread runtime that computed after it had spawned a task kept it waiting for 300 ms, and for 5 ms now; a
    /// poll that computed, for 105 to 210 ms, and for 1 to 9 ms.)
    pub(in crate::sched) fn empty_rings_of_long(&self) {
        for worker in self.workers() {
            if let Some(stack) = self.core.holder(worker)
                && stack.is_of(self)
                && !runs_briefly(worker, stack)
            {
                self.flush_ring(stack);
            }
        }
    }

    /// Whether a poll has lasted for a period: it may hide something that it made ready lightly.
    fn has_long_poll(&self) -> bool {
        self.workers().any(|worker| {
            let holder = || self.core.holder(worker);
            let is_poll = worker.level() != NO_LEVEL && worker.runs() != Runs::Long;
            is_poll && holder().is_some_and(|stack| !runs_briefly(worker, stack))
        })
    }

    /// Whether something waits that a stack will not come to by itself.
    fn needs_relief(&self) -> bool {
        self.most_urgent_queued()
            .is_some_and(|level| !self.are_forks_of_running(level))
    }

    /// The relief timer expired. Returns a worker that its stack did not give up in time, or one whose new seat
    /// serves what waits; more of them are started. `has_worker`: the caller has one already, for the most urgent
    /// piece of work.
    pub(in crate::sched) fn relieve(&self, has_worker: bool) -> Option<&Worker> {
        #[cfg(test)]
        let _aside = crate::sched::tests::steps::Aside::new();
        let worker = self.look_at_all(has_worker);
        self.rearm_for_hidden();
        worker
    }

    fn look_at_all(&self, has_worker: bool) -> Option<&Worker> {
        if let Some(worker) = self.claim_reseated() {
            self.arm_relief();
            return Some(worker);
        }
        self.arm_for_rounds();
        self.look_at_overrunning();
        self.show_held_back();
        self.empty_rings_of_long();
        self.show_hidden_from_below();
        let asked_for_hidden = self.look_for_hidden();
        let mut waiting = self.waiting();
        if has_worker && waiting.levels != 0 {
            waiting.serve(waiting.levels.trailing_zeros() as u8);
        }
        if self.most_urgent_queued().is_none() {
            if asked_for_hidden {
                self.arm_late();
            }
            return None;
        }
        let mut revoked = Vec::new();
        #[cfg(test)]
        let begun = self.begin_look(&waiting, has_worker);
        self.call_reserve(&mut waiting, &mut revoked);
        let mut asked = self.revoke_for_urgent(&mut waiting, &mut revoked);
        asked |= self.revoke_from_blocked_or_long(&mut waiting, &mut revoked);
        if asked || !revoked.is_empty() {
            self.arm_relief();
        } else {
            // All have been looked at twice, and run.
            self.arm_late();
        }
        #[cfg(test)]
        self.end_look(begun, revoked.len());
        let mut revoked = revoked.into_iter();
        let mine = revoked.next();
        revoked.for_each(|worker| self.start(worker));
        mine
    }

    /// What waits. A deque counts as many times as it has public forks.
    fn waiting(&self) -> Waiting {
        // Not the bits: the bit of a level whose last entry was taken stays until a worker looks there, and would cost
        // the level's own stack its worker.
        let levels = self.levels_queued();
        let mut counts = [0; 64];
        for (level, count) in (0u8..64).zip(&mut counts) {
            if levels >> level & 1 == 1 {
                let jobs = self
                    .stacks_at(level)
                    .map(|stack| stack.deque.public_forks());
                let more = jobs.map(|jobs| jobs.saturating_sub(1)).sum::<usize>();
                *count = self.queued(level) + more;
            }
        }
        Waiting { levels, counts }
    }

    /// Rule 2. Whether a stack was asked for the first time.
    fn revoke_for_urgent<'a>(
        &'a self,
        waiting: &mut Waiting,
        revoked: &mut Vec<&'a Worker>,
    ) -> bool {
        let answer_time = answer_time();
        let now = clock::now();
        let mut drawn: Vec<&Worker> = self.workers().collect();
        drawn.retain(|worker| worker.level() != NO_LEVEL);
        drawn.sort_by_cached_key(|worker| std::cmp::Reverse(worker.level()));
        let mut asked = false;
        for worker in drawn {
            // Read anew, and once: it may have run dry since.
            let serves = worker.level();
            if serves == NO_LEVEL {
                continue;
            }
            let Some(level) = self.seats.of(worker).abandon_for(waiting.levels, serves) else {
                continue;
            };
            let Some(stack) = self.core.holder(worker) else {
                continue;
            };
            let since = worker.wanted_since();
            let is_late = since != 0 && now.saturating_sub(since) >= answer_time;
            if is_late && stack.attention.is_pending(PREEMPT) || chaos::one_in(2) {
                if let Some(worker) = self.revoke_counted(worker, None, Cause::Urgency) {
                    waiting.serve(level);
                    revoked.push(worker);
                }
            } else {
                worker.want(level, now);
                stack.attention.request(PREEMPT);
                asked = true;
            }
        }
        asked
    }

    /// Rules 1 and 3. Whether a stack has still time to answer, or has not run since it was asked.
    fn revoke_from_blocked_or_long<'a>(
        &'a self,
        waiting: &mut Waiting,
        revoked: &mut Vec<&'a Worker>,
    ) -> bool {
        let mut asked = false;
        let begins_long = self.begins_long.try_lock();
        for worker in self.workers() {
            let serves = worker.level();
            if serves == NO_LEVEL {
                continue;
            }
            let Some(level) = self.seats.of(worker).serve(waiting.levels) else {
                continue;
            };
            let Some(stack) = self.core.holder(worker) else {
                continue;
            };
            let (idleness, seen) = match self.look_at(stack) {
                Ok(found) => found,
                Err(has_time) => {
                    asked |= has_time;
                    continue;
                }
            };
            // What waits is more urgent, or its equal.
            let may_have = || level == serves || self.seats.of(worker).is_drawn_by(level, serves);
            let may_begin = || begins_long.is_some() && self.ahead() < self.core.workers.len();
            let is_long = || !worker.is_brief() || !stack.may_be_stopped();
            let may_have_turn = || can_have_turn(worker, stack, level) && is_long();
            let wants_turn = || may_have_turn() && self.wants_turn(level, worker);
            let cause = match idleness {
                Idleness::Blocked => Cause::Blocked,
                Idleness::Long if may_have() && may_begin() => Cause::Length,
                Idleness::Long | Idleness::Runs if wants_turn() => Cause::Turn,
                _ => continue,
            };
            if let Some(worker) = self.revoke_counted(worker, Some(seen), cause) {
                waiting.serve(level);
                revoked.push(worker);
            }
        }
        asked
    }

    /// Rule 1, for a worker that another job is to have. If the thread does not sleep, or it is not known yet: whether
    /// the stack has still time to answer.
    pub(in crate::sched) fn revoke_from_blocked(&self, worker: &Worker) -> Result<&Worker, bool> {
        if worker.level() == NO_LEVEL {
            return Err(false);
        }
        let stack = self.core.holder(worker).ok_or(false)?;
        // A stack that is asked is looked at again in a period. While all threads run, no expiry has to come so soon.
        let is_asked = || stack.attention.is_pending(CHECK_IN) || stack.sleeps();
        if !stack.is_of(self) || !is_asked() {
            return Err(false);
        }
        match self.look_at(stack)? {
            (Idleness::Blocked, seen) => {
                let revoked = self.revoke_counted(worker, Some(seen), Cause::Blocked);
                revoked.ok_or(false)
            }
            _ => Err(false),
        }
    }
}

impl Core {
    /// As [`Job::arm_relief`], after this time.
    #[cold]
    pub(in crate::sched) fn arm_relief(&self, after: Duration) {
        if self.relief_timer.arm() {
            self.set_timer(after);
        }
    }

    #[cold]
    fn arm_light(&self, after: Duration) {
        if self.relief_timer.arm_light() {
            self.set_timer(after);
        }
    }

    /// As [`Job::arm_late`].
    pub(crate) fn arm_late(&self) {
        if !self.closing.load(Ordering::Relaxed) && self.relief_timer.arm_late() {
            self.set_timer(RELIEF_PERIOD * LATE_PERIODS);
        }
    }

    /// As [`Job::arm_relief`], for hidden forks, if no expiry comes sooner. `false`: there is no timer.
    pub(super) fn arm_seldom(&self) -> bool {
        if !self.closing.load(Ordering::Relaxed) && self.relief_timer.arm_seldom() {
            self.set_timer(hidden::PERIOD);
        }
        self.relief_timer.is_on()
    }

    /// As [`Job::arm_late`], for forks that a stack holds back.
    pub(in crate::sched) fn arm_held(&self) {
        if !self.closing.load(Ordering::Relaxed) && self.relief_timer.arm_held() {
            self.set_timer(RELIEF_PERIOD * LATE_PERIODS);
        }
    }

    fn set_timer(&self, after: Duration) {
        if !self.process.is_this() {
            // The descriptor is the parent's, too.
            return;
        }
        match self.driver() {
            Ok(driver) => {
                driver.arm_relief(after);
                self.want_poller();
            }
            // The process is out of descriptors: no relief until it has some again.
            Err(_) => {
                self.relief_timer.expire();
            }
        }
    }

    /// The relief timer expired, for all jobs. [`Job::relieve`] of each of these jobs follows. Returns a worker that
    /// has come to another job, for the calling thread.
    pub(crate) fn relief_expired(&self) -> (JobList, Option<&Worker>) {
        let mut jobs = self.jobs();
        let mut moved = None;
        #[cfg(test)]
        let _aside = crate::sched::tests::steps::Aside::new();
        jobs.iter().for_each(|job| job.end_periods());
        if !(self.relief_timer.is_light()
            && !self.is_to_divide(&jobs)
            && self.rearm_for_short_polls(&jobs))
        {
            let was_light = self.relief_timer.expire();
            // First: a lowered thread that waits for a processor may hold a lock that is needed below.
            self.raise_rested(false);
            // A job that has come meanwhile may have found the timer set.
            jobs = self.jobs();
            moved = self.share_workers(&jobs);
            moved = self.free_blocked(&jobs, moved);
            if was_light && fence::heavy() {
                let light = jobs.iter().filter(|job| job.pools.rings_are_light);
                light.for_each(|job| job.announce_light());
            }
        }
        self.recount_reserve(&jobs);
        (jobs, moved)
    }

    /// The heavy barrier costs each processor 10 to 20 us, and only a poll that lasts may hide something: while
    /// relief is needed anyway, and no poll has lasted for a period, it stays armed instead, without a moment in
    /// which a light insertion could rely on an expiry that is over.
    fn rearm_for_short_polls(&self, jobs: &JobList) -> bool {
        let Some(needs) = jobs.iter().find(|job| job.needs_relief()) else {
            return false;
        };
        if jobs
            .iter()
            .any(|job| job.pools.rings_are_light && job.has_long_poll())
        {
            return false;
        }
        if let Some(driver) = self.driver_if_made() {
            driver.arm_relief(needs.seats.until_expiry());
        }
        self.want_poller();
        true
    }
}
