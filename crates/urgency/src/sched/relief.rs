//! Relief: work that waits gets a worker, whatever the stacks that hold the workers do.
//!
//! When work was inserted and no worker was idle, a one-shot timer of one relief period is armed. When it expires and
//! work still waits, the thread in the poller looks at every worker. It asks each stack to check in (CHECK_IN), and
//! from those that did not answer it revokes workers by these rules:
//!
//! 1. **A thread that sleeps in the kernel holds nothing worth having.** Its worker goes to whatever waits, at
//!    any level that the worker serves. All such workers go at one look.
//! 2. **A running thread loses its worker to more urgent work**, if it has left a request unanswered for half a period.
//!    As many workers go at one look as there are pieces of such work, the least urgent first. The thread is lowered
//!    (`lowered.rs`), and its worker is restored when the urgent work is done (`revoke.rs`).
//! 3. **A running thread does not lose its worker to its equals because they wait.** An endless loop among equals loses
//!    it after [`LONG`] of its own time, and never are more than P such threads ahead of their workers: the kernel's
//!    time sharing gains nothing from more.
//! 4. **A stack that waits to go on after relief is no reason for relief** among its equals: by rule 3. It is first in
//!    its level's pool, and its worker comes back to it before that begins anything new.
//!
//! So at most P leaves of a computation are begun for each time that it is overtaken as a whole: with two levels, at
//! most 2 P threads compute, and at most 2 P leaves are in progress, however often events come.
//!
//! A stack whose worker was revoked and that still has not checked in at an expiry has its jobs made public.
//!
//! # Jobs of stacks that run
//!
//! If all that waits is public jobs of stacks that run, at the most urgent level with work, and no worker
//! serves anything less urgent, nobody is kept from anything more urgent than what runs: the stacks come to
//! their jobs themselves. Then the timer expires after [`LATE_PERIODS`] only (`alarm.rs`); and so it does after a look
//! that found nothing but equals waiting for threads that run.
//!
//! # Whose fault it was
//!
//! A stack whose worker relief took says so at its next scheduling point, on its own thread: what it runs, by
//! the name of the type of its closure or future, which contains the function that wrote it, and for how long
//! it went on without a worker (`Stats::overruns`). Nothing is noted on the way of those that check in.
//!
//! # Rejected
//!
//! - To revoke workers for equals after half a period. One urgent task beside a tree of leaves of 40 ms began an
//!   avalanche: the leaf that lost its worker waited to go on, which was a reason to take the next leaf's worker,
//!   and so on: 73 to 100 of 128 leaves were in progress at once, on as many threads, with 2 workers.
//! - One worker for each expiry: the k-th blocked thread kept its worker for k milliseconds.
//! - To ask whether the thread of a less urgent stack has run meanwhile, or the kernel has given its processor to
//!   another process: the more urgent work should have what there is.

use super::{
    attention::{CHECK_IN, PREEMPT},
    revoke::Cause,
    shared::{RELIEF_PERIOD, Shared},
    stack::Stack,
    worker::{NO_LEVEL, Worker},
};
use crate::{
    account::overruns::{Name, Overruns},
    chaos,
    fork::fence,
    os::{self, clock},
};
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use urgency_policy::level::LevelPolicy;

/// After how many relief periods somebody looks if nothing waits but jobs of stacks that run.
const LATE_PERIODS: u32 = 4;

/// A stack that runs for so long without checking in is taken for an endless loop.
const LONG: Duration = Duration::from_millis(100);

/// A thread that ran for less than this between two looks, in nanoseconds, may sleep in the kernel.
const HARDLY: u64 = 50_000;

/// Stacks whose worker was revoked and that have not checked in since.
#[derive(Debug, Default)]
pub(crate) struct Overrunning {
    /// With each, whether that was for its length (rule 3).
    stacks: Mutex<Vec<(Arc<Stack>, bool)>>,
    /// How many stacks overrun: see `Stack::overruns`.
    pub(super) count: AtomicUsize,
    pub(crate) overruns: Overruns,
}

impl Overrunning {
    /// Whether any stack overruns.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Once, however often its worker was revoked and restored since the last expiry.
    pub(super) fn add(&self, stack: &Arc<Stack>, for_length: bool) {
        let mut stacks = locked(&self.stacks);
        match stacks.iter_mut().find(|(it, _)| Arc::ptr_eq(it, stack)) {
            Some((_, listed)) => *listed = for_length,
            None => stacks.push((stack.clone(), for_length)),
        }
    }

    /// How many threads go on without their workers after they had run for long.
    fn ahead(&self) -> usize {
        let is_ahead = |(stack, for_length): &&(Arc<Stack>, bool)| {
            *for_length
                && stack.attention.is_taken()
                && !os::thread::is_blocked(stack.tid.load(Ordering::Relaxed))
        };
        locked(&self.stacks).iter().filter(is_ahead).count()
    }
}

/// How many pieces of work wait, by level.
pub(super) struct Waiting {
    pub(super) levels: u64,
    counts: [usize; 64],
}

impl Waiting {
    /// A worker was found for one of these levels.
    pub(super) fn serve(&mut self, level: u8) {
        let count = &mut self.counts[usize::from(level)];
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.levels &= !(1 << level);
        }
    }
}

impl Shared {
    /// Somebody must look at the busy workers within the relief period.
    #[inline]
    pub(crate) fn arm_relief(&self) {
        if !self.closing.load(Ordering::Relaxed) && !self.threads.alarm.is_soon() {
            self.arm_relief_cold();
        }
    }

    #[cold]
    fn arm_relief_cold(&self) {
        if self.threads.alarm.arm() {
            self.set_timer(self.centre.until_expiry());
        }
    }

    /// Somebody must look within some periods.
    pub(crate) fn arm_late(&self) {
        if !self.closing.load(Ordering::Relaxed) && self.threads.alarm.arm_late() {
            self.set_timer(RELIEF_PERIOD * LATE_PERIODS);
        }
    }

    fn set_timer(&self, after: Duration) {
        match self.driver() {
            Ok(driver) => {
                driver.arm_relief(after);
                self.want_poller();
            }
            // The process is out of descriptors: no relief until it has some again.
            Err(_) => {
                self.threads.alarm.expire();
            }
        }
    }

    /// Something was inserted, and no worker is idle.
    pub(crate) fn arm_for_queued(&self) {
        if self.threads.alarm.is_soon() {
            return;
        }
        match self.most_urgent_queued() {
            Some(level) => self.arm_for(level),
            // Hidden for a moment under a bit that is being cleared.
            None => self.arm_relief(),
        }
    }

    /// The most urgent that waits is at `level`.
    pub(crate) fn arm_for(&self, level: u8) {
        if self.are_jobs_of_running(level) {
            self.arm_late();
        } else {
            self.arm_relief();
        }
    }

    /// All that waits at `level`, the most urgent with work, is jobs of stacks that run there, and no worker serves
    /// anything less urgent.
    fn are_jobs_of_running(&self, level: u8) -> bool {
        if self.centre.is_on() || self.is_anybody_below(level, None) {
            return false;
        }
        let deques = self
            .stacks_at(level)
            .filter(|stack| stack.queued.load(Ordering::Relaxed) >> level & 1 == 1);
        self.queued(usize::from(level)) <= deques.count()
    }

    /// The relief timer expired. What polls that still run made ready lightly is announced.
    pub(crate) fn relief_expired(&self) {
        #[cfg(test)]
        let _aside = super::steps::Aside::new();
        self.end_periods();
        let light = self.rings_are_light;
        if light && self.threads.alarm.is_soon() && self.rearm_for_short_polls() {
            return;
        }
        let was_soon = self.threads.alarm.expire();
        self.raise_rested(false);
        if light && was_soon && fence::heavy() {
            for worker in &self.workers {
                if let Some(stack) = self.holder(worker)
                    && !stack.ring.is_empty()
                {
                    self.announce_ring(worker, stack.level());
                }
            }
        }
    }

    /// The heavy barrier costs each processor 10 to 20 us, and only a poll that lasts may hide something: while
    /// relief is needed anyway, and no poll has lasted for a period, it stays armed instead, without a moment in
    /// which a light insertion could rely on an expiry that is over.
    fn rearm_for_short_polls(&self) -> bool {
        let now = clock::now();
        let period = clock::ticks(RELIEF_PERIOD.as_nanos() as f64);
        let lasts = |w: &Worker| {
            w.level() != NO_LEVEL && w.is_brief() && now.saturating_sub(w.since()) >= period
        };
        let waits = self
            .most_urgent_queued()
            .is_some_and(|level| !self.are_jobs_of_running(level));
        if !waits || self.workers.iter().any(|w| lasts(w)) {
            return false;
        }
        if let Some(driver) = self.driver_if_made() {
            driver.arm_relief(self.centre.until_expiry());
        }
        self.want_poller();
        true
    }

    /// The relief timer expired. Returns a worker that its stack did not give up in time, or one whose new seat
    /// serves what waits; more of them are started.
    pub(super) fn relieve(&self) -> Option<&Worker> {
        #[cfg(test)]
        let _aside = super::steps::Aside::new();
        if let Some(worker) = self.claim_reseated() {
            self.arm_relief();
            return Some(worker);
        }
        self.arm_for_rounds();
        self.recount_reserve();
        self.look_at_overrunning();
        self.show_hidden_from_below();
        let mut waiting = self.waiting();
        self.most_urgent_queued()?;
        let mut revoked = Vec::new();
        self.call_reserve(&mut waiting, &mut revoked);
        let mut asked = self.revoke_for_urgent(&mut waiting, &mut revoked);
        asked |= self.revoke_from_blocked_or_long(&mut waiting, &mut revoked);
        if asked || !revoked.is_empty() {
            self.arm_relief();
        } else {
            // All have been looked at twice, and run.
            self.arm_late();
        }
        let mut revoked = revoked.into_iter();
        let mine = revoked.next();
        revoked.for_each(|worker| self.start(worker));
        mine
    }

    /// What waits. A deque counts as many times as it has public jobs.
    fn waiting(&self) -> Waiting {
        // Not the bits: that of a level whose last entry was taken stays until somebody looks there, and
        // would cost its own stack the worker.
        let levels = self.levels_queued();
        let mut counts = [0; 64];
        for (level, count) in (0u8..64).zip(&mut counts) {
            if levels >> level & 1 == 1 {
                let jobs = self.stacks_at(level).map(|stack| stack.deque.public_jobs());
                let more = jobs.map(|jobs| jobs.saturating_sub(1)).sum::<usize>();
                *count = self.queued(usize::from(level)) + more;
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
        let half = clock::ticks(RELIEF_PERIOD.as_nanos() as f64 / 2.0);
        let now = clock::now();
        let mut drawn: Vec<&Worker> = self.workers.iter().map(|worker| &**worker).collect();
        drawn.retain(|worker| worker.level() != NO_LEVEL);
        drawn.sort_by_key(|worker| std::cmp::Reverse(worker.level()));
        let mut asked = false;
        for worker in drawn {
            let Some(level) = worker.seat().abandon_for(waiting.levels, worker.level()) else {
                continue;
            };
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            let since = worker.wanted_since();
            let is_late = since != 0 && now.saturating_sub(since) >= half;
            if is_late && stack.attention.is_pending(PREEMPT) || chaos::one_in(2) {
                if let Some(worker) = self.revoke_counted(worker, 0, Cause::Urgency) {
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

    /// Rules 1 and 3. Whether a stack was asked for the first time, or has not run since.
    fn revoke_from_blocked_or_long<'a>(
        &'a self,
        waiting: &mut Waiting,
        revoked: &mut Vec<&'a Worker>,
    ) -> bool {
        let mut asked = false;
        for worker in &self.workers {
            let serves = worker.level();
            if serves == NO_LEVEL {
                continue;
            }
            let Some(level) = worker.seat().serve(waiting.levels) else {
                continue;
            };
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            if !stack.attention.is_pending(CHECK_IN) {
                note_run_time(stack);
                stack.attention.request(CHECK_IN);
                asked = true;
                continue;
            }
            let cause = match self.idleness(stack) {
                Idleness::Blocked => Cause::Blocked,
                // What waits is more urgent, or its equal.
                Idleness::Long if level == serves || worker.seat().is_drawn_by(level, serves) => {
                    Cause::Length
                }
                Idleness::Waits => {
                    asked = true;
                    continue;
                }
                _ => continue,
            };
            if cause == Cause::Length && self.overrunning.ahead() >= self.workers.len() {
                continue;
            }
            if let Some(worker) = self.revoke_counted(worker, CHECK_IN, cause) {
                waiting.serve(level);
                revoked.push(worker);
            }
        }
        asked
    }

    /// What a stack has done since it was asked to check in.
    fn idleness(&self, stack: &Stack) -> Idleness {
        let tid = stack.tid.load(Ordering::Relaxed);
        let Some(now) = os::thread::cpu_time(tid) else {
            return Idleness::Blocked;
        };
        let since_seen = now.saturating_sub(stack.seen_at.swap(now, Ordering::Relaxed));
        let since_asked = now.saturating_sub(stack.asked_at.load(Ordering::Relaxed));
        if since_seen < HARDLY && os::thread::is_blocked(tid) {
            Idleness::Blocked
        } else if since_seen < HARDLY {
            Idleness::Waits
        } else if since_asked >= LONG.as_nanos() as u64 || chaos::one_in(2) {
            Idleness::Long
        } else {
            Idleness::Runs
        }
    }

    /// Looks at the stacks whose worker was revoked before the last expiry.
    fn look_at_overrunning(&self) {
        let taken: Vec<_> = {
            let mut stacks = locked(&self.overrunning.stacks);
            stacks.retain(|(stack, _)| stack.attention.is_taken());
            stacks.iter().map(|(stack, _)| stack.clone()).collect()
        };
        // Not under the lock: what is inserted may have a worker revoked, which is listed.
        for stack in taken {
            // It may not come back for long; what it forked must not wait for it.
            if stack.deque.raise_all() {
                self.insert_deque(&stack);
            }
            let level = stack.level();
            if self.workers.iter().any(|worker| worker.level() < level) {
                self.lower(&stack);
            }
        }
    }

    /// The levels of the stacks that had not checked in at the last expiry since their worker was revoked. They are
    /// in no pool.
    pub(crate) fn levels_overrunning(&self) -> u64 {
        let stacks = locked(&self.overrunning.stacks);
        let overrun = stacks
            .iter()
            .filter(|(stack, _)| stack.attention.is_taken());
        overrun.fold(0, |levels, (stack, _)| levels | 1 << stack.level())
    }

    /// A stack comes to a scheduling point and finds its worker revoked; it is in the middle of `what`, or at its end.
    pub(crate) fn note_overrun(&self, me: &Stack, what: Name) {
        let since = me.relieved_at.swap(0, Ordering::Relaxed);
        if since != 0 {
            let ticks = clock::now().saturating_sub(since);
            self.overrunning.overruns.note(what, me.level(), ticks);
        }
    }
}

/// What a stack has done since it was asked to check in.
enum Idleness {
    /// Its thread sleeps in the kernel.
    Blocked,
    /// It has run, for long.
    Long,
    /// The kernel has given its processor to another thread.
    Waits,
    /// It has run.
    Runs,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics under this lock")
}

/// How long a stack's thread has run, to compare with.
pub(super) fn note_run_time(stack: &Stack) {
    let ran = os::thread::cpu_time(stack.tid.load(Ordering::Relaxed)).unwrap_or(0);
    stack.asked_at.store(ran, Ordering::Relaxed);
    stack.seen_at.store(ran, Ordering::Relaxed);
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::sync::Weak;

    #[test]
    fn a_stack_whose_worker_is_revoked_again_and_again_is_looked_at_once() {
        let overrunning = Overrunning::default();
        let (often, once) = (Stack::new(Weak::new()), Stack::new(Weak::new()));
        overrunning.add(&once, false);
        for _ in 0..100 {
            overrunning.add(&often, false);
        }
        assert_eq!(locked(&overrunning.stacks).len(), 2);
    }
}
