//! Code of the program's policies that runs under a lock of the runtime: a core policy's `decide`, `admit` and drop,
//! the methods and the drop of a schedule between levels and of an order within a level.
//!
//! The thread that calls it has the turn to decide, the lock of the seats (`seats.rs`), or the lock of a worker's order
//! (`queues.rs`). It may be inside the scheduler, and the code may call all of the library. So:
//!
//! 1. It finds no stack (`Stack::outside_scheduler`), and is in no poll: what it spawns comes from outside.
//! 2. *It may not wait*: what it waits for may need the turn or a lock. A wait, and a fork, panics there with a text
//!    that says so (`poll_context::may_wait`). So the policy is replaced, as after any panic.
//! 3. *Another demand and another runtime* on these workers need the core policy's word, and so the turn: an error
//!    ([`Refusal::Deciding`]). *Another schedule* needs the lock: an error ([`ScheduleError::Deciding`]), in any policy
//!    and for any runtime. So a thread that has the turn, or the lock of one runtime, never waits for the lock of
//!    another.
//! 4. *Work that becomes ready* is news (`protocol/turn.rs`). So is the end of a job that is cancelled: another thread
//!    drops its tasks. No order is asked where such work goes (`queues.rs`, rule 6).
//! 5. *The end of the schedule's own runtime* ends the schedule after the call (`SeatAssigner`, rule 5).

use super::{poll_context, stack::Stack};
use crate::tasks::discard_payload;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
#[cfg(doc)]
use urgency_policy::{cores::Refusal, level::ScheduleError};

/// The thread that calls a core policy, if one does. It is a name to be compared with one's own.
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

/// Calls code of a policy.
pub(super) fn as_policy<R>(call: impl FnOnce() -> R) -> thread::Result<R> {
    let call = || catch_unwind(AssertUnwindSafe(call));
    Stack::outside_scheduler(|| poll_context::outside_poll(|| poll_context::deciding(call)))
}

/// Drops a policy, whose drop is its code, too.
pub(super) fn drop_policy<P>(policy: P) {
    if let Err(payload) = as_policy(|| drop(policy)) {
        discard_payload(payload);
    }
}
