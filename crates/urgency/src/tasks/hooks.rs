//! What the handles ask about the calling code. The awaited task's scheduler knows it: [`Caller`].
//!
//! Where a scheduler has nothing to say ([`Nobody`], as in the models), every wait is allowed and none is noted.

use super::{JoinErrorKind, TaskRef};
use std::sync::atomic::{AtomicBool, Ordering};

/// The code that calls a handle's method, as the awaited task's scheduler sees it.
pub(crate) trait Caller: Sync {
    /// Raises that task to the level of the calling code.
    fn boost(&self, _task: &TaskRef) {}

    /// May the calling code wait for that task? Asked before each wait by a new waiter.
    fn may_wait(&self, _awaited: &TaskRef) -> Result<(), JoinErrorKind> {
        Ok(())
    }

    /// Whether the error of a wait that is refused has the handle: an error may go to any thread.
    fn gives_handles_back(&self) -> bool {
        true
    }

    /// The calling code has begun a wait for that task. Where it is a task, it goes on to that one's `begin_wait`
    /// (boost.rs). The ticket tells apart the waits of one task for one other; a handle's ticket is 0.
    fn waiting_for(&self, _awaited: &TaskRef, _ticket: u64) {}

    /// Such a wait has ended.
    fn waited_for(&self, _awaited: &TaskRef, _ticket: u64) {}

    /// The calling code has the result of that task. Called only after [`tell_taken`].
    fn took(&self, _awaited: &TaskRef) {}

    /// Whether the calling code is a task of a runtime that ends; then it must return pending.
    fn ends_with_runtime(&self) -> bool {
        false
    }
}

/// No caller that a scheduler knows.
pub(crate) struct Nobody;

impl Caller for Nobody {}

static TELLS_TAKEN: AtomicBool = AtomicBool::new(false);

/// From now on schedulers are told of each result that is taken.
pub(crate) fn tell_taken() {
    TELLS_TAKEN.store(true, Ordering::Relaxed);
}

fn caller(task: &TaskRef) -> &'static dyn Caller {
    task.header().vtable.caller
}

pub(super) fn boost(task: &TaskRef) {
    caller(task).boost(task);
}

pub(super) fn may_wait(awaited: &TaskRef) -> Result<(), JoinErrorKind> {
    caller(awaited).may_wait(awaited)
}

pub(super) fn gives_handle_back(awaited: &TaskRef) -> bool {
    caller(awaited).gives_handles_back()
}

pub(super) fn waiting_for(awaited: &TaskRef, ticket: u64) {
    caller(awaited).waiting_for(awaited, ticket);
}

pub(super) fn waited_for(awaited: &TaskRef, ticket: u64) {
    caller(awaited).waited_for(awaited, ticket);
}

#[inline]
pub(super) fn took(awaited: &TaskRef) {
    if TELLS_TAKEN.load(Ordering::Relaxed) {
        caller(awaited).took(awaited);
    }
}

pub(super) fn ends_with_runtime(awaited: &TaskRef) -> bool {
    caller(awaited).ends_with_runtime()
}
