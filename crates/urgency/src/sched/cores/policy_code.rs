//! Code of the program that runs while it has the turn to decide: the core policy's `decide`, `admit` and drop.
//!
//! The thread with the turn may be inside the scheduler, and the code may call all of the library. So:
//!
//! 1. It finds no stack (`Stack::outside_scheduler`), and is in no poll: what it spawns comes from outside.
//! 2. *It may not wait*: what it waits for may need the turn. A wait, and a fork, panics there with a text that says so
//!    (`poll_context::may_wait`). So the policy is replaced, as after any panic.
//! 3. *Another demand and another runtime* on these workers need the policy's word, and so the turn: an error
//!    ([`Refusal::Deciding`]).
//! 4. *Work that becomes ready* is news (`protocol/turn.rs`). So is the end of a job that is cancelled: another thread
//!    drops its tasks.

use crate::sched::{poll_context, stack::Stack};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
#[cfg(doc)]
use urgency_policy::cores::Refusal;

/// The thread that calls a policy, if one does. It is a name to be compared with one's own.
#[derive(Debug, Default)]
pub(super) struct Decider(AtomicUsize);

impl Decider {
    /// The calling thread decides while `f` runs, which does not unwind.
    pub(super) fn is_me_in<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.store(poll_context::thread(), Ordering::Relaxed);
        let result = f();
        self.0.store(0, Ordering::Relaxed);
        result
    }

    /// Whether the calling thread decides: the calling code is the policy's.
    pub(super) fn is_me(&self) -> bool {
        self.0.load(Ordering::Relaxed) == poll_context::thread()
    }
}

/// Calls code of the policy.
pub(super) fn as_policy<R>(call: impl FnOnce() -> R) -> thread::Result<R> {
    let call = || catch_unwind(AssertUnwindSafe(call));
    Stack::outside_scheduler(|| poll_context::outside_poll(|| poll_context::deciding(call)))
}
