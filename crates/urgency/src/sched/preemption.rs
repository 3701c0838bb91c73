//! A stack's part in the demotion of preempted threads (`preempted.rs`): is its thread in the idle class, and who ends that?
//!
//! # States
//!
//! - `lowered`: the thread is in the idle class, or about to leave it. Set by whoever took the stack's worker, after it has changed the class;
//!   cleared by one swap by whoever ends it, who then changes the class: the stack itself when it checks in, or an expiry of relief.
//! - `listed`: the next expiry looks at the stack. Set by a taker after `lowered`; cleared by an expiry before it looks at `lowered`.
//!
//! # Invariant
//!
//! A thread that stays in the idle class is `lowered`, and a stack that is `lowered` is in the list, or an expiry that took it from there is about to look at it.
//! Named races: the stack may check in between the change of class and `lowered`, so the taker looks afterwards whether the worker is still taken. Who ends a
//! demotion may change the class after the next taker did: the thread is `lowered` in its usual class then, and that demotion has no effect.

use crate::facade::atomic::{AtomicBool, Ordering};

/// See the module's text. All changes are read-modify-writes: who finds the other's value has everything before it, too.
#[derive(Debug)]
pub(crate) struct Preemption {
    lowered: AtomicBool,
    listed: AtomicBool,
}

impl Preemption {
    pub(crate) fn new() -> Self {
        Preemption {
            lowered: AtomicBool::new(false),
            listed: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn is_lowered(&self) -> bool {
        self.lowered.load(Ordering::Relaxed)
    }

    /// The caller has taken the stack's worker, and put its thread into the idle class.
    pub(crate) fn lower(&self, is_taken: impl FnOnce() -> bool, promote: impl FnOnce()) {
        self.lowered.swap(true, Ordering::SeqCst);
        if !is_taken() {
            self.raise(promote);
        }
    }

    /// Ends the demotion, if there is one.
    pub(crate) fn raise(&self, promote: impl FnOnce()) {
        if self.lowered.swap(false, Ordering::SeqCst) {
            promote();
        }
    }

    /// Whether the caller is to enter the stack into the list.
    pub(crate) fn list(&self) -> bool {
        !self.listed.swap(true, Ordering::SeqCst)
    }

    /// An expiry has taken the stack from the list.
    pub(crate) fn unlist(&self) {
        self.listed.swap(false, Ordering::SeqCst);
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_tests {
    use super::*;
    use crate::{
        facade::{Arc, Mutex, thread},
        sched::attention::{Attention, Entered},
    };

    /// A stack, the class of its thread, and the list with room for one.
    struct Model {
        attention: Attention,
        preemption: Preemption,
        idle_class: AtomicBool,
        list: Mutex<bool>,
    }

    impl Model {
        fn new() -> Arc<Self> {
            let attention = Attention::new_busy();
            attention.leave(0, 8);
            Arc::new(Model {
                attention,
                preemption: Preemption::new(),
                idle_class: AtomicBool::new(false),
                list: Mutex::new(false),
            })
        }

        /// The kernel changes it under a lock.
        fn set_class(&self, idle: bool) {
            self.idle_class.swap(idle, Ordering::SeqCst);
        }

        fn raise(&self) {
            self.preemption.raise(|| self.set_class(false));
        }

        /// An event takes the worker.
        fn take(&self) -> bool {
            let taken = self.attention.take(0).is_some();
            if taken {
                self.set_class(true);
                let is_taken = || self.attention.is_taken();
                let promote = || self.set_class(false);
                self.preemption.lower(is_taken, promote);
                if self.preemption.list() {
                    *self.list.lock().unwrap() = true;
                }
            }
            taken
        }

        fn expire(&self) {
            if std::mem::take(&mut *self.list.lock().unwrap()) {
                self.preemption.unlist();
                self.raise();
            }
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
                model.raise();
            }
            let taken = taker.join().unwrap();
            expiry.join().unwrap();
            assert_eq!(taken, entered == Entered::Taken);
            assert!(
                !model.idle_class.load(Ordering::SeqCst),
                "it checked in and stays demoted"
            );
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
                !model.idle_class.load(Ordering::SeqCst),
                "no expiry looks at a demoted thread"
            );
        });
    }
}
