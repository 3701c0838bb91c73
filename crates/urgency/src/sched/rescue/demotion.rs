//! Which threads are lowered in the kernel's scheduler, and when they come back: the rules and the protocol are in
//! `protocol/demotion.rs`.

use crate::sys::primitives::atomic::{AtomicU64, Ordering};
use crate::{
    protocol::demotion::{USUAL, of_level},
    sched::{
        core::Core,
        job::Job,
        rescue::silence::seems_preempted,
        stack::Stack,
        worker::{NO_LEVEL, Worker},
    },
    sys::{self, IDLE, clock, mutex::Mutex},
};
use std::sync::Arc;

/// A lowered thread that has kept its worker for so long may come back, in nanoseconds.
const REST: f64 = 16e6;

/// A thread whose worker another job has may come back after so long, in nanoseconds: that job runs nothing brief.
const BRIEFLY: f64 = 4e6;

/// The lowered threads of a core set.
#[derive(Debug)]
pub(crate) struct DemotedStacks {
    on: bool,
    /// The stacks whose threads may come back.
    stacks: Mutex<Vec<Arc<Stack>>>,
    /// How often a thread was lowered.
    pub(crate) count: AtomicU64,
}

impl DemotedStacks {
    pub(crate) fn new(on: bool) -> Self {
        sys::thread::note_usual_niceness();
        DemotedStacks {
            on,
            stacks: Mutex::default(),
            count: AtomicU64::new(0),
        }
    }

    /// Whether any thread was ever lowered.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }
}

impl Stack {
    fn kernel_id(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// The thread goes back to its usual class if it was lowered and may.
    pub(crate) fn raise_thread(&self) {
        if self.demotion.class() != USUAL && sys::thread::can_raise() {
            self.demotion.raise(|| sys::thread::raise(self.kernel_id()));
        }
    }
}

impl Job {
    /// The class of a level's threads.
    #[inline]
    pub(crate) fn class_of(&self, level: u8) -> u8 {
        if self.seats.is_on() && !sys::thread::can_raise() {
            return USUAL;
        }
        of_level(usize::from(level), self.pools.len())
    }

    /// Whether some worker's seat is the level's: what the level gets now, it is owed.
    pub(super) fn is_turn_of(&self, level: u8) -> bool {
        let is_its = |worker: &Worker| self.seats.of(worker).primary() == Some(level);
        self.seats.is_on() && self.workers().any(is_its)
    }

    /// Whether the thread of `stack` is in a better class than its level's.
    pub(crate) fn is_to_lower(&self, stack: &Stack) -> bool {
        self.core.demoted_stacks.on && stack.demotion.class() < self.class_of(stack.level())
    }

    /// The worker of `stack` was revoked for more urgent work that is not brief.
    #[cold]
    pub(crate) fn lower(&self, stack: &Arc<Stack>) {
        if !self.is_to_lower(stack) {
            return;
        }
        self.core.lower_to(stack, self.class_of(stack.level()));
    }

    /// Another job has the worker of `stack`, whose code comes to no scheduling point. Without the permission to raise
    /// the thread it stays as it is: no job is less urgent than others for good.
    #[cold]
    pub(in crate::sched) fn lower_beside(&self, stack: &Arc<Stack>) {
        if self.core.demoted_stacks.on && stack.demotion.class() < IDLE && sys::thread::can_raise()
        {
            self.core.lower_to(stack, IDLE);
        }
    }

    /// An expiry finds the thread without its worker, which another job has.
    pub(super) fn raise_after_brief(&self, stack: &Stack) {
        let lost = stack.lost_worker_at.load(Ordering::Relaxed);
        if lost.saturating_add(clock::ticks(BRIEFLY)) <= clock::now() {
            self.raise_to_its_level(stack);
        } else if stack.demotion.class() != USUAL {
            self.arm_late();
        }
    }

    /// The thread is no longer in a class below its level's.
    pub(super) fn raise_to_its_level(&self, stack: &Stack) {
        stack.is_too_low_for(self.class_of(stack.level()));
    }

    /// Whether the class of this stack's thread is too low for work of `level`. It is raised if it may be.
    #[inline]
    pub(crate) fn is_too_low(&self, stack: &Stack, level: u8) -> bool {
        stack.demotion.class() != USUAL && stack.is_too_low_for(self.class_of(level))
    }
}

impl Stack {
    /// Whether the class of the thread is too low for work of this class. It is raised if it may be.
    pub(crate) fn is_too_low_for(&self, class: u8) -> bool {
        if self.demotion.class() <= class {
            return false;
        }
        self.raise_thread();
        self.demotion.class() > class
    }
}

impl Core {
    /// Relief expired, or the core set closes (`all`). A lowered thread that has kept its worker for long, and
    /// beside which nothing more urgent runs, goes back to its usual class, and so does one with a worker whose level
    /// has its turn. So does one that is inside of the scheduler while a worker is stuck.
    pub(crate) fn raise_rested(&self, all: bool) {
        if !self.demoted_stacks.any() {
            return;
        }
        // Let go of after the lock: the end of a job is code of the program.
        let jobs = self.jobs();
        let mut stacks = self.demoted_stacks.stacks.lock();
        let is_above =
            |other: &Stack, stack: &Stack| other.is_beside(stack) && other.level() < stack.level();
        let workers = self.workers.iter();
        let busy = workers.filter(|worker| worker.level() != NO_LEVEL);
        let busy: Vec<_> = busy.filter_map(|worker| self.holder(worker)).collect();
        let rested = clock::now().saturating_sub(clock::ticks(REST));
        let has_turn = |stack: &Stack| {
            let mut its = jobs.iter().filter(|job| stack.is_of(job));
            its.any(|job| job.is_turn_of(stack.level()))
        };
        let is_any_stuck = self.is_any_stuck();
        let is_stuck = |stack: &Stack| is_any_stuck && stack.attention.visit().is_none();
        let has_rested = |stack: &Stack| {
            stack.lost_worker_at.load(Ordering::Relaxed) <= rested
                && !busy.iter().any(|other| is_above(other, stack))
        };
        let comes_back = |stack: &Stack| {
            !stack.attention.is_revoked()
                && (has_turn(stack) || is_stuck(stack) || has_rested(stack))
        };
        stacks.retain(|stack| {
            let stays = !all && stack.demotion.class() != USUAL && !comes_back(stack);
            if !stays {
                stack.raise_thread();
            }
            stays
        });
        let are_left = !stacks.is_empty();
        drop(stacks);
        if are_left {
            self.arm_late();
        }
    }

    /// Whether a worker has long been inside of the scheduler, where nobody can take it: its thread waits for a
    /// processor. A lowered thread does beside other processes, and may hold a second worker that it was to start.
    fn is_any_stuck(&self) -> bool {
        let now = clock::now();
        let is_inside = |worker: &Worker| {
            let holder = || self.holder(worker);
            worker.level() == NO_LEVEL
                || holder().is_some_and(|stack| stack.attention.visit().is_none())
        };
        self.workers.iter().any(|worker| {
            !self.idle.contains(worker.id) && seems_preempted(worker, now) && is_inside(worker)
        })
    }

    /// A thread of the runtime begins. It inherits the class of the thread that made it: a lowered one, or one of
    /// the program's in a real-time class, which is not for what the runtime runs. Neither are the slices of a
    /// thread from the poller.
    pub(crate) fn leave_inherited_class(&self, stack: &Stack) {
        sys::thread::leave_real_time();
        sys::thread::usual_slices();
        stack.demotion.begin_as(USUAL);
        if self.demoted_stacks.any() {
            stack.demotion.begin_as(sys::thread::own_class());
            stack.raise_thread();
        }
    }

    fn lower_to(&self, stack: &Arc<Stack>, class: u8) {
        let lowered = &self.demoted_stacks;
        let tid = stack.kernel_id();
        if tid == 0 || !sys::thread::lower(tid, class) {
            return;
        }
        lowered.count.fetch_add(1, Ordering::Relaxed);
        let is_revoked = || stack.attention.is_revoked() || !sys::thread::can_raise();
        let raise = || sys::thread::raise(tid);
        if stack.demotion.lower(class, is_revoked, raise) && sys::thread::can_raise() {
            let mut stacks = lowered.stacks.lock();
            if !stacks.iter().any(|listed| Arc::ptr_eq(listed, stack)) {
                stacks.push(stack.clone());
            }
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use crate::{
        Runtime,
        sched::{machine::claim::Want, tests::revoked_at},
    };
    use std::time::Duration;

    /// A lowered thread waits for a processor inside of the scheduler, and a worker is with it.
    #[test]
    #[cfg_attr(miri, ignore = "miri has no classes of the kernel's scheduler")]
    fn a_lowered_thread_inside_of_the_scheduler_is_raised_if_a_worker_is_stuck() {
        crate::levels! { Order: Urgent > Idle }
        // The thread that makes the stack is the one that is lowered.
        let lowers = || {
            let runtime = Runtime::builder().workers(1).levels::<Order>();
            let runtime = runtime.build().unwrap();
            let job = runtime.job();
            let (binding, stack) = revoked_at(job, 1);
            job.lower(&stack);
            let class = || stack.demotion.class();
            assert_ne!(class(), USUAL);
            let _ = binding.me().attention().enter();
            stack.lost_worker_at.store(u64::MAX, Ordering::Relaxed);
            job.core.raise_rested(false);
            assert_ne!(class(), USUAL, "no worker is stuck");
            let worker = job.claim(Want::Any).unwrap();
            worker.lap();
            std::thread::sleep(Duration::from_millis(1));
            job.core.raise_rested(false);
            assert_eq!(class(), USUAL);
            job.release(worker);
        };
        if sys::thread::can_raise() {
            std::thread::spawn(lowers).join().unwrap();
        }
    }
}
