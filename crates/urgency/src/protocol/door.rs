//! A door: threads come in until they are refused, and the last one that leaves then says so.
//!
//! One word has the number of threads inside, in twos, and whether threads are refused.
//!
//! # Rules
//!
//! 1. A thread is counted, and by the same step it learns whether it is refused. It leaves once in either case.
//! 2. A thread refuses the others, and then looks whether any is inside.
//! 3. What is done when all have left is done by the thread that refuses, if it finds none inside, or by the last one
//!    that leaves. Both may find that they come last: it must not matter that it is done twice. No thread that was let
//!    in is inside then.
//!
//! *Named race, "another came in"*: the count and the refusal were two words. A thread left as the last one, and had
//! not yet looked whether threads are refused. Another one was let in, and then came the refusal. The first one saw it,
//! and did what is to be done when all have left, beside the other.

use crate::sys::primitives::atomic::{AtomicUsize, Ordering::SeqCst};

const REFUSES: usize = 1;
const ONE: usize = 2;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Door(AtomicUsize);

impl Door {
    /// Whether the thread is let in. It leaves in either case.
    pub(crate) fn enter(&self) -> bool {
        self.0.fetch_add(ONE, SeqCst) & REFUSES == 0
    }

    /// Whether the calling thread was the last one after the others were refused: rule 3.
    pub(crate) fn leave(&self) -> bool {
        self.0.fetch_sub(ONE, SeqCst) == ONE | REFUSES
    }

    /// No thread comes in from now on.
    pub(crate) fn refuse(&self) {
        self.0.fetch_or(REFUSES, SeqCst);
    }

    /// Whether no thread is inside.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(SeqCst) / ONE == 0
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        cell::UnsafeCell,
        sync::{Arc, atomic::AtomicUsize as Count},
        thread,
    };

    struct Model {
        door: Door,
        /// Code inside reads it, what is done at the end writes it.
        room: UnsafeCell<u32>,
        ends: Count,
    }

    impl Model {
        fn end(&self) {
            if self.ends.fetch_add(1, SeqCst) == 0 {
                // SAFETY: no thread that was let in is inside; loom checks it.
                self.room.with_mut(|room| unsafe { *room = 1 });
            }
        }

        fn visits(&self) {
            if self.door.enter() {
                // SAFETY: the room has not ended; loom checks it.
                self.room.with(|room| assert_eq!(unsafe { *room }, 0));
            }
            if self.door.leave() {
                self.end();
            }
        }
    }

    #[test]
    fn a_room_ends_when_all_have_left_and_not_before() {
        loom::model(|| {
            let model = Arc::new(Model {
                door: Door::default(),
                room: UnsafeCell::new(0),
                ends: Count::new(0),
            });
            let visitors = [(); 2].map(|()| {
                let model = model.clone();
                thread::spawn(move || model.visits())
            });
            model.door.refuse();
            if model.door.is_empty() {
                model.end();
            }
            visitors.into_iter().for_each(|it| it.join().unwrap());
            assert_ne!(model.ends.load(SeqCst), 0, "the room never ends");
        });
    }
}
