//! What the primitives need of the floors above, in one place.
//!
//! - `level()`: the rank of the calling code, by which it queues. A plain thread queues as the most urgent
//!   level: nothing says how urgent it is, and it must not starve behind those of which something does.
//! - `check()`: a scheduling point. Each operation begins with one, so that a task whose channel never runs
//!   empty is prompt; and so that no thread that relief has demoted takes one of the short locks in here.
//! - `may_go_on()`: whether the poll that runs on this thread may do one more operation. After
//!   [`BUDGET`](crate::sched::run::BUDGET) operations that never waited it is to suspend once, for the sake
//!   of those of its own level.
//!
//! The models need none of it.

#[cfg(not(urgency_loom))]
pub(super) use crate::{
    runtime::waiting_level as level, sched::run::may_go_on, spawn::scheduling_point as check,
};

#[cfg(urgency_loom)]
mod stand_in {
    pub(crate) fn level() -> u8 {
        0
    }

    pub(crate) fn check() {}

    pub(crate) fn may_go_on() -> bool {
        true
    }
}
#[cfg(urgency_loom)]
pub(super) use stand_in::{check, level, may_go_on};

use std::task::{Context, Poll};

/// What each poll of an operation that does not wait yet begins with: a scheduling point, and the budget.
#[inline]
pub(super) fn begin(cx: &Context<'_>) -> Poll<()> {
    check();
    if may_go_on() {
        return Poll::Ready(());
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
