//! What [`levels!`](crate::levels) implements: a level, an order of levels, "at least as urgent as".

use super::{Cx, LevelId, Levels, SendBody, TypedAt, TypedHandle, WrongLevel};
use crate::runtime::Handle;
use std::fmt::Debug;

/// A priority level, declared by [`levels!`](crate::levels).
///
/// [`spawn`](Self::spawn) and [`spawn_fn`](Self::spawn_fn) create work at this level in the runtime of the current
/// thread, and [`on`](Self::on) names another runtime. They are the typed forms of [`at`](crate::at).
///
/// ```
/// use urgency::{Runtime, level::{Level, Levels}, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let rt = Runtime::builder().levels::<App>().build()?;
/// let answer = Batch.on(&rt).run(|cx| {
///     // `cx` says that this runs at `Batch`; it may wait for anything more urgent.
///     let double = Interactive.spawn(async |_| 21 * 2);
///     double.get(cx)
/// });
/// assert_eq!(answer?, 42);
///
/// // For code that is generic over levels.
/// fn describe<L: Level>() -> (&'static str, &'static str, u8) {
///     (<L::Order as Levels>::NAME, L::NAME, L::RANK)
/// }
/// assert_eq!(describe::<Batch>(), ("App", "Batch", 1));
/// assert_eq!(<Batch as Level>::LEVEL.id().rank(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a priority level",
    label = "this needs a level, a name in `levels! {{ App: Interactive > Batch }}`"
)]
pub trait Level: AtLeast<Self> + Copy + Debug + Send + Sync + 'static {
    /// The order that this level belongs to.
    type Order: Levels;
    /// The level itself.
    const LEVEL: Self;
    /// The place of this level in a topological order, 0 for the most urgent.
    const RANK: u8;
    /// The name of this level.
    const NAME: &'static str;

    /// This level as a number.
    fn id(self) -> LevelId {
        self.into()
    }

    /// Creates an async task at this level.
    ///
    /// The body is an async closure, `async move |cx| { .. }`: it gets the proof that it runs at this level, and may
    /// hold the proof across every `.await`. Dropping the handle detaches the task.
    ///
    /// ```
    /// # use urgency::{Runtime, levels};
    /// # levels! { App: Interactive > Batch }
    /// # let rt = Runtime::builder().levels::<App>().build()?;
    /// let words = vec!["urgent", "work"];
    /// let counted = rt.run(|| {
    ///     Batch.spawn(async move |cx| {
    ///         let first = Interactive.spawn(async move |_| words.len());
    ///         first.wait(cx).await
    ///     })
    /// });
    /// assert_eq!(counted.erase().get()??, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the runtime of the current thread was not built with the levels of this order; the message
    /// names both ([`WrongOrder`](super::WrongOrder)).
    #[track_caller]
    fn spawn<F, T>(self, body: F) -> TypedHandle<T, Self>
    where
        F: for<'cx> SendBody<'cx, Self, Result = T>
            + for<'cx> AsyncFnOnce(Cx<'cx, Self>) -> T
            + Send
            + 'static,
        T: Send + 'static,
    {
        TypedAt::<Self>::new(Handle::current()).spawn(body)
    }

    /// Creates the task of a closure at this level, which gets a stack of its own: it may `join`,
    /// block in [`get`](TypedHandle::get) and call blocking code. Dropping the handle detaches it.
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    #[track_caller]
    fn spawn_fn<F, T>(self, body: F) -> TypedHandle<T, Self>
    where
        F: for<'cx> FnOnce(Cx<'cx, Self>) -> T + Send + 'static,
        T: Send + 'static,
    {
        TypedAt::<Self>::new(Handle::current()).spawn_fn(body)
    }

    /// This level of `runtime`: the way from `main`, a test or another runtime into typed code.
    ///
    /// ```
    /// # use urgency::{Runtime, levels};
    /// # levels! { App: Interactive > Batch }
    /// let rt = Runtime::builder().levels::<App>().build()?;
    /// let frame = Interactive.on(&rt).spawn(async |cx| {
    ///     Interactive.spawn_fn(|_| 6 * 7).wait(cx).await
    /// });
    /// assert_eq!(frame.erase().get()??, 42); // a plain thread may wait for anything
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `runtime` was not built with the levels of this order; the message names both
    /// ([`WrongOrder`](super::WrongOrder)).
    #[track_caller]
    fn on(self, runtime: &Handle) -> TypedAt<Self> {
        TypedAt::new(runtime.clone())
    }

    /// Goes on in typed code, in the calling task, which must be of this level: the way from untyped async code (a
    /// handler of a web server, a callback) to a `cx`. Nothing is spawned.
    ///
    /// ```
    /// # use urgency::{Runtime, levels};
    /// # levels! { App: Interactive > Batch }
    /// # let rt = Runtime::builder().levels::<App>().build()?;
    /// let untyped = rt.at(Batch).spawn(async {
    ///     let rows = Batch.here(async |cx| {
    ///         Interactive.spawn_fn(|_| 10).wait(cx).await
    ///     });
    ///     assert!(Interactive.here(async |_| ()).await.is_err()); // this is batch code
    ///     rows.await
    /// });
    /// assert_eq!(untyped.get()???, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The future's output is an error, and the body is not called, if the task that first polls it was created at
    /// another level or in a runtime of another order, or on a plain thread.
    fn here<F, T>(self, body: F) -> impl Future<Output = Result<T, WrongLevel>> + Send
    where
        F: for<'cx> SendBody<'cx, Self, Result = T>
            + for<'cx> AsyncFnOnce(Cx<'cx, Self>) -> T
            + Send
            + 'static,
        T: Send + 'static,
    {
        async move {
            super::here::check::<Self>()?;
            Ok(body(Cx::new()).await)
        }
    }

    /// Whether the calling code was created at this level, as [`here`](Self::here) asks. A boost changes nothing about
    /// that. Work that names no level was created at the level at which the code was created that spawned it.
    ///
    /// # Errors
    ///
    /// As [`here`](Self::here).
    fn is_here(self) -> Result<(), WrongLevel> {
        super::here::check::<Self>()
    }
}

/// `Awaited: AtLeast<Waiter>` says that `Awaited` is the same level as `Waiter` or a more urgent one,
/// so that code at `Waiter` may wait for work at `Awaited`.
///
/// [`levels!`](crate::levels) implements it for the pairs of the program's order. Level-polymorphic
/// code states what it needs with it:
///
/// ```
/// use urgency::{JoinError, level::{AtLeast, Cx, Level, TypedHandle}};
///
/// fn both<L, A, B>(cx: Cx<L>, a: TypedHandle<u32, A>, b: TypedHandle<u32, B>) -> Result<u32, JoinError>
/// where
///     L: Level,
///     A: Level + AtLeast<L>,
///     B: Level + AtLeast<L>,
/// {
///     Ok(a.get(cx)? + b.get(cx)?)
/// }
/// ```
///
/// An implementation by hand that is wrong does no harm beyond the program's own response times: the
/// scheduler checks the wait again and returns the error that untyped handles return.
#[diagnostic::on_unimplemented(
    message = "priority inversion: code at level `{Waiter}` must not wait for work at level `{Self}`",
    label = "`{Self}` is not at least as urgent as `{Waiter}`",
    note = "code may wait only for work at its own level or a more urgent one; levels that `levels!` does not order may not wait for each other",
    note = "to wait all the same, raise the awaited work: `.boosted(cx).await` or, in a closure, `.boost_get(cx)`",
    note = "or create the awaited work at level `{Waiter}`, or declare in `levels!` that `{Self}` is more urgent than `{Waiter}`"
)]
pub trait AtLeast<Waiter> {}

/// `Waiter: MayWaitFor<Awaited>` is [`Awaited: AtLeast<Waiter>`](AtLeast), read from the other side.
/// It is implemented for exactly those pairs, and there is no need to name it: code states `AtLeast`.
///
/// It is what the waiting methods ask for, because there the waiter's level is a parameter that the
/// compiler finds from `cx`. Were it a parameter of the trait, the compiler would take it from the
/// only implementation that a least urgent level has, or from a bound of level-polymorphic code, and
/// would then report "mismatched types" instead of the priority inversion.
pub trait MayWaitFor<Awaited> {}

impl<Waiter, Awaited: AtLeast<Waiter>> MayWaitFor<Awaited> for Waiter {}

impl<L: Level> From<L> for LevelId {
    #[inline]
    fn from(_: L) -> LevelId {
        LevelId::named(L::RANK, L::NAME)
    }
}
