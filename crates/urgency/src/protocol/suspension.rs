//! Suspension of a stack: the token between a stack that waits and the thread that ends its wait.
//!
//! A stack is a thread. Suspending it means that its worker goes elsewhere, and the thread parks until it is granted a
//! worker again. This type decides *which* thread may grant the worker, exactly once.
//!
//! # States
//!
//! - `RUNNING`: the stack holds a worker (or is about to give it away).
//! - `SUSPENDED`: the stack waits for a wake-up; it is in no queue.
//! - `RESUMABLE`: the stack can go on; there is at least one entry for it in a pool. A thread that pops an entry calls
//!   [`Suspension::claim`]. Exactly one of them wins and grants the stack a worker. (Two entries can exist: boosting a
//!   resumable stack queues it again at the higher level.)
//! - The flag `NOTIFIED` beside them: a wake-up came that no suspension has consumed yet.
//!
//! # Rules
//!
//! 1. Only the stack moves `RUNNING` to `SUSPENDED` (waiting) or to `RESUMABLE` (abandoned: it could go on at once). A
//!    thread that claimed it and cannot grant a worker abandons it again.
//! 2. `wake` moves `SUSPENDED` to `RESUMABLE` and then owes the pool an entry; otherwise it sets
//!    `NOTIFIED`, so that the next attempt to suspend fails at once. No wake-up is lost; a stale one
//!    costs a spurious return, and every wait is a loop.
//! 3. Only `claim` leaves `RESUMABLE`.
//! 4. A stack may be raised to a more urgent level at any time. The thread that makes the stack resumable reads the
//!    stack's level afterwards, for the entry. The thread that raises the stack looks afterwards whether the stack is
//!    resumable, and if so makes a second entry, at the new level. Both look behind a full barrier: one sees the other.

use super::own::Own;
use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU8, Ordering, fence},
};

const RUNNING: u8 = 0;
const NOTIFIED: u8 = 1;
const SUSPENDED: u8 = 2;
const RESUMABLE: u8 = 4;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Suspension(AtomicU8);

/// What became of a suspension that the stack changed its mind about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retracted {
    /// No wake-up has come.
    Unwoken,
    /// A wake-up has come, and is consumed.
    Woken,
    /// Another thread has claimed the stack, and a worker is coming.
    Claimed,
}

impl Suspension {
    pub(crate) fn new() -> Self {
        Suspension(AtomicU8::new(RUNNING))
    }

    /// The stack gives its worker away but could go on at once. It owes the pool an entry.
    pub(crate) fn abandon(&self) {
        chaos::delay();
        self.0.fetch_or(RESUMABLE, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        chaos::delay();
    }

    /// Ends a wait. `true`: the caller owes the pool an entry for this stack.
    #[must_use]
    pub(crate) fn wake(&self) -> bool {
        chaos::delay();
        let wake = |old| match old {
            SUSPENDED => Some(RESUMABLE),
            other => Some(other | NOTIFIED),
        };
        let old = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, wake);
        fence(Ordering::SeqCst);
        old == Ok(SUSPENDED)
    }

    /// A thread that popped an entry asks for the right to grant the stack a worker.
    #[must_use]
    pub(crate) fn claim(&self) -> bool {
        chaos::delay();
        let old = self.0.fetch_and(!RESUMABLE, Ordering::AcqRel);
        old & RESUMABLE != 0
    }

    /// Whether the stack waits for a wake-up, as a hint.
    pub(crate) fn is_suspended(&self) -> bool {
        self.0.load(Ordering::Relaxed) & SUSPENDED != 0
    }

    /// Whether there is, or will be, an entry in a pool. Ordered after what the caller has written.
    pub(crate) fn is_resumable_after_writes(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Acquire) & RESUMABLE != 0
    }
}

impl Own<'_, Suspension> {
    /// The stack wants to wait. `false`: a wake-up was there already and is consumed; do not wait.
    pub(crate) fn suspend(self) -> bool {
        chaos::delay();
        let suspended = self
            .0
            .compare_exchange(RUNNING, SUSPENDED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if !suspended {
            let old = self.0.swap(RUNNING, Ordering::AcqRel);
            debug_assert_eq!(old, RUNNING | NOTIFIED);
        }
        suspended
    }

    /// The stack changes its mind about a suspension.
    pub(crate) fn retract(self) -> Retracted {
        chaos::delay();
        let retracted =
            self.0
                .compare_exchange(SUSPENDED, RUNNING, Ordering::AcqRel, Ordering::Acquire);
        match retracted {
            Ok(_) => Retracted::Unwoken,
            Err(_) if self.claim() => Retracted::Woken,
            Err(_) => Retracted::Claimed,
        }
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::own::own_in_model;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::*},
        },
        thread,
    };

    #[test]
    fn a_wake_up_either_prevents_the_suspension_or_makes_one_entry() {
        loom::model(|| {
            let token = Arc::new(Suspension::new());
            let entries = Arc::new(AtomicUsize::new(0));
            let wakers: Vec<_> = (0..2)
                .map(|_| {
                    let (token, entries) = (token.clone(), entries.clone());
                    thread::spawn(move || {
                        if token.wake() {
                            entries.fetch_add(1, Relaxed);
                        }
                    })
                })
                .collect();
            let suspended = own_in_model(&*token).suspend();
            for waker in wakers {
                waker.join().unwrap();
            }
            assert_eq!(entries.load(Relaxed), usize::from(suspended));
            assert_eq!(token.claim(), suspended);
            assert!(!token.claim(), "claimed twice");
        });
    }

    #[test]
    fn a_retracted_suspension_is_claimed_by_the_stack_or_by_a_waker_s_thief() {
        loom::model(|| {
            let token = Arc::new(Suspension::new());
            assert!(own_in_model(&*token).suspend());
            let other = token.clone();
            let waker = thread::spawn(move || other.wake() && other.claim());
            let mine = own_in_model(&*token).retract() != Retracted::Claimed;
            assert!(mine ^ waker.join().unwrap());
        });
    }

    #[test]
    fn an_abandoned_stack_is_claimed_once_and_keeps_its_wake_up() {
        loom::model(|| {
            let token = Arc::new(Suspension::new());
            let other = token.clone();
            let waker = thread::spawn(move || assert!(!other.wake()));
            token.abandon();
            let other = token.clone();
            let thief = thread::spawn(move || other.claim());
            let mine = token.claim();
            assert!(mine ^ thief.join().unwrap());
            waker.join().unwrap();
            assert!(!own_in_model(&*token).suspend(), "the wake-up was lost");
        });
    }

    /// Its level beside it, as in the stack: abandoned, or woken from a wait, and raised at the same time.
    #[test]
    fn a_stack_that_is_raised_as_it_becomes_resumable_has_an_entry_at_the_new_level() {
        for waits in [false, true] {
            loom::model(move || {
                let token = Arc::new(Suspension::new());
                assert!(!waits || own_in_model(&*token).suspend());
                let level = Arc::new(AtomicUsize::new(2));
                let (their_token, their_level) = (token.clone(), level.clone());
                let raiser = thread::spawn(move || {
                    their_level.fetch_min(0, SeqCst);
                    their_token.is_resumable_after_writes()
                });
                if waits {
                    assert!(token.wake());
                } else {
                    token.abandon();
                }
                let entry = level.load(Relaxed);
                assert!(raiser.join().unwrap() || entry == 0);
            });
        }
    }
}
