//! The proof that code runs at a level.
//!
//! # Rules
//!
//! 1. A `Cx<'cx, L>` is made only by the methods of [`Level`], for the call of a body that the
//!    scheduler runs at `L` or, if it was boosted, above. (What a plain closure does before it returns a
//!    future is not that body, and is left to the scheduler: see the module's text.)
//! 2. The body must accept every `'cx`, so it cannot assume that `'cx` is `'static`, and whatever
//!    contains a `Cx` cannot go where `'static` is asked for: into spawned work, above all.
//! 3. What runs inside the body without being `'static` (functions, the two sides of a `join`, the children of a scope,
//!    the rest after an `.await`) runs at the body's level.
//!
//! From 1 to 3: code that has a `Cx<L>` runs at `L`.

use super::{Level, LevelId};
use std::{fmt, marker::PhantomData};

/// The proof that this code runs at level `L`. See the [module's text](super).
///
/// Bodies of typed work get one. It can be copied, passed to functions (`fn f<L: Level>(cx: Cx<L>)`; an `async fn` has
/// to write `Cx<'_, L>`) and held across `.await`, but not taken along into other spawned work, which has a `cx` of its
/// own.
///
/// ```
/// use urgency::level::{Cx, Level, TypedHandle};
///
/// /// Works at any level, and creates its work at the caller's.
/// fn halves<L: Level>(cx: Cx<L>, numbers: Vec<u64>) -> u64 {
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let left = left.to_vec();
///     let left = cx.level().spawn_fn(move |_| left.iter().sum::<u64>());
///     let right: u64 = right.iter().sum();
///     left.get(cx).expect("nobody cancels it") + right
/// }
///
/// async fn both<L: Level>(cx: Cx<'_, L>, numbers: Vec<u64>) -> u64 {
///     let sum = cx.level().spawn_fn(move |cx| halves(cx, numbers));
///     sum.wait(cx).await.expect("nobody cancels it")
/// }
/// ```
pub struct Cx<'cx, L> {
    place: PhantomData<&'cx ()>,
    level: PhantomData<fn() -> L>,
}

impl<L: Level> Cx<'_, L> {
    /// By rule 1.
    #[inline]
    pub(super) fn new() -> Self {
        Cx {
            place: PhantomData,
            level: PhantomData,
        }
    }

    /// The level of this code: `cx.level().spawn(..)` creates work beside it.
    #[inline]
    pub fn level(self) -> L {
        L::LEVEL
    }

    /// The level of this code as a number.
    #[inline]
    pub fn id(self) -> LevelId {
        L::LEVEL.into()
    }
}

impl<L> Clone for Cx<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Cx<'_, L> {}

impl<L: Level> fmt::Debug for Cx<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cx<{}>", L::NAME)
    }
}

/// An async closure `async move |cx| { .. }` whose future can be sent between threads.
///
/// Every async closure that takes a [`Cx`] and holds nothing across an `.await` that is tied to a
/// thread implements it; nobody has to. It stands beside `AsyncFnOnce` in the bounds of
/// [`Level::spawn`] because that trait cannot say yet that its future is `Send`.
///
/// ```
/// use urgency::{Runtime, levels, level::{Cx, Level, SendBody, TypedHandle}};
///
/// levels! { App: Interactive > Batch }
///
/// /// As [`Level::spawn`], with a line in the log: the bounds of a function that takes a body.
/// fn spawn_logged<L, F>(level: L, body: F) -> TypedHandle<u32, L>
/// where
///     L: Level,
///     F: for<'cx> SendBody<'cx, L, Result = u32>
///         + for<'cx> AsyncFnOnce(Cx<'cx, L>) -> u32
///         + Send
///         + 'static,
/// {
///     println!("work at {}", L::NAME);
///     level.spawn(body)
/// }
///
/// let runtime = Runtime::builder().levels::<App>().build()?;
/// let logged = Interactive.on(&runtime).run(|cx| spawn_logged(Interactive, async |_| 42).get(cx));
/// assert_eq!(logged?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "typed async work is an async closure, `async move |cx| {{ .. }}`, and this is `{Self}`",
    label = "write `async move |_| {{ .. }}`: the parameter is the proof of the level",
    note = "for a future without a typed level: `urgency::at(level).spawn(future)`"
)]
pub trait SendBody<'cx, L>: FnOnce(Cx<'cx, L>) -> Self::Future {
    /// The future of the body.
    type Future: Future<Output = Self::Result> + Send + 'cx;
    /// What the body returns in the end.
    type Result;
}

impl<'cx, L, F, R> SendBody<'cx, L> for F
where
    L: 'cx,
    F: FnOnce(Cx<'cx, L>) -> R,
    R: Future + Send + 'cx,
{
    type Future = R;
    type Result = R::Output;
}
