//! Cooperation: how often a task may go on before it lets others of its level run.
//!
//! Each operation that may wait takes from a budget of the poll that it is made in. When the budget is used up, the
//! next operation suspends the task once, behind the others that are ready.

use super::yield_now::scheduling_point;
use crate::sched::poll_context;
use std::{
    future::poll_fn,
    task::{Context, Poll},
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
