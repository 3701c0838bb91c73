//! Relief: work that waits for long gets a worker, whatever the stacks that hold the workers do.
//!
//! When work was inserted and no worker was idle, a one-shot timer of one relief period is armed. When it
//! expires and work still waits, every stack that could serve it gets a CHECK_IN request; one that has not
//! answered by the next expiry loses its worker to the thread in the poller, unless the kernel has only given
//! its processor to another process. A stack whose worker was taken and that still has not checked in at an
//! expiry has its jobs made public, and is *demoted* if it has run for half a period since: its thread goes
//! to the kernel's idle class until its next scheduling point, or until nothing waits any more, and for some
//! periods at a time: beside other processes a thread in that class hardly runs, and it may hold a lock.
//! Nothing expires while nothing waits.
//!
//! # Jobs of stacks that run
//!
//! If all that waits is public jobs of stacks that run, at the most urgent level with work, and no worker
//! serves anything less urgent, nobody is kept from anything more urgent than what runs: the stacks come to
//! their jobs themselves. Then the timer expires after [`LATE_PERIODS`] only (`alarm.rs`), and a stack loses
//! its worker if it is blocked, or has run for [`JOBS_PERIODS`] since it was asked. Treated as work of
//! others, as at first, the jobs of each parallel call of a few milliseconds had the thread in the poller
//! called in, and a third thread take part.
//!
//! # Whose fault it was
//!
//! A stack whose worker relief took says so at its next scheduling point, on its own thread: what it runs, by
//! the name of the type of its closure or future, which contains the function that wrote it, and for how long
//! it went on without a worker (`Stats::overruns`). Nothing is noted on the way of those that check in.

use super::{
    attention::CHECK_IN,
    demotion,
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
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use urgency_policy::level::{LevelPolicy, Seat};

/// After how many relief periods somebody looks if nothing waits but jobs of stacks that run.
const LATE_PERIODS: u32 = 4;

/// For how many relief periods a stack may then run without checking in.
const JOBS_PERIODS: u32 = 16;

/// How many relief periods a demotion lasts at most; then the thread has one in its usual class.
const DEMOTED_PERIODS: u32 = 16;

/// Stacks whose worker was taken and that have not checked in since.
#[derive(Debug, Default)]
pub(crate) struct Overrunning {
    stacks: Mutex<Vec<Arc<Stack>>>,
    /// Those of them that were demoted, and for how many periods they have been.
    demoted: Mutex<Vec<(Arc<Stack>, u32)>>,
    pub(crate) demotions: AtomicU64,
    pub(crate) overruns: Overruns,
}

impl Overrunning {
    /// Once, however often its worker was taken and given back since the last expiry: each entry costs the next
    /// expiry a look at the kernel's account of the thread, 10 µs.
    pub(super) fn add(&self, stack: &Arc<Stack>) {
        let mut stacks = locked(&self.stacks);
        if !stacks.iter().any(|listed| Arc::ptr_eq(listed, stack)) {
            stacks.push(stack.clone());
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
        if !self.are_jobs_of_running(level) {
            self.arm_relief();
        } else if !self.closing.load(Ordering::Relaxed) && self.threads.alarm.arm_late() {
            self.set_timer(RELIEF_PERIOD * LATE_PERIODS);
        }
    }

    /// All that waits at `level`, the most urgent with work, is jobs of stacks that run there, and no worker serves
    /// anything less urgent.
    fn are_jobs_of_running(&self, level: u8) -> bool {
        let is_below = |worker: &Worker| worker.level() != NO_LEVEL && worker.level() > level;
        if self.centre.is_on() || self.workers.iter().any(|worker| is_below(worker)) {
            return false;
        }
        let deques = self
            .stacks_at(level)
            .filter(|stack| stack.queued.load(Ordering::Relaxed) >> level & 1 == 1);
        self.queued(usize::from(level)) <= deques.count()
    }

    /// The relief timer expired. What polls that still run made ready lightly is announced.
    pub(crate) fn relief_expired(&self) {
        self.end_periods();
        let light = self.rings_are_light;
        if light && self.threads.alarm.is_soon() && self.rearm_for_short_polls() {
            return;
        }
        let was_soon = self.threads.alarm.expire();
        self.look_at_preempted(false);
        if light && was_soon && fence::heavy() {
            for stack in self.workers.iter().filter_map(|w| self.holder(w)) {
                if !stack.ring.is_empty() {
                    self.ready.announce(stack.level());
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
    /// serves what waits.
    pub(super) fn relieve(&self) -> Option<&Worker> {
        if let Some(worker) = self.claim_reseated() {
            self.arm_relief();
            return Some(worker);
        }
        self.arm_for_rounds();
        let level = self.most_urgent_queued();
        self.demote_overrunning(level.is_some());
        self.end_demotions(level.is_some());
        let level = level?;
        // Not the bits: that of a level whose last entry was taken stays until somebody looks there, and
        // would cost its own stack the worker.
        let levels = self.levels_queued();
        let mut late = self.are_jobs_of_running(level);
        let patience = if late {
            RELIEF_PERIOD * JOBS_PERIODS
        } else {
            RELIEF_PERIOD / 2
        };
        let mut taken = None;
        for worker in &self.workers {
            let serves = worker.level();
            let may_serve = |mut seat: Seat| match seat.primary() {
                None => serves >= level,
                Some(_) => levels >> serves & 1 == 1 || seat.abandon_for(levels, serves).is_some(),
            };
            if serves == NO_LEVEL || !may_serve(worker.seat()) {
                continue;
            }
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            let tid = stack.tid.load(Ordering::Relaxed);
            if !stack.attention.is_pending(CHECK_IN) {
                note_run_time(stack);
                stack.attention.request(CHECK_IN);
                // It does not come to its jobs soon.
                late = late && !os::thread::is_blocked(tid);
            } else if taken.is_none() && (is_overrunning(stack, tid, patience) || chaos::one_in(2))
            {
                // Before the taking: the stack may come back at once. Its mark stays if it has one: the worker has no
                // other holder yet since an earlier taking.
                let mark = &stack.relieved_at;
                let marked =
                    mark.compare_exchange(0, clock::now(), Ordering::Relaxed, Ordering::Relaxed);
                let Some((relieved, _)) = self.take_from(worker, CHECK_IN) else {
                    if marked.is_ok() {
                        mark.store(0, Ordering::Relaxed);
                    }
                    continue;
                };
                relieved.at(serves).reliefs.add(1);
                taken = Some(relieved);
            }
        }
        if late && taken.is_none() {
            self.arm_for(level);
        } else {
            self.arm_relief();
        }
        taken
    }

    /// Looks at the stacks whose worker was taken before the last period. `waits`: something waits, for which
    /// they should make room.
    fn demote_overrunning(&self, waits: bool) {
        let mut stacks = locked(&self.overrunning.stacks);
        stacks.retain(|stack| {
            if !stack.attention.is_taken() {
                return false;
            }
            // It may not come back for long; what it forked must not wait for it.
            if stack.deque.raise_all() {
                self.insert_deque(stack);
            }
            if !waits {
                return true;
            }
            let tid = stack.tid.load(Ordering::Relaxed);
            if !is_overrunning(stack, tid, RELIEF_PERIOD / 2) {
                return true;
            }
            // A thread that blocks takes no processor from anybody, and may wake up holding a lock that
            // others wait for.
            if !os::thread::is_blocked(tid) && self.demote(stack, demotion::OVERRAN) {
                locked(&self.overrunning.demoted).push((stack.clone(), 0));
            }
            false
        });
    }

    /// Puts the thread of a stack that has lost its worker into the idle class, for this reason. Whether it is there.
    pub(super) fn demote(&self, stack: &Stack, reason: u8) -> bool {
        let tid = stack.tid.load(Ordering::Relaxed);
        if !os::thread::demote(tid) {
            return false;
        }
        self.overrunning.demotions.fetch_add(1, Ordering::Relaxed);
        let is_taken = || stack.attention.is_taken();
        let promote = || os::thread::promote(tid);
        stack.demotion.begin(reason, is_taken, promote)
    }

    /// The levels of the stacks that had not checked in at the last expiry since their worker was taken, and
    /// of those that were demoted for that. They are in no pool.
    pub(crate) fn levels_overrunning(&self) -> u64 {
        let of = |levels: u64, stack: &Arc<Stack>| levels | 1 << stack.level();
        let levels = locked(&self.overrunning.stacks).iter().fold(0, of);
        let demoted = locked(&self.overrunning.demoted);
        let overrun = demoted.iter().map(|(stack, _)| stack);
        overrun
            .filter(|stack| stack.attention.is_taken())
            .fold(levels, of)
    }

    /// Ends the demotions that lasted for long, or all if nothing `waits`. Those threads may be demoted again.
    pub(crate) fn end_demotions(&self, waits: bool) {
        let mut ended = Vec::new();
        locked(&self.overrunning.demoted).retain_mut(|(stack, periods)| {
            *periods += 1;
            if !stack.demotion.is_for(demotion::OVERRAN) {
                return false;
            }
            let stays = waits && *periods < DEMOTED_PERIODS;
            if !stays {
                stack.end_demotion(demotion::OVERRAN);
                ended.push(stack.clone());
            }
            stays
        });
        for stack in ended {
            self.overrunning.add(&stack);
        }
    }

    /// A stack comes to a scheduling point and finds its worker taken; it is in the middle of `what`, or at its end.
    pub(crate) fn note_overrun(&self, me: &Stack, what: Name) {
        let since = me.relieved_at.swap(0, Ordering::Relaxed);
        if since != 0 {
            let ticks = clock::now().saturating_sub(since);
            self.overrunning.overruns.note(what, me.level(), ticks);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics under this lock")
}

/// How long a stack's thread has run, for [`is_overrunning`] to compare with.
pub(super) fn note_run_time(stack: &Stack) {
    let ran = os::thread::cpu_time(stack.tid.load(Ordering::Relaxed)).unwrap_or(0);
    stack.asked_at.store(ran, Ordering::Relaxed);
}

/// A stack was asked to check in and has not: did it run meanwhile, or does it sleep in a call that blocks?
/// Or has the kernel given its processor to another process? Then another thread would not get it either,
/// and relief would only make more threads.
fn is_overrunning(stack: &Stack, tid: i32, patience: Duration) -> bool {
    let Some(now) = os::thread::cpu_time(tid) else {
        return true;
    };
    let ran = now.saturating_sub(stack.asked_at.load(Ordering::Relaxed));
    ran >= patience.as_nanos() as u64 || os::thread::is_blocked(tid)
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::sync::Weak;

    #[test]
    fn a_stack_whose_worker_is_taken_again_and_again_is_looked_at_once() {
        let overrunning = Overrunning::default();
        let (often, once) = (Stack::new(Weak::new()), Stack::new(Weak::new()));
        overrunning.add(&once);
        for _ in 0..100 {
            overrunning.add(&often);
        }
        assert_eq!(locked(&overrunning.stacks).len(), 2);
    }
}
