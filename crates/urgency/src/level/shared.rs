//! A typed handle for any number of waiters.
//!
//! What [`TypedHandle`](super::TypedHandle) is to [`JoinHandle`](crate::JoinHandle), this is to
//! [`Shared`]: the level in the type, and the bound on waiting. The waiters may be at different
//! levels; each has to be allowed to wait.

use super::{Cx, Level, MayWaitFor, Wait};
use crate::{JoinError, Shared};
use std::marker::PhantomData;

/// A handle of work at level `L` that can be cloned; made by [`TypedHandle::share`](super::TypedHandle::share).
///
/// Each waiter gets a clone of the result, in the order in which they began to wait. When the last
/// clone is dropped, the work is detached.
///
/// ```
/// use urgency::{Runtime, levels};
///
/// levels! { App: Interactive > Query > Batch }
///
/// let rt = Runtime::builder().levels::<App>().build()?;
/// let index = Query.on(&rt).spawn_fn(|_| vec![3, 5]).share();
/// let sum = Batch.on(&rt).run(|cx| {
///     let theirs = index.clone();
///     let first = Query.spawn(async move |cx| theirs.wait(cx).await.map(|index| index[0]));
///     let second = index.get(cx)?[1];
///     first.get(cx)?.map(|first| first + second)
/// });
/// assert_eq!(sum?, 8);
///
/// // More urgent code may wait for it as well, if it raises it.
/// let count = Batch.on(&rt).spawn_fn(|_| 10).share();
/// let raised = Interactive.on(&rt).spawn(async move |cx| count.boosted(cx).await);
/// assert_eq!(raised.erase().get()??, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the last handle detaches its work"]
pub struct TypedShared<T: 'static, L> {
    untyped: Shared<T>,
    level: PhantomData<fn() -> L>,
}

impl<T: Clone + Send + Sync + 'static, L: Level> TypedShared<T, L> {
    /// `untyped` is a handle of work at level `L`.
    pub(super) fn new(untyped: Shared<T>) -> Self {
        TypedShared {
            untyped,
            level: PhantomData,
        }
    }

    /// Waits for the result, in a closure. The stack waits; its worker does something else.
    ///
    /// # Errors
    ///
    /// If the work panicked, was cancelled, or the runtime shut down before there was a result.
    pub fn get<C>(&self, cx: Cx<'_, C>) -> Result<T, JoinError>
    where
        C: MayWaitFor<L>,
    {
        let _: Cx<'_, C> = cx;
        self.untyped.get()
    }

    /// A future that waits for the result, in async code.
    ///
    /// # Errors
    ///
    /// The future's output is the error that [`get`](Self::get) returns.
    pub fn wait<'cx, C>(&self, cx: Cx<'cx, C>) -> Wait<'cx, Shared<T>>
    where
        C: MayWaitFor<L>,
    {
        let _: Cx<'cx, C> = cx;
        Wait::new(self.untyped.clone())
    }

    /// Raises the work to the level of `cx`, with whatever it waits for in turn, and waits for it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn boost_get<C>(&self, cx: Cx<'_, C>) -> Result<T, JoinError>
    where
        C: Level<Order = L::Order>,
    {
        let _: Cx<'_, C> = cx;
        self.untyped.boost();
        self.untyped.get()
    }

    /// Raises the work to the level of `cx`, at once and with whatever it waits for in turn, and makes
    /// a future that waits for it.
    ///
    /// # Errors
    ///
    /// The future's output is the error that [`get`](Self::get) returns.
    pub fn boosted<'cx, C>(&self, cx: Cx<'cx, C>) -> Wait<'cx, Shared<T>>
    where
        C: Level<Order = L::Order>,
    {
        let _: Cx<'cx, C> = cx;
        self.untyped.boost();
        Wait::new(self.untyped.clone())
    }

    /// The result if the work has ended, without waiting. `None`: not yet.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn try_get(&self) -> Option<Result<T, JoinError>> {
        self.untyped.try_get()
    }

    /// The level that the work was created at. A boost may have raised it.
    pub fn level(&self) -> L {
        L::LEVEL
    }

    /// Whether the work has ended, with a result or without.
    pub fn is_finished(&self) -> bool {
        self.untyped.is_finished()
    }

    /// Asks for the work to end early, for all waiters; see
    /// [`TypedHandle::abort`](super::TypedHandle::abort).
    pub fn abort(&self) {
        self.untyped.abort();
    }

    /// The handle without its level; see [`TypedHandle::erase`](super::TypedHandle::erase).
    #[must_use = "dropping the last handle detaches its work"]
    pub fn erase(self) -> Shared<T> {
        self.untyped
    }
}

impl<T: 'static, L> Clone for TypedShared<T, L> {
    fn clone(&self) -> Self {
        TypedShared {
            untyped: self.untyped.clone(),
            level: PhantomData,
        }
    }
}

debug_struct!([T: 'static, L: Level] TypedShared<T, L>, |it| level: L::LEVEL, untyped: it.untyped);
