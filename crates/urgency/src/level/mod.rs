//! Levels as types: waiting for something less urgent does not compile.
//!
//! A program declares its levels once, most urgent first:
//!
//! ```
//! urgency::levels! {
//!     /// The levels of the server.
//!     pub App: Interactive > Query > Batch; Interactive > Audit
//! }
//! # fn main() {}
//! ```
//!
//! and builds its runtime with them: `Runtime::builder().levels::<App>()`. From then on:
//!
//! - `Batch.spawn_fn(|cx| ..)` and `Batch.spawn(async |cx| ..)` create work at a level and return a
//!   [`TypedHandle<T, Batch>`](TypedHandle), which remembers the level in its type.
//! - `cx` is a [`Cx<Batch>`](Cx): the proof that this code runs at `Batch`. It has no size and no cost.
//! - `handle.get(cx)` and `handle.wait(cx).await` compile only if the handle's level is [`AtLeast`] as urgent as the
//!   level of `cx`. Any other wait would be a *priority inversion*: the waiter would in truth be only as urgent as what
//!   it waits for. To wait all the same, raise the awaited work: [`boost_get`](TypedHandle::boost_get) and
//!   [`boosted`](TypedHandle::boosted).
//! - From a plain thread, `Batch.on(&runtime).spawn(async |cx| ..)` creates work, and
//!   `Batch.on(&runtime).run(|cx| ..)` runs a closure on that thread. From untyped async code, a handler for instance,
//!   `Batch.here(async |cx| ..)` goes on in typed code if the task is of that level, and is an error otherwise.
//! - Level-polymorphic code takes the proof as a parameter: `fn parse<L: Level>(cx: Cx<L>, ..)`.
//!
//! # How far the guarantee goes
//!
//! The type system knows the level of a piece of code by its `Cx`, so the question is whether a `Cx`
//! can get into code of another level. `Cx<'cx, L>` carries a lifetime that no caller can choose: the
//! closures and async closures that get it must work for every `'cx`, and what they spawn must be
//! `'static`. So a `Cx` cannot be captured by spawned work, stored in a static or sent away; the same
//! holds for a future made by `wait`. It can be passed down to functions, across `.await`, and into
//! both sides of a `join`, which all run at the same level. That is all that a type can say; some
//! things remain for the scheduler, which checks each wait by the levels' run-time numbers as well:
//! handles whose level was [erased](TypedHandle::erase), levels chosen at run time ([`LevelId`]),
//! hand-written implementations of [`AtLeast`], a `cx` borrowed into [`TypedAt::run`] at another level, and the part
//! of a plain closure `|cx| { .. async move { .. } }` before its future: that part runs at the level of the code that
//! calls [`Level::spawn`], and its panic is the caller's. In these cases a priority inversion is a typed error
//! ([`JoinErrorKind`](crate::JoinErrorKind)).
//!
//! Not covered by either: waiting that is not for a handle (a channel, a foreign lock). A
//! [`sync::Mutex`](crate::sync::Mutex) lends its holder the waiter's level instead.
//!
//! # Where this comes from
//!
//! Muller, Acar and Harper gave levels and this rule to a type system (PriML); the fairness paper,
//! section 2, has the model; Prompt I-Cilk, section 4, relies on the rule for its response times and
//! leaves the check to such a type system. Here Rust's traits are the type system: the closure of
//! the order becomes implementations of `AtLeast`, made by [`levels!`](crate::levels).
//!
//! # Rejected
//!
//! - *A `Cx` without a lifetime.* It could be captured by more urgent work and used there.
//! - *A `Cx` that is not `Send`.* It could not live across an `.await`.
//! - *`|cx| async move { .. }` as the form of async work.* The future's type would have to be the same
//!   for every `'cx`, so it could not contain `cx`. `async move |cx| { .. }` says what is meant.
//! - *Comparing ranks in a `const` assertion.* It fails after type checking, without the caller's
//!   place, and generic code could not state what it needs in its signature.

mod at;
mod cx;
mod default;
mod handle;
mod here;
mod shared;
mod traits;

pub use at::TypedAt;
pub use cx::{Cx, SendBody};
pub use default::Normal;
pub use handle::{AwaitedWithoutCx, TypedHandle, Wait};
pub use here::WrongLevel;
pub use shared::TypedShared;
pub use traits::{AtLeast, Level, MayWaitFor};

pub use crate::rank::{LevelId, Levels, OneLevel, WrongOrder};

#[cfg(test)]
mod tests;
