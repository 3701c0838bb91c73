//! The class of a stack's thread in the kernel's scheduler, and how it changes.
//!
//! A stack whose worker was revoked for more urgent work goes on without a worker, until its next scheduling point. For
//! the kernel the stack's thread and its replacement are two threads of one weight, and each gets half of the
//! processor. So the stack's thread is *lowered*: it gets the class of the stack's level.
//!
//! # Classes
//!
//! [`USUAL`] is the class of the program's other threads, 1 to 19 are so much more niceness, and [`IDLE`] is the
//! kernel's idle class, which a thread of any other class preempts at once. The most urgent level has the first class,
//! the least urgent the last, and the levels between have steps of equal size ([`of_level`]).
//!
//! # When
//!
//! A stack of the least urgent level is lowered when its worker is revoked, unless it is in a poll, which is brief as a
//! rule. A stack that is in a poll, or of a level between, is lowered when it still lacks its worker as relief expires,
//! and so is a stack that lost its worker to an equal, if more urgent work runs by then: that work is not brief
//! (`sched/rescue/overrunning.rs`). The thread stays lowered when the worker comes back, since more urgent work comes
//! again soon, and finds the processor at once.
//!
//! A stack of a job that comes to no scheduling point is lowered to [`IDLE`] when its worker is revoked for another
//! job, until it has its worker back, and for some periods at most (`sched/cores/silent.rs`). No job is less urgent
//! than its equals for good, so this is done only where the process may raise the thread again.
//!
//! # The way back
//!
//! Any thread may be lowered, but the kernel asks for a permission to raise one. Where the process has the permission
//! (`sys::thread::can_raise`), a thread is raised before it begins more urgent work, and when it has kept its worker
//! for sixteen milliseconds and nothing more urgent runs. Where the process lacks it, the thread stays lowered for
//! good, and runs work of its class only. A lowered thread passes more urgent work on to a usual thread, and a usual
//! thread passes closures and forks of less urgent levels on to a lowered one (`sched/switch/hand_off.rs`). So after a
//! while there are two kinds of threads, and no thread has to be raised.
//!
//! # Shares
//!
//! Where a schedule owes levels a share (`sched/share/seats.rs`), other processes may not take it. A lowered thread
//! comes after them: it reached no scheduling point, was in no pool, and the turn of its level went to others. So an
//! expiry raises the threads of the level that has its turn. Where the process lacks the permission, no thread is
//! lowered under such a schedule. (Beside three busy processes the last of three levels had 0 to 5 % instead of 20.)
//!
//! # Inversions
//!
//! A lowered thread that holds a worker has a processor to itself, as far as this runtime goes: at most as many threads
//! hold workers as there are processors, and the threads that lost their workers are lowered or parked. Nor does a
//! lowered thread that holds a lock of the allocator or of the program cause an inversion: a thread that waits for the
//! lock sleeps, and its processor runs the lowered thread. *Other* processes come before a lowered thread. Where it
//! waits for them inside of the scheduler, nobody can take its worker, nor one that it was about to start. So an expiry
//! that finds a worker there for half a millisecond raises such threads, if it may. They take a processor from it above
//! all at a wake-up and at the end of a system call. So a delivery wakes its thread, and the timer descriptor is set,
//! without a lock.
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
//! Invariant: a thread of the class `USUAL` in `class` is in its usual class in the kernel, or a lowerer is between the
//! two steps of 1, and looks at the stack afterwards.
//!
//! # Rejected
//!
//! - To promote the thread whenever its worker is given back: two system calls for each event, and the next event
//!   finds the thread in its usual class again. Beside a batch job at 45 thousand requests/s p95 was 1.3 to 1.9 ms, and
//!   0.14 if the thread stays.
//! - The idle class for every level: with three levels, compute of the middle one, preempted once by the first,
//!   would share its processors with the last level's threads for good.

use crate::sys::{
    IDLE, chaos,
    primitives::atomic::{AtomicU8, Ordering, fence},
};

/// The class of the program's other threads.
pub(crate) const USUAL: u8 = 0;

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
pub(crate) struct Demotion(AtomicU8);

impl Demotion {
    pub(crate) fn new() -> Self {
        Demotion(AtomicU8::new(USUAL))
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
        protocol::{
            attention::{Attention, Entered},
            own::own_in_model,
        },
        sys::primitives::{Arc, atomic::AtomicBool, thread},
    };

    /// A stack and the class of its thread in the kernel, which changes it under a lock.
    struct Model {
        attention: Attention,
        demotion: Demotion,
        in_idle_class: AtomicBool,
    }

    impl Model {
        fn new() -> Arc<Self> {
            let attention = Attention::new_busy();
            own_in_model(&attention).leave(0, 8);
            Arc::new(Model {
                attention,
                demotion: Demotion::new(),
                in_idle_class: AtomicBool::new(false),
            })
        }

        fn set_class(&self, idle: bool) {
            self.in_idle_class.swap(idle, Ordering::SeqCst);
        }

        fn lower(&self) {
            self.set_class(true);
            let is_revoked = || self.attention.is_revoked();
            self.demotion
                .lower(IDLE, is_revoked, || self.set_class(false));
        }

        /// The stack comes to a scheduling point and begins more urgent work.
        fn begin_urgent(&self) {
            if self.demotion.class() != USUAL {
                self.demotion.raise(|| self.set_class(false));
            }
        }
    }

    #[test]
    fn a_stack_that_begins_urgent_work_beside_its_lowering_is_in_its_usual_class() {
        loom::model(|| {
            let model = Model::new();
            let theirs = model.clone();
            let taker = thread::spawn(move || {
                let taken = theirs.attention.revoke(None).is_some();
                if taken {
                    theirs.lower();
                }
                taken
            });
            let entered = own_in_model(&model.attention).enter();
            if entered == Entered::Revoked {
                model.demotion.found_revoked();
                model.begin_urgent();
            }
            assert_eq!(taker.join().unwrap(), entered == Entered::Revoked);
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
            model.attention.revoke(None).unwrap();
            let (taker, expiry) = (model.clone(), model.clone());
            let taker = thread::spawn(move || taker.lower());
            let expiry = thread::spawn(move || expiry.lower());
            assert_eq!(own_in_model(&model.attention).enter(), Entered::Revoked);
            model.demotion.found_revoked();
            model.begin_urgent();
            taker.join().unwrap();
            expiry.join().unwrap();
            assert!(!model.in_idle_class.load(Ordering::SeqCst));
        });
    }
}
