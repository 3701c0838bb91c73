//! What the handles need of the floors above, in one place.
//!
//! - `LevelId`: a level as users see it.
//! - `boost(task)`: raises that task to the level of the calling code.
//! - `may_wait(task)`: may the calling code wait for that task? Asked before each wait by a new waiter.
//! - `waiting_for(task, ticket)`, `waited_for(task, ticket)`: the calling code has begun, or ended, such a wait.
//!   Where a task is running, they go on to its `begin_wait` and `end_wait` (boost.rs). The ticket tells apart
//!   the waits of one task for one other; that of a handle is 0.
//!
//! - `took(task)`: the calling code has its result; for recordings.
//! - `ends_with_runtime()`: whether the calling code is a task of a runtime that ends; then it must return pending.
//!
//! The models need none of it, so that this floor can be checked by itself.

#[cfg(not(urgency_loom))]
pub(super) use crate::{
    LevelId,
    runtime::{boost, ends_with_runtime, may_wait, took, waited_for, waiting_for},
};

#[cfg(urgency_loom)]
mod stand_in {
    use crate::task::{JoinErrorKind, TaskRef};

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct LevelId(u8);

    impl LevelId {
        pub(crate) fn named(rank: u8, _name: &'static str) -> Self {
            LevelId(rank)
        }
    }

    impl std::fmt::Display for LevelId {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt(f)
        }
    }

    pub(crate) fn boost(task: &TaskRef) {
        task.boost(0);
    }

    pub(crate) fn may_wait(_awaited: &TaskRef) -> Result<(), JoinErrorKind> {
        Ok(())
    }

    pub(crate) fn waiting_for(_awaited: &TaskRef, _ticket: u64) {}

    pub(crate) fn waited_for(_awaited: &TaskRef, _ticket: u64) {}

    pub(crate) fn took(_awaited: &TaskRef) {}

    pub(crate) fn ends_with_runtime() -> bool {
        false
    }
}
#[cfg(urgency_loom)]
pub(super) use stand_in::{
    LevelId, boost, ends_with_runtime, may_wait, took, waited_for, waiting_for,
};
