//! Asking: of many threads that wait, one looks again and again whether something was left behind.
//!
//! # Rules
//!
//! 1. A thread that waits [begins](Asking::begin) to ask, unless another one asks. It sleeps for a moment.
//! 2. Then it [ends](Asking::end), looks at everything, and may begin again.
//! 3. A thread that has left something behind looks whether a thread [asks](Asking::is_any). If so it is done.
//!    Otherwise it begins to ask, or finds another thread that will.
//!
//! # Invariant
//!
//! *What is left behind is looked at.* A thread that is done after rule 3 has found the flag set. So the end of it that
//! comes next in the flag's order sees what the thread did before. Each step is a read-modify-write for that: a plain
//! load would be ordered before nothing, and a plain store would see nothing.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicBool, Ordering},
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Asking(AtomicBool);

impl Asking {
    pub(crate) fn new() -> Self {
        Asking(AtomicBool::new(false))
    }

    /// Rule 1: whether the calling thread asks from now on.
    pub(crate) fn begin(&self) -> bool {
        chaos::delay();
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Rule 2, by the thread that asks.
    pub(crate) fn end(&self) {
        chaos::delay();
        self.0.swap(false, Ordering::AcqRel);
    }

    /// Rule 3, without beginning.
    pub(crate) fn is_any(&self) -> bool {
        chaos::delay();
        self.0.fetch_or(false, Ordering::AcqRel)
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{Arc, atomic::AtomicUsize},
        thread,
    };

    struct Model {
        asking: Asking,
        left: AtomicUsize,
    }

    fn model(is_left_to_another: fn(&Asking) -> bool) {
        loom::model(move || {
            let model = Arc::new(Model {
                asking: Asking::new(),
                left: AtomicUsize::new(0),
            });
            assert!(model.asking.begin());
            let leaves = model.clone();
            let leaves = thread::spawn(move || {
                leaves.left.store(1, Ordering::Relaxed);
                is_left_to_another(&leaves.asking)
            });
            model.asking.end();
            let seen = model.left.load(Ordering::Relaxed);
            let is_done = leaves.join().unwrap();
            assert!(!is_done || seen == 1, "it was left behind, and nobody saw");
        });
    }

    #[test]
    fn what_is_left_to_the_one_that_asks_is_seen() {
        model(Asking::is_any);
    }

    #[test]
    fn what_a_second_one_leaves_that_would_ask_is_seen() {
        model(|asking| !asking.begin());
    }
}
