//! Cooperation: how often a task may go on before it lets others of its level run.
//!
//! Each operation that may wait takes from a budget of the poll that it is made in. When the budget is used up, the
//! next operation suspends the task once, behind the others that are ready.
//!
//! - An operation of `sync` takes as it begins (`poll_proceed`).
//! - An operation on a descriptor is suspended as it begins (`is_used_up`), and takes when it has its result
//!   (`take`). A task may look at more descriptors in a poll than the budget has operations, and most of them are not
//!   ready: if each look took, the last ones would never have their turn.
//! - A timer whose time is over when it is first polled takes, too. It is suspended once only: a time limit is polled
//!   behind an operation that may use up the budget in each poll.

use super::yield_now::scheduling_point;
use crate::sched::poll_context;
use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

/// Takes one operation from the budget of the calling poll, and suspends the task once if none is left. For long loops
/// whose operations never wait.
///
/// ```
/// let sum = urgency::block_on(async {
///     let mut sum = 0;
///     for n in 0..1000 {
///         sum += n;
///         urgency::task::coop::consume_budget().await;
///     }
///     sum
/// });
/// assert_eq!(sum, 499_500);
/// ```
pub async fn consume_budget() {
    poll_fn(|cx| poll_proceed(cx)).await;
}

/// As [`consume_budget`], as a poll.
#[inline]
pub(crate) fn poll_proceed(cx: &Context<'_>) -> Poll<()> {
    scheduling_point();
    if poll_context::may_go_on() {
        return Poll::Ready(());
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Whether the budget of the calling poll is used up. Then the task is woken, and the caller's poll is to be pending.
#[inline]
pub(crate) fn is_used_up(waker: &Waker) -> bool {
    let is_used_up = poll_context::is_used_up();
    if is_used_up {
        waker.wake_by_ref();
    }
    is_used_up
}

/// Takes one operation from the budget of the calling poll.
#[inline]
pub(crate) fn take() {
    poll_context::may_go_on();
}
