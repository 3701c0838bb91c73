//! Relief: work that waits for long gets a worker, whatever the stacks that hold the workers do.
//!
//! When work was inserted and no worker was idle, a one-shot timer of one relief period is armed.
//! When it expires and work still waits, every stack that could serve it gets a CHECK_IN request; one that
//! has not answered by the next expiry loses its worker to the thread in the poller, unless the kernel has
//! only given its processor to another process. A stack whose worker was taken and that still has not checked
//! in at an expiry has its jobs made public, and is *demoted* if it has run for half a period since: its thread goes to the kernel's idle
//! class until its next scheduling point, or until nothing waits any more, and for some periods at a time:
//! beside other processes a thread in that class hardly runs, and it may hold a lock. Nothing expires while
//! nothing waits.
//!
//! # Whose fault it was
//!
//! A stack whose worker relief took says so at its next scheduling point, on its own thread: what it runs, by the name of the
//! type of its closure or future, which contains the function that wrote it, and for how long it went on without a
//! worker (`Stats::overruns`). Nothing is noted on the way of those that check in.

use super::{
    attention::CHECK_IN,
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
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
use urgency_policy::level::{LevelPolicy, Seat};

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
        if !self.closing.load(Ordering::Relaxed) && !self.threads.relief_armed() {
            self.arm_relief_cold();
        }
    }

    #[cold]
    fn arm_relief_cold(&self) {
        if self.threads.set_relief_armed() {
            return;
        }
        match self.driver() {
            Ok(driver) => {
                driver.arm_relief(self.centre.until_expiry());
                self.want_poller();
            }
            // The process is out of descriptors: no relief until it has some again.
            Err(_) => self.threads.relief_expired(),
        }
    }

    /// The relief timer expired. What polls that still run made ready lightly is announced.
    pub(crate) fn relief_expired(&self) {
        self.end_periods();
        if self.rings_are_light && self.rearm_for_short_polls() {
            return;
        }
        self.threads.relief_expired();
        self.look_at_preempted(false);
        if self.rings_are_light && fence::heavy() {
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
        if self.most_urgent_queued().is_none() || self.workers.iter().any(|w| lasts(w)) {
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
        let levels = self.ready.levels_after_writes();
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
            } else if taken.is_none() && (is_overrunning(stack, tid) || chaos::one_in(2)) {
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
        self.arm_relief();
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
            if !is_overrunning(stack, tid) {
                return true;
            }
            // A thread that blocks takes no processor from anybody, and may wake up holding a lock that
            // others wait for.
            if os::thread::is_blocked(tid) || !os::thread::demote(tid) {
                return false;
            }
            self.overrunning.demotions.fetch_add(1, Ordering::Relaxed);
            chaos::delay();
            stack.demoted.store(true, Ordering::SeqCst);
            // It may have checked in meanwhile, and looked at `demoted` before it was set.
            if stack.attention.is_taken() {
                locked(&self.overrunning.demoted).push((stack.clone(), 0));
            } else {
                self.undo_demotion(stack);
            }
            false
        });
    }

    /// The levels of the stacks that had not checked in at the last expiry since their worker was taken, and of those that were demoted for that. They
    /// are in no pool.
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
            if !stack.demoted.load(Ordering::SeqCst) {
                return false;
            }
            let stays = waits && *periods < DEMOTED_PERIODS;
            if !stays {
                self.undo_demotion(stack);
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
fn is_overrunning(stack: &Stack, tid: i32) -> bool {
    let Some(now) = os::thread::cpu_time(tid) else {
        return true;
    };
    let ran = now.saturating_sub(stack.asked_at.load(Ordering::Relaxed));
    ran >= RELIEF_PERIOD.as_nanos() as u64 / 2 || os::thread::is_blocked(tid)
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
