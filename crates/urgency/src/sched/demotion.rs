//! Is a stack's thread in the kernel's idle class, for whose sake, and who ends that?
//!
//! # States
//!
//! A word with a bit for each reason; a thread without a reason is in its usual class.
//!
//! - `OVERRAN`: it lost its worker to relief and goes on without (`relief.rs`).
//! - `PREEMPTED`: an event took its worker (`preempted.rs`).
//!
//! # Protocol
//!
//! 1. Whoever demotes changes the class, and sets the bit then. It lists the stack after that, for whoever
//!    ends this reason.
//! 2. Whoever ends a reason clears its bit; whoever clears the last one changes the class. The stack itself
//!    ends all when it checks in.
//! 3. Only a stack whose worker is taken is demoted. It may check in between the two steps of 1, so whoever
//!    demotes it looks afterwards.
//!
//! # Invariant
//!
//! A thread that stays in the idle class has a reason, and whoever ends that has the stack in a list, or is
//! about to look at it. The converse may fail: who cleared the last bit may change the class after the next
//! one who demotes did. Then the thread has a reason and its usual class, and that demotion no effect.
//!
//! # Rejected
//!
//! A flag for each reason, where the first to end promotes: a worker given back ended a demotion by relief,
//! and with it the effect of the other, which was still noted and so not repeated, for as long as events
//! came.

use crate::{
    chaos,
    facade::atomic::{AtomicU8, Ordering},
};

/// Relief took its worker, and it has not checked in.
pub(crate) const OVERRAN: u8 = 1;
/// Events preempt it.
pub(crate) const PREEMPTED: u8 = 2;
/// Every reason.
pub(crate) const ALL: u8 = OVERRAN | PREEMPTED;

/// See the module's text. All changes are read-modify-writes: who finds the other's value has everything
/// before it, too.
#[derive(Debug)]
pub(crate) struct Demotion(AtomicU8);

impl Demotion {
    pub(crate) fn new() -> Self {
        Demotion(AtomicU8::new(0))
    }

    /// Whether one of the `reasons` holds.
    #[inline]
    pub(crate) fn is_for(&self, reasons: u8) -> bool {
        self.0.load(Ordering::Relaxed) & reasons != 0
    }

    /// The caller has put the thread into the idle class. `false`: it has checked in meanwhile, and is out again.
    pub(crate) fn begin(
        &self,
        reason: u8,
        is_taken: impl FnOnce() -> bool,
        promote: impl FnOnce(),
    ) -> bool {
        chaos::delay();
        self.0.fetch_or(reason, Ordering::SeqCst);
        let stays = is_taken();
        if !stays {
            self.end(reason, promote);
        }
        stays
    }

    /// Ends what there is of these reasons.
    pub(crate) fn end(&self, reasons: u8, promote: impl FnOnce()) {
        let old = self.0.fetch_and(!reasons, Ordering::SeqCst);
        if old & reasons != 0 && old & !reasons == 0 {
            chaos::delay();
            promote();
        }
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_tests {
    use super::*;
    use crate::{
        facade::{Arc, Mutex, atomic::AtomicBool, thread},
        sched::attention::{Attention, Entered},
    };

    /// A stack, the class of its thread, and the list of those that were preempted, with room for one.
    struct Model {
        attention: Attention,
        demotion: Demotion,
        idle_class: AtomicBool,
        list: Mutex<bool>,
    }

    impl Model {
        fn new() -> Arc<Self> {
            let attention = Attention::new_busy();
            attention.leave(0, 8);
            Arc::new(Model {
                attention,
                demotion: Demotion::new(),
                idle_class: AtomicBool::new(false),
                list: Mutex::new(false),
            })
        }

        /// The kernel changes it under a lock.
        fn set_class(&self, idle: bool) {
            self.idle_class.swap(idle, Ordering::SeqCst);
        }

        fn begin(&self, reason: u8) {
            self.set_class(true);
            let is_taken = || self.attention.is_taken();
            let promote = || self.set_class(false);
            self.demotion.begin(reason, is_taken, promote);
        }

        fn end(&self, reasons: u8) {
            self.demotion.end(reasons, || self.set_class(false));
        }

        /// An event takes the worker.
        fn take(&self) -> bool {
            let taken = self.attention.take(0).is_some();
            if taken {
                self.begin(PREEMPTED);
                *self.list.lock().unwrap() = true;
            }
            taken
        }

        fn expire(&self) {
            if std::mem::take(&mut *self.list.lock().unwrap()) {
                self.end(PREEMPTED);
            }
        }

        fn is_idle_class(&self) -> bool {
            self.idle_class.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_stack_that_checks_in_beside_its_demotion_and_an_expiry_ends_in_its_usual_class() {
        loom::model(|| {
            let model = Model::new();
            let (taker, expiry) = (model.clone(), model.clone());
            let taker = thread::spawn(move || taker.take());
            let expiry = thread::spawn(move || expiry.expire());
            let entered = model.attention.enter();
            if entered == Entered::Taken {
                model.end(ALL);
            }
            let taken = taker.join().unwrap();
            expiry.join().unwrap();
            assert_eq!(taken, entered == Entered::Taken);
            assert!(!model.is_idle_class(), "it checked in and stays demoted");
        });
    }

    #[test]
    fn a_stack_that_checks_in_beside_demotions_for_both_reasons_ends_in_its_usual_class() {
        loom::model(|| {
            let model = Model::new();
            model.attention.take(0).unwrap();
            let (event, relief) = (model.clone(), model.clone());
            let event = thread::spawn(move || event.begin(PREEMPTED));
            let relief = thread::spawn(move || relief.begin(OVERRAN));
            assert_eq!(model.attention.enter(), Entered::Taken);
            model.end(ALL);
            event.join().unwrap();
            relief.join().unwrap();
            assert!(!model.is_idle_class(), "it checked in and stays demoted");
            assert!(!model.demotion.is_for(ALL));
        });
    }

    #[test]
    fn a_thread_that_is_demoted_while_relief_expires_is_found_by_the_next_expiry() {
        loom::model(|| {
            let model = Model::new();
            assert!(model.take());
            assert!(model.attention.give_back(0));
            let (taker, expiry) = (model.clone(), model.clone());
            let taker = thread::spawn(move || taker.take());
            let expiry = thread::spawn(move || expiry.expire());
            assert!(taker.join().unwrap());
            expiry.join().unwrap();
            model.expire();
            assert!(
                !model.is_idle_class(),
                "no expiry looks at a demoted thread"
            );
        });
    }

    #[test]
    fn a_thread_that_is_demoted_for_two_reasons_stays_so_until_the_last_has_ended() {
        loom::model(|| {
            let model = Model::new();
            assert!(model.take());
            model.begin(OVERRAN);
            let relief = model.clone();
            let relief = thread::spawn(move || {
                relief.end(OVERRAN);
                relief.is_idle_class()
            });
            let (first, second) = (model.is_idle_class(), model.demotion.is_for(PREEMPTED));
            assert!(relief.join().unwrap() && first && second);
            model.expire();
            assert!(!model.is_idle_class());
        });
    }
}
