//! Cooperation: how often a task may go on before it lets others of its level run.
//!
//! Each operation that may wait takes from a budget of the poll that it is made in. When the budget is used up, the
//! next operation suspends the task once, behind the others that are ready.
//!
//! - An operation of `sync` takes as it begins (`poll_take`).
//! - An operation on a descriptor is suspended as it begins (`is_used_up`), and takes when it has its result
//!   (`take`). A task may look at more descriptors in a poll than the budget has operations, and most of them are not
//!   ready: if each look took, the last ones would never have their turn. It is suspended as well if the poll has
//!   lasted for 100 µs: so many system calls may take milliseconds.
//! - A timer whose time is over when it is first polled takes, too. It is suspended once only: a time limit is polled
//!   behind an operation that may use up the budget in each poll.
//!
//! A program may turn the budget off for a future ([`unconstrained`]), make a future of another crate take from it
//! ([`cooperative`], [`poll_proceed`]), and ask whether some is left ([`has_budget_remaining`]).

use super::yield_now::scheduling_point;
use crate::sched::poll_context;
use std::{
    cell::Cell,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
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
    poll_fn(|cx| poll_take(cx)).await;
}

/// As [`consume_budget`], as a poll.
#[inline]
pub(crate) fn poll_take(cx: &Context<'_>) -> Poll<()> {
    scheduling_point();
    if poll_context::may_go_on() {
        return Poll::Ready(());
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Takes one operation from the budget of the calling poll; for a future or stream of the program's own, which calls it
/// as its poll begins. If none is left, the task is woken, and the caller's poll is to be pending.
///
/// What this returns gives the operation back when it is dropped, unless the caller has said that it
/// [made progress](RestoreOnPending::made_progress): an operation that waits costs nothing. To be exact, it sets the
/// budget to what it was before this call.
///
/// ```
/// use std::{pin::Pin, task::{Context, Poll, ready}};
/// use urgency::task::coop;
///
/// /// Counts down, and lets others of its level run.
/// struct Countdown(u32);
///
/// impl Future for Countdown {
///     type Output = ();
///
///     fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
///         while self.0 > 0 {
///             let proceeds = ready!(coop::poll_proceed(cx));
///             self.0 -= 1;
///             proceeds.made_progress();
///         }
///         Poll::Ready(())
///     }
/// }
///
/// urgency::spawn(Countdown(1000)).get()?;
/// # Ok::<(), urgency::JoinError>(())
/// ```
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<RestoreOnPending> {
    let before = poll_context::budget();
    poll_take(cx).map(|()| RestoreOnPending {
        before: Cell::new(before),
        of_thread: PhantomData,
    })
}

/// Gives back what [`poll_proceed`] took, unless the operation has [made progress](Self::made_progress).
#[derive(Debug)]
#[must_use = "dropping it gives the operation back to the budget"]
pub struct RestoreOnPending {
    /// What was left of the budget, if there is one to set.
    before: Cell<Option<u32>>,
    /// The budget is of the thread's poll.
    of_thread: PhantomData<*mut ()>,
}

impl RestoreOnPending {
    /// The operation goes on with a result: it keeps what it took from the budget.
    pub fn made_progress(&self) {
        self.before.set(None);
    }
}

impl Drop for RestoreOnPending {
    fn drop(&mut self) {
        if let Some(before) = self.before.get() {
            poll_context::set_budget(before);
        }
    }
}

/// Whether the budget of the calling poll is used up. Then the task is woken, and the caller's poll is to be pending.
#[inline]
pub(crate) fn is_used_up(waker: &Waker) -> bool {
    wakes_if(poll_context::is_used_up(), waker)
}

/// As [`is_used_up`], before an operation on a descriptor: also if the poll has lasted for long.
#[inline]
pub(crate) fn is_used_up_or_long(waker: &Waker) -> bool {
    wakes_if(poll_context::is_used_up_or_long(), waker)
}

#[inline]
fn wakes_if(is_used_up: bool, waker: &Waker) -> bool {
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

/// Whether the calling poll may do another operation that need not wait before it lets others go first. Outside of a
/// task: always. Time is not asked for: once a poll has lasted for 100 µs, operations on descriptors let others go
/// first whatever is left.
///
/// ```
/// use urgency::task::coop::{consume_budget, has_budget_remaining};
///
/// let task = urgency::spawn(async {
///     let before = has_budget_remaining();
///     for _ in 0..128 {
///         consume_budget().await;
///     }
///     (before, has_budget_remaining())
/// });
/// assert_eq!(task.get()?, (true, false));
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn has_budget_remaining() -> bool {
    !poll_context::is_used_up()
}

/// A future whose polls have no budget: operations that need not wait never suspend it, however many one poll makes.
///
/// It may keep its worker from other tasks of its level for as long as its operations need not wait. More urgent work
/// gets the worker all the same, and relief treats such a poll as any that is long.
///
/// ```
/// use urgency::{sync::mpsc, task::coop::unconstrained};
///
/// let (sender, mut receiver) = mpsc::channel(1000);
/// let received = urgency::spawn(async move {
///     for n in 0..1000 {
///         sender.try_send(n).unwrap();
///     }
///     let mut polls = 0;
///     let mut all = std::pin::pin!(unconstrained(async {
///         for _ in 0..1000 {
///             receiver.recv().await;
///         }
///     }));
///     std::future::poll_fn(|cx| {
///         polls += 1;
///         all.as_mut().poll(cx)
///     })
///     .await;
///     polls
/// });
/// assert_eq!(received.get()?, 1); // with a budget it takes several polls
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn unconstrained<F>(future: F) -> Unconstrained<F> {
    Unconstrained { future }
}

/// See [`unconstrained`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Unconstrained<F> {
    future: F,
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the field is pinned as the whole is: nothing moves out of it, and there is no `Drop`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        poll_context::without_budget(|| future.poll(cx))
    }
}

/// A future of which each poll takes one operation from the budget of its task, if it makes the future ready: for
/// futures of other crates that are always ready, so that a loop over them lets others go first. When the budget is
/// used up, the future is not polled, and its task is suspended once.
///
/// ```
/// use urgency::task::coop::cooperative;
///
/// let sum = urgency::spawn(async {
///     let mut sum = 0;
///     for n in 0..1000 {
///         sum += cooperative(std::future::ready(n)).await;
///     }
///     sum
/// });
/// assert_eq!(sum.get()?, 499_500);
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn cooperative<F: Future>(future: F) -> Coop<F> {
    Coop { future }
}

/// See [`cooperative`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Coop<F> {
    future: F,
}

impl<F: Future> Future for Coop<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if is_used_up(cx.waker()) {
            return Poll::Pending;
        }
        // SAFETY: the field is pinned as the whole is: nothing moves out of it, and there is no `Drop`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        let poll = future.poll(cx);
        if poll.is_ready() {
            take();
        }
        poll
    }
}
