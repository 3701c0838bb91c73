//! The class of a stack's thread in the kernel's scheduler, and who changes it.
//!
//! A stack whose worker was revoked for more urgent work goes on without one, until its next scheduling point. For
//! the kernel it and its replacement are two threads of one weight, and each gets half of the processor. So the
//! stack's thread is *lowered*: it gets the class of the stack's level.
//!
//! # Classes
//!
//! [`USUAL`] is the class of the program's other threads, 1 to 19 are so much more niceness, and [`IDLE`] is the
//! kernel's idle class, which a thread of any other class preempts at once. The most urgent level has the
//! first, the least urgent the last, and those between have steps of equal size ([`of_level`]).
//!
//! # When
//!
//! A stack of the least urgent level is lowered when its worker is revoked, unless it is in a poll, which is brief as a
//! rule. A poll, and a stack of a level between, is lowered when it still lacks its worker as relief expires: what took
//! the worker is not brief then. The thread stays lowered when the worker comes back, since more urgent work comes
//! again soon, and finds the processor at once.
//!
//! # The way back
//!
//! Any thread may be lowered, but the kernel asks for a permission to raise one. Where the process has it
//! (`os::thread::can_raise`), a thread is raised before it begins more urgent work, and when it has kept its worker for
//! sixteen milliseconds and nothing more urgent runs. Where it has not, the thread stays lowered for good, and
//! runs work of its class only: a lowered thread passes more urgent work on to one that is not, and a usual
//! thread passes closures and jobs of less urgent levels on to a lowered one (`hand_off.rs`). So after a while there
//! are two kinds of threads, and nobody has to come back.
//!
//! # Inversions
//!
//! A lowered thread that holds a worker has a processor to itself, as far as this runtime goes: at most as many
//! threads hold workers as there are processors, and those that lost theirs are lowered or parked. A lowered
//! thread that holds a lock of the allocator, or one of the program's, is in nobody's way either: whoever waits
//! for the lock sleeps, and its processor runs the lowered thread. *Other* processes come before a lowered thread.
//!
//! # Protocol
//!
//! 1. The lowerer, after the worker was revoked: changes the class in the kernel, then writes `class`, then looks
//!    whether the worker is still revoked. If it is not, the stack may have begun something more urgent
//!    meanwhile, and the lowerer raises it again, by step 2.
//! 2. To raise: swap `class` for `USUAL`; the thread whose swap found another class changes it in the kernel.
//! 3. The stack looks at `class` before it begins more urgent work. Between its finding that its worker was revoked and
//!    that look is a barrier, as between the writing and the look of 1: one of the two sees the other.
//!
//! Invariant: a thread of the class `USUAL` in `class` is in its usual class in the kernel, or somebody is between the
//! two steps of 1, and looks at the stack afterwards.
//!
//! # Rejected
//!
//! - To promote the thread whenever its worker is given back: two system calls for each event, and the next event
//!   finds the thread in its usual class again. Beside a batch job at 45 thousand requests/s p95 was 1.3 to 1.9 ms, and
//!   0.14 if the thread stays.
//! - The idle class for every level: with three levels, compute of the middle one, preempted once by the first,
//!   would share its processors with the last level's threads for good.

use crate::{
    chaos,
    facade::atomic::{AtomicU8, Ordering, fence},
};

/// The class of the program's other threads.
pub(crate) const USUAL: u8 = 0;
/// The kernel's idle class.
pub(crate) const IDLE: u8 = 20;

/// The class of the level with this rank, of so many.
pub(crate) fn of_level(rank: usize, levels: usize) -> u8 {
    match levels - 1 {
        0 => USUAL,
        last if rank == last => IDLE,
        last => (19 * rank / last) as u8,
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Lowered(AtomicU8);

impl Lowered {
    pub(crate) fn new() -> Self {
        Lowered(AtomicU8::new(USUAL))
    }

    /// The thread's class, as far as the runtime has changed it.
    #[inline]
    pub(crate) fn class(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// The stack has found its worker revoked, and looks at its class from now on: step 3.
    pub(crate) fn found_revoked(&self) {
        fence(Ordering::SeqCst);
    }

    /// The thread began in this class, and cannot leave it.
    pub(crate) fn begin_as(&self, class: u8) {
        self.0.store(class, Ordering::Relaxed);
    }

    /// The caller has put the thread into `class`. Whether it stays there; if its worker is no longer revoked, `raise`
    /// is called instead.
    pub(crate) fn lower(
        &self,
        class: u8,
        is_revoked: impl FnOnce() -> bool,
        raise: impl FnOnce(),
    ) -> bool {
        chaos::delay();
        self.0.swap(class, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let stays = is_revoked();
        if !stays {
            self.raise(raise);
        }
        stays
    }

    /// The thread goes back to its usual class, by `raise`, if it is not there.
    pub(crate) fn raise(&self, raise: impl FnOnce()) {
        if self.0.swap(USUAL, Ordering::SeqCst) != USUAL {
            chaos::delay();
            raise();
        }
    }
}

#[cfg(not(urgency_loom))]
mod of_stacks {
    use super::{Lowered, USUAL};
    use crate::{
        os::{self, clock},
        sched::{shared::Shared, stack::Stack},
    };
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    };

    /// A lowered thread that has kept its worker for so long may come back, in nanoseconds.
    const REST: f64 = 16e6;

    /// The lowered threads of a runtime.
    #[derive(Debug)]
    pub(crate) struct LoweredStacks {
        on: bool,
        /// Those that may come back.
        stacks: Mutex<Vec<Arc<Stack>>>,
        /// How often a thread was lowered.
        pub(crate) count: AtomicU64,
    }

    impl LoweredStacks {
        pub(crate) fn new(on: bool) -> Self {
            os::thread::note_usual_niceness();
            LoweredStacks {
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

        fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Stack>>> {
            self.stacks.lock().expect("nothing panics under this lock")
        }
    }

    impl Lowered {
        fn raise_thread(&self, tid: i32) {
            self.raise(|| os::thread::raise(tid));
        }
    }

    impl Stack {
        fn kernel_id(&self) -> i32 {
            self.tid.load(Ordering::Relaxed)
        }

        /// The thread goes back to its usual class if it was lowered and may.
        pub(crate) fn raise_thread(&self) {
            if self.lowered.class() != USUAL && os::thread::can_raise() {
                self.lowered.raise_thread(self.kernel_id());
            }
        }
    }

    impl Shared {
        /// The class of a level's threads.
        #[inline]
        pub(crate) fn class_of(&self, level: u8) -> u8 {
            super::of_level(usize::from(level), self.pools.len())
        }

        /// The worker of `stack` was revoked for more urgent work that is not brief.
        #[cold]
        pub(crate) fn lower(&self, stack: &Arc<Stack>) {
            let class = self.class_of(stack.level());
            let lowered = &self.lowered_stacks;
            if !lowered.on || stack.lowered.class() >= class {
                return;
            }
            let tid = stack.kernel_id();
            if tid == 0 || !os::thread::lower(tid, class) {
                return;
            }
            lowered.count.fetch_add(1, Ordering::Relaxed);
            let is_revoked = || stack.attention.is_taken() || !os::thread::can_raise();
            let raise = || os::thread::raise(tid);
            if stack.lowered.lower(class, is_revoked, raise) && os::thread::can_raise() {
                let mut stacks = lowered.locked();
                if !stacks.iter().any(|listed| Arc::ptr_eq(listed, stack)) {
                    stacks.push(stack.clone());
                }
            }
        }

        /// Relief expired, or the runtime closes (`all`). A lowered thread that has kept its worker for long, and
        /// beside which nothing more urgent runs, goes back to its usual class.
        pub(crate) fn raise_rested(&self, all: bool) {
            if !self.lowered_stacks.any() {
                return;
            }
            let mut stacks = self.lowered_stacks.locked();
            // No worker shows a level beyond the last: then it is none.
            let most_urgent = self.workers.iter().map(|worker| worker.level()).min();
            let rested = clock::now().saturating_sub(clock::ticks(REST));
            stacks.retain(|stack| {
                let is_needed = stack.attention.is_taken()
                    || stack.lost_worker_at.load(Ordering::Relaxed) > rested
                    || most_urgent.is_some_and(|level| level < stack.level());
                let stays = is_needed && !all && stack.lowered.class() != USUAL;
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

        /// Whether the class of this stack's thread is too low for work of `level`. It is raised if it may be.
        #[inline]
        pub(crate) fn is_too_low(&self, stack: &Stack, level: u8) -> bool {
            stack.lowered.class() != USUAL && self.is_too_low_cold(stack, level)
        }

        #[cold]
        fn is_too_low_cold(&self, stack: &Stack, level: u8) -> bool {
            if stack.lowered.class() <= self.class_of(level) {
                return false;
            }
            stack.raise_thread();
            stack.lowered.class() > self.class_of(level)
        }

        /// A thread of the runtime begins. It inherits the class of the thread that made it: a lowered one, or one of
        /// the program's in a real-time class, which is not for what the runtime runs.
        pub(crate) fn leave_inherited_class(&self, stack: &Stack) {
            os::thread::leave_real_time();
            stack.lowered.begin_as(USUAL);
            if self.lowered_stacks.any() {
                stack.lowered.begin_as(os::thread::own_class());
                stack.raise_thread();
            }
        }
    }
}
#[cfg(not(urgency_loom))]
pub(crate) use of_stacks::LoweredStacks;

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn levels_have_classes_from_the_usual_one_to_the_idle_one() {
        assert_eq!(of_level(0, 1), USUAL, "one level lowers nobody");
        assert_eq!([0, 1].map(|rank| of_level(rank, 2)), [USUAL, IDLE]);
        assert_eq!([0, 1, 2].map(|rank| of_level(rank, 3)), [USUAL, 9, IDLE]);
        let all: Vec<_> = (0..64).map(|rank| of_level(rank, 64)).collect();
        assert!(all.is_sorted() && all[0] == USUAL && all[63] == IDLE);
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::{
        facade::{Arc, atomic::AtomicBool, thread},
        sched::attention::{Attention, Entered},
    };

    /// A stack and the class of its thread in the kernel, which changes it under a lock.
    struct Model {
        attention: Attention,
        lowered: Lowered,
        in_idle_class: AtomicBool,
    }

    impl Model {
        fn new() -> Arc<Self> {
            let attention = Attention::new_busy();
            attention.leave(0, 8);
            Arc::new(Model {
                attention,
                lowered: Lowered::new(),
                in_idle_class: AtomicBool::new(false),
            })
        }

        fn set_class(&self, idle: bool) {
            self.in_idle_class.swap(idle, Ordering::SeqCst);
        }

        fn lower(&self) {
            self.set_class(true);
            let is_revoked = || self.attention.is_taken();
            self.lowered
                .lower(IDLE, is_revoked, || self.set_class(false));
        }

        /// The stack comes to a scheduling point and begins more urgent work.
        fn begin_urgent(&self) {
            if self.lowered.class() != USUAL {
                self.lowered.raise(|| self.set_class(false));
            }
        }
    }

    #[test]
    fn a_stack_that_begins_urgent_work_beside_its_lowering_is_in_its_usual_class() {
        loom::model(|| {
            let model = Model::new();
            let theirs = model.clone();
            let taker = thread::spawn(move || {
                let taken = theirs.attention.take(None).is_some();
                if taken {
                    theirs.lower();
                }
                taken
            });
            let entered = model.attention.enter();
            if entered == Entered::Taken {
                model.lowered.found_revoked();
                model.begin_urgent();
            }
            assert_eq!(taker.join().unwrap(), entered == Entered::Taken);
            assert!(
                !model.in_idle_class.load(Ordering::SeqCst),
                "urgent work runs on a lowered thread"
            );
        });
    }

    /// The taker lowers it, and so does an expiry of relief; it comes in between.
    #[test]
    fn a_stack_that_two_lower_at_once_comes_back_to_its_usual_class() {
        loom::model(|| {
            let model = Model::new();
            model.attention.take(None).unwrap();
            let (taker, expiry) = (model.clone(), model.clone());
            let taker = thread::spawn(move || taker.lower());
            let expiry = thread::spawn(move || expiry.lower());
            assert_eq!(model.attention.enter(), Entered::Taken);
            model.lowered.found_revoked();
            model.begin_urgent();
            taker.join().unwrap();
            expiry.join().unwrap();
            assert!(!model.in_idle_class.load(Ordering::SeqCst));
        });
    }
}
