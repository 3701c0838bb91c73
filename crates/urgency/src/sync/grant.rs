//! A decision about a waiter, where the waiter finds it without the queue's lock.
//!
//! A waiter that is woken would take the lock only to learn that it may go on. With two workers that share a busy
//! primitive, this was a third of all that is done under the lock. So the thread that decides takes the waiter out of
//! the queue, and *tells* it here.
//!
//! # States
//!
//! ```text
//! undecided --say--> granted | refused        under the lock, once
//! ```
//!
//! # Rules
//!
//! 1. While the grant is undecided, as seen under the lock, the waiter is in the queue and its key names its slot.
//! 2. The thread that decides takes the waiter out in the same critical section. From then on the waiter's key names
//!    nothing, and the waiter does not use it again.
//! 3. A decision stays. So the waiter may look without the lock. If it finds `granted`, it owns what it waited for, and
//!    gives that back if it is dropped. If it finds `undecided`, it looks again under the lock before it relies on rule
//!    1.

use crate::sys::primitives::{
    Arc,
    atomic::{
        AtomicU8,
        Ordering::{Acquire, Release},
    },
};

const UNDECIDED: u8 = 0;
const GRANTED: u8 = 1;
const REFUSED: u8 = 2;

/// See the module's text. Its clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Grant(Arc<Waits>);

#[derive(Debug)]
struct Waits {
    decided: AtomicU8,
    /// Not in the waiter's future: that is made and moved where nothing waits as well.
    since: u64,
}

/// Why there will be nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

impl Grant {
    /// For what waits since then.
    pub(super) fn new(since: u64) -> Self {
        let decided = AtomicU8::new(UNDECIDED);
        Grant(Arc::new(Waits { decided, since }))
    }

    pub(super) fn since(&self) -> u64 {
        self.0.since
    }

    /// Rule 2. The waiter that finds the decision sees all that the deciding thread did before.
    pub(super) fn say(&self, decided: Result<(), Refused>) {
        let decided = if decided.is_ok() { GRANTED } else { REFUSED };
        self.0.decided.store(decided, Release);
    }

    /// What was said. `None`: nothing yet.
    #[inline]
    pub(super) fn heard(&self) -> Option<Result<(), Refused>> {
        match self.0.decided.load(Acquire) {
            UNDECIDED => None,
            GRANTED => Some(Ok(())),
            _ => Some(Err(Refused)),
        }
    }
}
