//! Attention: three words by which others tell a running stack what they want of it.
//!
//! A thread that wants something of a stack sets a bit in `requests` and clears `room`. The stack compares `room`
//! (relaxed, one branch) at each of its scheduling points. While there is no request, `room` is the index of the last
//! slot of the stack's deque. So the one comparison after a fork, "was there room for this fork and more?", answers
//! both questions. `word` says whether the stack holds its worker, and which worker that is, so that the worker can be
//! taken from a stack that does not answer.
//!
//! # States of `word`
//!
//! - `BUSY` set: the stack is inside the scheduler (or parked there). Only the stack itself sets and clears the bit,
//!   and no other thread writes the word meanwhile. The stack's worker cannot be revoked now: the scheduler never runs
//!   user code, so the stack will look at everything by itself in a moment.
//! - `BUSY` clear, `REVOKED` clear: the stack runs user code and holds a worker. The worker's number is in the upper
//!   half of the word: the taker learns *which* worker it took in the same step. (A first version read the number from
//!   the stack afterwards; by then the stack could have checked in and got another worker.)
//! - `REVOKED` set: another thread took the worker (relief, or an urgent event). The stack goes on until its next
//!   scheduling point, where [`Own::enter`] tells it. Until then the taker may restore the worker, and the stack never
//!   notices.
//! - `KEPT` set: the stack asked for the number of its worker, and may use the number as an index that no other stack
//!   uses at the same time. The worker is not revoked until the next `enter`, which clears the bit.
//!
//! The bits between count the visits to user code ([`Visit`]): what was seen of a stack during a visit is a reason to
//! take its worker only as long as that very visit lasts.
//!
//! Requests are hints: what they announce is always written to shared state *before* the bit is set, and a
//! stack that gets a worker looks at that state before it runs user code. So a bit set on a stack that just
//! gave its worker away loses nothing.
//!
//! # Rules
//!
//! 1. Only the stack calls `enter` and `leave`, alternately. `enter` is a locked instruction, since it decides against
//!    `revoke`; a `leave` without pending requests is a plain store. (With one word for both, a leave had to be a
//!    locked instruction as well, so as not to lose a request.)
//! 2. `revoke` succeeds at most once between a `leave` and the next `enter`, and never inside.
//! 3. Whatever a taker wrote before `revoke` is visible to the stack after `enter` returned
//!    [`Entered::Revoked`]; whatever the stack wrote before `leave` is visible to the taker.
//! 4. A request that is pending when the stack is in user code has cleared `room`, or is about to: a requester sets
//!    its bit before it clears `room`, and the stack raises `room` only before a look at the requests, with a
//!    barrier between the two on both sides. If `room` is as it should be it is not written, so that no
//!    clearing is overwritten. A late clearing costs a look into the scheduler.

use super::own::Own;
use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU32, AtomicUsize, Ordering, fence},
};

const BUSY: u32 = 1;
const REVOKED: u32 = 2;
/// Set by the stack itself: its worker is not revoked before its next scheduling point.
const KEPT: u32 = 4;
/// One visit to user code.
const VISIT: u32 = 8;
const VISITS: u32 = (1 << WORKER_SHIFT) - VISIT;
/// Where the worker's number begins.
const WORKER_SHIFT: u32 = 16;

/// More urgent work is ready: look at the levels.
pub(crate) const PREEMPT: u32 = 1;
/// A worker is hungry: publish forks.
pub(crate) const SHARE: u32 = 2;
/// Show that you are alive: relief takes the worker if this bit survives one relief period.
pub(crate) const CHECK_IN: u32 = 4;
/// By the stack itself: the queue that it fills is full, and it gives its turn to others.
pub(crate) const FULL: u32 = 8;

/// What `enter` found.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Entered {
    /// The stack still holds its worker; these requests were pending and are now cleared.
    Holding(u32),
    /// The worker was revoked meanwhile.
    Revoked,
}

/// One visit of a stack to user code, during which it holds its worker.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct Visit(u32);

/// See the module's text.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Attention {
    room: AtomicUsize,
    word: AtomicU32,
    requests: AtomicU32,
    /// How often the stack has gone to user code, shifted into place; the owner's.
    visits: AtomicU32,
}

impl Attention {
    /// The words of a stack that is inside the scheduler.
    pub(crate) fn new_busy() -> Self {
        Attention {
            room: AtomicUsize::new(0),
            word: AtomicU32::new(BUSY),
            requests: AtomicU32::new(0),
            visits: AtomicU32::new(0),
        }
    }

    /// How many forks the deque may hold; zero if there is a request.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        if chaos::one_in(16) {
            return 0;
        }
        self.room.load(Ordering::Relaxed)
    }

    /// The scheduling point: is there a request?
    #[inline(always)]
    pub(crate) fn is_wanted(&self) -> bool {
        self.room() == 0
    }

    /// Asked where there is no room: whether there is no request, and only the next fork is to look around.
    pub(crate) fn is_for_forks(&self) -> bool {
        self.is_asked_at_most(0)
    }

    /// Asked where there is no room: whether the stack has its worker, and none but these requests is pending.
    pub(crate) fn is_asked_at_most(&self, bits: u32) -> bool {
        // The thread that cleared `room` wrote these before.
        fence(Ordering::Acquire);
        self.requests.load(Ordering::Relaxed) & !bits == 0
            && self.word.load(Ordering::Relaxed) & REVOKED == 0
    }

    /// Sets request bits.
    #[inline]
    pub(crate) fn request(&self, bits: u32) {
        if self.requests.load(Ordering::Relaxed) & bits != bits {
            self.requests.fetch_or(bits, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            self.room.store(0, Ordering::Relaxed);
        }
    }

    /// As if the stack had come to a scheduling point.
    #[cfg(all(test, not(urgency_loom)))]
    pub(crate) fn take_back(&self, bits: u32) {
        self.requests.fetch_and(!bits, Ordering::SeqCst);
    }

    /// Whether the worker with this number was revoked from the stack and it has not checked in since.
    #[inline]
    pub(crate) fn is_revoked_from(&self, worker: usize) -> bool {
        let word = self.word.load(Ordering::SeqCst);
        word & REVOKED != 0 && (word >> WORKER_SHIFT) as usize == worker
    }

    /// Whether the stack's worker was revoked and it has not checked in since.
    pub(crate) fn is_revoked(&self) -> bool {
        self.word.load(Ordering::SeqCst) & REVOKED != 0
    }

    /// Whether the stack is inside the scheduler.
    pub(crate) fn is_inside(&self) -> bool {
        self.word.load(Ordering::Acquire) & BUSY != 0
    }

    /// Whether these requests are pending.
    pub(crate) fn is_pending(&self, bits: u32) -> bool {
        self.requests.load(Ordering::Acquire) & bits == bits
    }

    /// The visit that the stack is on, if its worker can be revoked now.
    pub(crate) fn visit(&self) -> Option<Visit> {
        let word = self.word.load(Ordering::Acquire);
        (word & (BUSY | REVOKED | KEPT) == 0).then_some(Visit(word))
    }

    /// The visit that the stack is on with the worker of this number, whether that can be revoked or not.
    pub(crate) fn visit_with(&self, worker: usize) -> Option<Visit> {
        let word = self.word.load(Ordering::Acquire);
        let is_with = word & (BUSY | REVOKED) == 0 && (word >> WORKER_SHIFT) as usize == worker;
        is_with.then_some(Visit(word & !KEPT))
    }

    /// Revokes the worker of a stack that is in user code, and returns its number; if a visit is given, only as long as
    /// that lasts.
    pub(crate) fn revoke(&self, during: Option<Visit>) -> Option<usize> {
        let revoke = |old| {
            let may = old & (BUSY | REVOKED | KEPT) == 0 && during.is_none_or(|it| it.0 == old);
            may.then_some(old | REVOKED)
        };
        let revoked = self
            .word
            .fetch_update(Ordering::SeqCst, Ordering::Acquire, revoke);
        let old = revoked.ok()?;
        self.room.store(0, Ordering::Relaxed);
        Some((old >> WORKER_SHIFT) as usize)
    }

    /// Gives the worker with this number back to the stack that it was revoked from, if the stack has not
    /// noticed yet. `false`: it has, and waits (or will wait) for a worker.
    pub(crate) fn restore(&self, worker: usize) -> bool {
        if chaos::one_in(2) {
            return false;
        }
        let restore = |old| {
            let may = old & REVOKED != 0 && (old >> WORKER_SHIFT) as usize == worker;
            may.then_some(old & !REVOKED)
        };
        self.word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, restore)
            .is_ok()
    }
}

impl Own<'_, Attention> {
    /// The stack enters the scheduler and collects the pending requests.
    #[inline]
    pub(crate) fn enter(self) -> Entered {
        let old = self.word.swap(BUSY, Ordering::SeqCst);
        if old & (REVOKED | BUSY) != 0 {
            if old & BUSY != 0 {
                entered_twice();
            }
            // To come is the answer. (A stack that was overtaken in each of its leaves never answered, and counted as
            // an endless loop after 100 ms of leaves.) The other requests wait for the stack's next worker.
            self.requests.fetch_and(!CHECK_IN, Ordering::SeqCst);
            Entered::Revoked
        } else if self.room.load(Ordering::Relaxed) != 0
            || self.requests.load(Ordering::Relaxed) == 0
        {
            Entered::Holding(0)
        } else {
            Entered::Holding(self.requests.swap(0, Ordering::SeqCst))
        }
    }

    /// The stack goes back to user code, holding the worker with this number, with room for `room` forks; zero makes
    /// its first fork look around. Requests set meanwhile stay pending.
    #[inline]
    pub(crate) fn leave(self, worker: usize, room: usize) {
        debug_assert_ne!(
            self.word.load(Ordering::Relaxed) & BUSY,
            0,
            "a stack left the scheduler twice"
        );
        let visits = self.visits.load(Ordering::Relaxed).wrapping_add(VISIT) & VISITS;
        self.visits.store(visits, Ordering::Relaxed);
        let word = ((worker as u32) << WORKER_SHIFT) | visits;
        if self.room.load(Ordering::Relaxed) == room {
            self.word.store(word, Ordering::Release);
        } else {
            self.leave_cold(word, room);
        }
    }

    #[cold]
    fn leave_cold(self, word: u32, room: usize) {
        self.room.store(room, Ordering::Relaxed);
        self.word.store(word, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.requests.load(Ordering::Relaxed) != 0 {
            self.room.store(0, Ordering::Relaxed);
        }
    }

    /// The stack, in user code, keeps its worker until its next `enter`. `false`: it was revoked already.
    pub(crate) fn keep_worker(self) -> bool {
        let old = self.word.load(Ordering::Relaxed);
        if old & KEPT != 0 {
            return true;
        }
        self.word.fetch_or(KEPT, Ordering::AcqRel) & REVOKED == 0
    }

    /// By the stack itself: its next fork looks around.
    pub(crate) fn look_at_next_fork(self) {
        self.room.store(0, Ordering::Relaxed);
    }
}

/// The scheduler called code of the program's without setting the stack aside, and that has come here. Both would
/// go on with the same worker; and nothing may unwind through the scheduler.
#[cold]
fn entered_twice() -> ! {
    eprintln!("urgency: a bug of the runtime: a stack entered the scheduler twice");
    std::process::abort()
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::own::own_in_model;
    use loom::{
        cell::UnsafeCell,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        thread,
    };

    /// The worker's state, as a cell that loom guards against concurrent use.
    struct Model {
        word: Attention,
        worker: UnsafeCell<u32>,
        holders: AtomicUsize,
    }

    #[test]
    fn a_worker_has_one_holder_at_a_time_and_is_taken_once() {
        loom::model(|| {
            let model = Arc::new(Model {
                word: Attention::new_busy(),
                worker: UnsafeCell::new(0),
                holders: AtomicUsize::new(0),
            });
            own_in_model(&model.word).leave(5, 8);
            let takers: Vec<_> = (0..2)
                .map(|_| {
                    let model = model.clone();
                    thread::spawn(move || {
                        let took = model.word.revoke(None) == Some(5);
                        if took {
                            // SAFETY: the thread that took the worker is its one holder; loom checks it.
                            model.worker.with_mut(|w| unsafe { *w += 1 });
                            model.holders.fetch_add(1, Relaxed);
                        }
                        took
                    })
                })
                .collect();
            match own_in_model(&model.word).enter() {
                // SAFETY: as above.
                Entered::Holding(_) => model.worker.with_mut(|w| unsafe { *w += 1 }),
                Entered::Revoked => {}
            }
            let taken = takers
                .into_iter()
                .filter(|_| true)
                .map(|t| t.join().unwrap());
            assert!(taken.filter(|took| *took).count() <= 1);
            assert!(model.holders.load(Relaxed) <= 1);
        });
    }

    #[test]
    fn a_worker_that_is_restored_is_held_by_one_stack() {
        loom::model(|| {
            let word = Arc::new(Attention::new_busy());
            own_in_model(&*word).leave(5, 8);
            let other = word.clone();
            let taker = thread::spawn(move || other.revoke(None) == Some(5) && !other.restore(5));
            let holds = matches!(own_in_model(&*word).enter(), Entered::Holding(_));
            assert!(
                holds ^ taker.join().unwrap(),
                "nobody or both hold the worker"
            );
        });
    }

    #[test]
    fn a_kept_worker_is_not_taken() {
        loom::model(|| {
            let word = Arc::new(Attention::new_busy());
            own_in_model(&*word).leave(5, 8);
            let other = word.clone();
            let taker = thread::spawn(move || other.revoke(None) == Some(5));
            let kept = own_in_model(&*word).keep_worker();
            let taken = taker.join().unwrap();
            assert!(kept ^ taken, "the stack has the worker, or the taker");
            assert_eq!(taken, own_in_model(&*word).enter() == Entered::Revoked);
        });
    }

    /// What was seen of the first visit is no reason to take the worker of the second.
    #[test]
    fn a_worker_is_taken_only_during_the_visit_that_was_seen() {
        loom::model(|| {
            let word = Arc::new(Attention::new_busy());
            own_in_model(&*word).leave(5, 8);
            let seen = word.visit();
            let other = word.clone();
            let taker = thread::spawn(move || other.revoke(seen) == Some(5));
            let first = own_in_model(&*word).enter() == Entered::Revoked;
            own_in_model(&*word).leave(5, 8);
            let second = own_in_model(&*word).enter() == Entered::Revoked;
            assert!(!second, "the worker of a later visit is taken");
            assert_eq!(taker.join().unwrap(), first);
        });
    }

    #[test]
    fn a_request_is_seen_by_the_next_enter_or_stays_pending() {
        loom::model(|| {
            let word = Arc::new(Attention::new_busy());
            own_in_model(&*word).leave(5, 8);
            let other = word.clone();
            let asker = thread::spawn(move || other.request(PREEMPT));
            let seen = own_in_model(&*word).enter() == Entered::Holding(PREEMPT);
            own_in_model(&*word).leave(5, 8);
            asker.join().unwrap();
            assert!(seen || word.is_wanted());
        });
    }
}
