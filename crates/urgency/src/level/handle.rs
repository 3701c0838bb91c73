//! Handles that remember the level of their work in their type.
//!
//! A `TypedHandle<T, L>` is an untyped [`JoinHandle`] and a phantom, a [`TypedShared`] the same with a
//! [`Shared`](crate::Shared). They add no state and no protocol: waiting, cancelling and boosting are
//! the untyped handle's. What they add is the bound on waiting: `C: MayWaitFor<L>`, with `C` from the waiter's [`Cx`];
//! see [`AtLeast`](super::AtLeast).
//!
//! A typed handle is not awaited by itself: `handle.await` has no place for `cx`, so the level of the
//! waiter would be unknown. It implements `Future` under a bound that never holds, for the sake of the message.
//! [`TypedHandle::wait`] makes the future, and that has the lifetime of `cx`, so it cannot be carried to code of
//! another level either.

use super::{Cx, Level, MayWaitFor, TypedShared};
use crate::{JoinError, JoinHandle};
use std::{
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

/// A handle of work at level `L` that returns a `T`.
///
/// Made by [`Level::spawn`] and [`Level::spawn_fn`]. Dropping it detaches the work. A panic of the work is a
/// value in the error of the code that waits for it.
///
/// ```
/// use urgency::{Runtime, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let rt = Runtime::builder().levels::<App>().build()?;
/// let rows = Interactive.on(&rt).run(|cx| {
///     let rows = Batch.spawn_fn(|_| 10);
///     // `rows.get(cx)` does not compile here: it would be a priority inversion.
///     rows.boost_get(cx)
/// });
/// assert_eq!(rows?, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Waiting for less urgent work is an error of the compiler:
///
/// ```compile_fail,E0277
/// # use urgency::levels;
/// # levels! { App: Interactive > Batch }
/// Interactive.spawn_fn(|cx| {
///     let rows = Batch.spawn_fn(|_| 10);
///     rows.get(cx) // priority inversion
/// });
/// ```
#[must_use = "dropping a handle detaches its work; call `detach` to say so"]
pub struct TypedHandle<T: 'static, L> {
    untyped: JoinHandle<T>,
    level: PhantomData<fn() -> L>,
}

impl<T: 'static, L: Level> TypedHandle<T, L> {
    /// `untyped` is the handle of work at level `L`.
    pub(super) fn new(untyped: JoinHandle<T>) -> Self {
        TypedHandle {
            untyped,
            level: PhantomData,
        }
    }

    /// Waits for the result, in a closure. The stack waits; its worker does something else.
    ///
    /// # Errors
    ///
    /// If the work panicked, was cancelled, or the runtime shut down before there was a result.
    pub fn get<C>(self, cx: Cx<'_, C>) -> Result<T, JoinError>
    where
        C: MayWaitFor<L>,
    {
        let _: Cx<'_, C> = cx;
        self.untyped.get()
    }

    /// A future that waits for the result, in async code.
    ///
    /// Dropping the future before it is ready detaches the work.
    ///
    /// ```
    /// use urgency::{Runtime, levels};
    ///
    /// levels! { App: Interactive > Batch }
    ///
    /// let runtime = Runtime::builder().levels::<App>().build()?;
    /// let double = Batch.on(&runtime).spawn(async |cx| {
    ///     let rows = Interactive.spawn(async |_| 10);
    ///     rows.wait(cx).await.map(|rows| 2 * rows)
    /// });
    /// assert_eq!(double.erase().get()??, 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The future's output is an error if the work panicked, was cancelled, or the runtime shut down before
    /// there was a result.
    pub fn wait<'cx, C>(self, cx: Cx<'cx, C>) -> Wait<'cx, JoinHandle<T>>
    where
        C: MayWaitFor<L>,
    {
        let _: Cx<'cx, C> = cx;
        Wait::new(self.untyped)
    }

    /// Raises the work to the level of `cx` and waits for it, in a closure: for work that may be less
    /// urgent. Whatever the work waits for is raised in turn.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn boost_get<C>(self, cx: Cx<'_, C>) -> Result<T, JoinError>
    where
        C: Level<Order = L::Order>,
    {
        let _: Cx<'_, C> = cx;
        self.untyped.boost();
        self.untyped.get()
    }

    /// Raises the work to the level of `cx`, at once, and makes a future that waits for it. Whatever
    /// the work waits for is raised in turn. Dropping the future detaches the work, which stays raised.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn boosted<'cx, C>(self, cx: Cx<'cx, C>) -> Wait<'cx, JoinHandle<T>>
    where
        C: Level<Order = L::Order>,
    {
        let _: Cx<'cx, C> = cx;
        self.untyped.boost();
        Wait::new(self.untyped)
    }

    /// The result if the work has ended, without waiting. `None`: not yet.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn try_get(&mut self) -> Option<Result<T, JoinError>> {
        self.untyped.try_get()
    }

    /// A handle that can be cloned and waited for by any number of waiters; each gets a clone of the
    /// result.
    pub fn share(self) -> TypedShared<T, L>
    where
        T: Clone + Send + Sync,
    {
        TypedShared::new(self.untyped.share())
    }

    /// The level that the work was created at. A boost may have raised it.
    pub fn level(&self) -> L {
        L::LEVEL
    }

    /// Has the work ended, with a result or without?
    pub fn is_finished(&self) -> bool {
        self.untyped.is_finished()
    }

    /// Asks for the work to end early: async work is dropped when it next suspends or would next run, a closure that
    /// has not started never starts. A waiter gets an error, unless the work ended first.
    ///
    /// ```
    /// use urgency::level::{Level, Normal};
    ///
    /// let endless = Normal.spawn(async |_| std::future::pending::<()>().await);
    /// assert!(!endless.is_finished());
    /// endless.abort();
    /// assert!(endless.erase().get().unwrap_err().is_cancelled());
    /// Normal.spawn(async |_| ()).detach();
    /// ```
    pub fn abort(&self) {
        self.untyped.abort();
    }

    /// Lets the work go on without anybody waiting for it.
    pub fn detach(self) {
        self.untyped.detach();
    }

    /// The handle without its level. It can be waited for from anywhere, a plain thread included;
    /// from inside the runtime, waiting for less urgent work is an error at run time.
    #[must_use = "dropping a handle detaches its work; call `detach` to say so"]
    pub fn erase(self) -> JoinHandle<T> {
        self.untyped
    }
}

/// What `handle.await` asks for on behalf of a typed handle. Nothing implements it: it is the compiler's message.
///
/// ```compile_fail,E0277
/// # use urgency::levels;
/// # levels! { App: Interactive > Batch }
/// Batch.spawn(async |_| {
///     let rows = Interactive.spawn(async |_| 10);
///     rows.await // `rows.wait(cx).await`, with the `cx` of this body, compiles
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "a typed handle is not awaited by itself: the compiler could not check the level of the code that waits",
    label = "write `.wait(cx).await`, with the `cx` of the surrounding body",
    note = "`cx` is the parameter of the body: `Batch.spawn(async move |cx| {{ .. handle.wait(cx).await .. }})`",
    note = "for less urgent work write `.boosted(cx).await`, which raises it",
    note = "where there is no `cx` write `.erase().await`, which checks at run time"
)]
pub trait AwaitedWithoutCx {}

/// Never there: `handle.await` does not compile, and the message of [`AwaitedWithoutCx`] says what to write. The bound
/// is on another type than the handle, because the compiler would otherwise report the future and not the bound.
impl<T: 'static, L: Level> Future for TypedHandle<T, L>
where
    Cx<'static, L>: AwaitedWithoutCx,
{
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        unreachable!("the bound holds for no level")
    }
}

debug_struct!([T: 'static, L: Level] TypedHandle<T, L>, |it| level: L::LEVEL, untyped: it.untyped);

/// The future of [`TypedHandle::wait`] and [`TypedHandle::boosted`]: the result of the work.
///
/// It belongs to the code whose [`Cx`] it was made with: `'cx` keeps it from being spawned elsewhere.
#[must_use = "futures do nothing unless you `.await` or poll them"]
#[derive(Debug)]
pub struct Wait<'cx, H> {
    untyped: H,
    place: PhantomData<&'cx ()>,
}

impl<H> Wait<'_, H> {
    pub(super) fn new(untyped: H) -> Self {
        Wait {
            untyped,
            place: PhantomData,
        }
    }
}

impl<H: Future + Unpin> Future for Wait<'_, H> {
    type Output = H::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<H::Output> {
        Pin::new(&mut self.untyped).poll(cx)
    }
}
