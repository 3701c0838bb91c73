//! Both of two futures, as functions: [`join!`](crate::join) and [`try_join!`](crate::try_join) without a rotation.

use crate::{join, try_join};

/// Waits for both of two futures, and gives both outputs. Both run in the calling task, in turns; to run them
/// in parallel, see [`join`](crate::join()) and [`spawn`](crate::spawn()). Dropping it drops both, which cancels them.
///
/// ```
/// let both = urgency::future::zip(async { 1 }, async { "one" });
/// assert_eq!(urgency::block_on(both), (1, "one"));
/// ```
pub async fn zip<A: IntoFuture, B: IntoFuture>(a: A, b: B) -> (A::Output, B::Output) {
    join!(biased; a.into_future(), b.into_future())
}

/// Waits for both of two futures, unless one fails: then the other one is dropped.
///
/// # Errors
///
/// The error of the first that fails.
///
/// ```
/// let both = urgency::future::try_join(async { Ok::<_, ()>(1) }, async { Err::<(), _>(()) });
/// assert_eq!(urgency::block_on(both), Err(()));
/// ```
pub async fn try_join<A, B, T, U, E>(a: A, b: B) -> Result<(T, U), E>
where
    A: IntoFuture<Output = Result<T, E>>,
    B: IntoFuture<Output = Result<U, E>>,
{
    try_join!(biased; a.into_future(), b.into_future())
}
