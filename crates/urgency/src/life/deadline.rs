//! A limit for a piece of work and all the tasks that it spawns. `spawn/carried.rs` says what a deadline does to a
//! task.

use crate::{
    inherit::{Inherited, inherited},
    sched::inherit::inheriting::run_inside,
    spawn::carried::Within,
    time::{Timeout, timeout_at},
};
use std::{sync::Arc, time::Instant};

/// Runs `f` as code that has what the calling code has, but for a deadline.
pub(crate) fn without_deadline<R>(f: impl FnOnce() -> R) -> R {
    match inherited().filter(|here| here.deadline.is_some()) {
        None => f(),
        Some(here) => {
            let mut here = Inherited::clone(&here);
            here.deadline = None;
            run_inside(Some(Arc::new(here)), f)
        }
    }
}

/// The result of `future`, unless it takes longer than until `at`, or until a deadline that the calling code has
/// already. All tasks that `future` spawns have the same deadline: tasks that are still there then are cancelled, and
/// what has not begun then never runs. (A closure that has begun runs to its end.)
///
/// # Errors
///
/// The future's output is [`Elapsed`](crate::time::error::Elapsed) when the time is over. `future` is cancelled by
/// being dropped.
///
/// ```
/// use std::time::{Duration, Instant};
/// use urgency::life::{current_deadline, with_deadline};
///
/// let soon = Instant::now() + Duration::from_millis(2);
/// let result = urgency::block_on(with_deadline(soon, async move {
///     let child = urgency::spawn(async move {
///         assert_eq!(current_deadline(), Some(soon));
///         std::future::pending::<()>().await
///     });
///     child.await
/// }));
/// // The time is over: the child was cancelled, or the whole was first.
/// assert!(!matches!(result, Ok(Ok(()))));
/// ```
pub fn with_deadline<F: IntoFuture>(at: Instant, future: F) -> WithDeadline<F::IntoFuture> {
    let mut inherited = inherited().map_or_else(Inherited::default, |here| Inherited::clone(&here));
    let at = inherited.deadline.map_or(at, |before| before.min(at));
    inherited.deadline = Some(at);
    Within::new(timeout_at(at.into(), future), Arc::new(inherited))
}

/// The deadline of the calling code: the earliest of its own deadlines and the deadlines of the code that spawned it.
/// `None`: it may take as long as it takes.
pub fn current_deadline() -> Option<Instant> {
    inherited().and_then(|here| here.deadline)
}

/// The future of [`with_deadline`].
pub type WithDeadline<F> = Within<Timeout<F>>;
