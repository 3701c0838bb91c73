//! Portions of a value, which are used up one behind the other: so a value that is not `Sync` is cloned for several
//! receivers, and the last of them gets the value itself.
//!
//! All portions are counted when the value is made, and handing a portion on is a move. A thread that uses one up reads
//! the value in its *turn*, alone.
//!
//! # States
//!
//! `begun` portions have a place in the order, and the first `done` of them are used up:
//! `done <= begun <= count`. A portion that is not begun is in some owner's hands.
//!
//! # Protocol
//!
//! 1. A thread that uses up `k` portions takes the next `k` places, by one read-modify-write of `begun`.
//! 2. Its turn comes when `done` is its first place. It acquires by that load what the turns before have done.
//! 3. It ends its turn by a plain store of `done`, which releases. It touches nothing behind that store: the next turn
//!    may be the last one.
//! 4. The turn in which `done` would become `count` is the *last*. No other portion is left, and none can be made: the
//!    value and the memory are its thread's. It does not end.
//! 5. A thread whose `k` portions are all that `done` leaves has the last turn without a place: no other thread is left
//!    that could take one. So the usual turn has one locked instruction, and the last has none.
//!
//! A thread that comes while another has its turn waits for it. A turn is as long as a clone, so the waiting thread
//! looks for a moment, and then sleeps between its looks: the scheduler takes the worker of a thread that sleeps.
//!
//! Rejected: a bit for the turn in the word that counts. Then a turn has two locked instructions, since a plain store
//! would lose what others subtract meanwhile. Rejected: a flag that says that a thread waits, and a wake-up. The thread
//! that ends its turn may look at nothing any more (rule 3), so the flag would be the channel's, and behind a fence.

use crate::sys::{
    chaos,
    primitives::{
        atomic::{
            AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
        thread,
    },
};
use std::ptr::NonNull;
#[cfg(not(urgency_loom))]
use std::time::Duration;

/// How often a thread looks again before it sleeps: a few hundred nanoseconds.
#[cfg(not(urgency_loom))]
const LOOKS: u32 = 64;

/// See the module's text.
pub(crate) struct Portions {
    count: usize,
    begun: AtomicUsize,
    done: AtomicUsize,
}

/// What a thread has that uses portions up.
pub(crate) enum Use {
    /// The value, until this is dropped.
    Turn(Turn),
    /// The value and its memory, for good.
    Last,
}

/// A turn that is not the last. Dropping it ends it.
pub(crate) struct Turn {
    /// Not a reference: the memory may be gone before the drop returns.
    done: NonNull<AtomicUsize>,
    next: usize,
}

impl Portions {
    /// `count` portions, in the hands of the caller.
    pub(crate) fn new(count: usize) -> Self {
        Portions {
            count,
            begun: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        }
    }

    /// Uses up `portions` portions, which are one at least, and waits for the turn to do so.
    ///
    /// # Safety
    ///
    /// The caller has so many, and has none of them any more. These portions keep the memory until the turn ends.
    #[inline]
    pub(crate) unsafe fn begin(&self, portions: usize) -> Use {
        if self.are_all_left(portions) {
            return Use::Last;
        }
        let first = self.begun.fetch_add(portions, Relaxed);
        chaos::delay();
        if !self.is_turn_of(first) {
            self.wait_for(first);
        }
        self.turn(first + portions)
    }

    /// Rule 5.
    #[inline]
    fn are_all_left(&self, portions: usize) -> bool {
        self.done.load(Acquire) + portions == self.count
    }

    /// Rule 2.
    #[inline]
    fn is_turn_of(&self, first: usize) -> bool {
        self.done.load(Acquire) == first
    }

    /// The turn that has come, of portions of which `next` is the place behind.
    #[inline]
    fn turn(&self, next: usize) -> Use {
        if next == self.count {
            return Use::Last;
        }
        Use::Turn(Turn {
            done: NonNull::from(&self.done),
            next,
        })
    }

    #[cold]
    fn wait_for(&self, first: usize) {
        #[cfg(not(urgency_loom))]
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            if self.is_turn_of(first) {
                return;
            }
        }
        while !self.is_turn_of(first) {
            #[cfg(not(urgency_loom))]
            thread::sleep(Duration::from_micros(50));
            #[cfg(urgency_loom)]
            thread::yield_now();
        }
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the turn's portions keep the memory until this store (rule 3).
        unsafe { self.done.as_ref() }.store(self.next, Release);
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// What only the thread in its turn may touch, and how many have touched it.
    struct Model {
        portions: Portions,
        value: UnsafeCell<usize>,
    }

    // SAFETY: loom reports an access to the cell that the protocol did not order.
    unsafe impl Sync for Model {}

    /// Portions whose turn has not come: the first place, and the place behind them.
    type Waits = (usize, usize);

    impl Model {
        /// As [`Portions::begin`], but looks once for the turn: loom does not end where several threads look.
        fn try_use(&self, portions: usize) -> Result<bool, Waits> {
            if self.portions.are_all_left(portions) {
                return Ok(self.turn(portions, Use::Last));
            }
            let first = self.portions.begun.fetch_add(portions, Relaxed);
            let next = first + portions;
            match self.portions.is_turn_of(first) {
                true => Ok(self.turn(portions, self.portions.turn(next))),
                false => Err((first, next)),
            }
        }

        /// Touches the value. `true`: in the last turn.
        fn turn(&self, portions: usize, used: Use) -> bool {
            // SAFETY: as the model is to show.
            self.value.with_mut(|value| unsafe { *value += portions });
            matches!(used, Use::Last)
        }
    }

    /// The portions of each thread; the calling one is the first. It ends the turns of the threads that would wait.
    fn in_threads<const N: usize>(of: [usize; N]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Arc::new(Model {
                portions: Portions::new(of.iter().sum()),
                value: UnsafeCell::new(0),
            });
            let others: Vec<_> = of[1..]
                .iter()
                .map(|&portions| {
                    let model = model.clone();
                    thread::spawn(move || model.try_use(portions))
                })
                .collect();
            let mut tries = vec![model.try_use(of[0])];
            tries.extend(others.into_iter().map(|other| other.join().unwrap()));
            let mut last = tries.iter().filter(|tried| **tried == Ok(true)).count();
            let mut waits: Vec<_> = tries.into_iter().filter_map(Result::err).collect();
            waits.sort();
            for (first, next) in waits {
                assert!(model.portions.is_turn_of(first));
                last += usize::from(model.turn(next - first, model.portions.turn(next)));
            }
            assert_eq!(last, 1, "the memory is freed once");
            // SAFETY: the threads have ended.
            let used = model.value.with(|value| unsafe { *value });
            assert_eq!(used, of.iter().sum::<usize>());
        });
    }

    #[test]
    fn two_threads_use_a_portion_each_one_behind_the_other() {
        in_threads([1, 1]);
    }

    #[test]
    fn three_threads_use_a_portion_each_and_one_of_them_is_the_last() {
        in_threads([1, 1, 1]);
    }

    #[test]
    fn portions_that_are_given_back_together_have_one_turn() {
        in_threads([2, 1, 3]);
    }
}
