//! `levels!`: the priority levels of a program as types.
//!
//! ```ignore
//! urgency::levels! {
//!     /// The levels of the application.
//!     pub App:
//!         /// Somebody is waiting.
//!         Interactive > Query > Batch;
//!         Interactive > Audit
//! }
//! ```
//!
//! `A > B` reads "A is more urgent than B". Each name becomes a type, and for each pair of levels of
//! which one is at least as urgent as the other, a trait says so; waiting for something less urgent
//! then is an ordinary "trait bound not satisfied", which the compiler reports at the place of the
//! wait in the library's words. That is why this is a macro and not a function: the order has to
//! become trait implementations, one for each pair of its transitive closure, and `macro_rules!`
//! cannot compute a closure.
//!
//! # Grammar
//!
//! ```text
//! levels   = attributes visibility NAME ":" chain { ";" chain } [ ";" ]
//! chain    = level { ">" level }
//! level    = attributes NAME
//! ```
//!
//! A name that occurs in several chains is the same level. A chain of one name declares a level
//! that is ordered by other chains or not at all; one that is there already is rejected as a slip,
//! and so is an order that is stated twice. Attributes of a level may stand at any of its
//! occurrences.
//!
//! # Steps
//!
//! 1. `parse`: tokens to a declaration, or an error at the token that does not fit.
//! 2. `urgency_policy::order::Order`: ranks and closure, by the very code that the runtime uses for
//!    levels known at run time only; or an error that names levels.
//! 3. `expand`: the types and implementations, with the names' own spans, so that "go to
//!    definition", rustdoc and the compiler's messages point at what the user wrote.
//! 4. An error becomes a `compile_error!` with the span of what is wrong.
//!
//! The crate also has the attributes `#[main]` and `#[test]` (`entry`).
//!
//! No `syn`, no `quote`: the grammar is six lines, and every program that has levels would wait for
//! those crates to build.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod branches;
mod entry;
mod error;
mod expand;
mod manifest;
mod parse;

/// Declares priority levels as types, most urgent first. Reexported as `urgency::levels!`.
///
/// ```ignore
/// urgency::levels! {
///     /// The levels of the application.
///     pub App: Interactive > Query > Batch; Interactive > Audit
/// }
/// ```
///
/// `A > B` says that `A` is more urgent than `B`; chains are separated by `;`, and together they make
/// a partial order. Levels that they do not order, like `Query` and `Audit` here, are incomparable:
/// neither may wait for the other. A program can have at most 64 levels.
///
/// Workers need one order for all, so incomparable levels have one as well: of all levels that could come next, the one
/// that is named first does. `Query` and `Batch` come before `Audit` here, and while work of `Batch` fills every
/// processor, work of `Audit` waits. So name the one first that should not wait, or give shares.
///
/// This makes, all with the given visibility:
///
/// - a unit struct for each level, which implements `Level`: `Batch.spawn_fn(|cx| ..)`;
/// - a type without values for the order, which implements `Levels`:
///   `Runtime::builder().levels::<App>()`;
/// - `AtLeast<W>` for each level that is the same as `W` or more urgent: waiting for anything else
///   does not compile;
/// - the trait `Level` in scope, without a name, so that its methods can be called in this module
///   and wherever everything of it is imported (`use crate::levels::*`).
///
/// # Strict, or with shares
///
/// Levels are served strictly, unless the program asks for shares (`Builder::fairness`): while urgent work fills every
/// processor, less urgent work waits. Begin so, also in a service with a batch below. A share for the batch is taken
/// from the requests that come before it, and it helps the batch only where these leave less than the share. In a
/// search service with 78 % of two processors in requests (`urgency-bench service-1ms-40`, one round), strict levels
/// gave the reindex 17,900 documents a second, and a share of a tenth 18,200; the median of a search rose from 60 to
/// 119 ms. Ask for a share if the batch has to go on however much is requested.
///
/// Levels and the order take doc comments and other attributes (but not `cfg`: an order must not
/// depend on it silently). Each level's documentation ends with its place in the order.
///
/// # Errors
///
/// More than 64 levels, a cycle, a level or an order that is stated twice, and whatever does not fit
/// the grammar are compile errors that point at the name or token.
#[proc_macro]
pub fn levels(input: TokenStream) -> TokenStream {
    match parse::declaration(input).and_then(|declaration| expand::expand(&declaration)) {
        Ok(output) => output,
        Err(error) => error.into_tokens(),
    }
}

/// Runs an `async fn main` on the global runtime; reexported as `urgency::main`.
///
/// With `worker_threads = N` it runs on a runtime of its own. With `flavor = "current_thread"` that has one worker, for
/// which the calling thread works while the body waits (`urgency::runtime::Builder::new_current_thread`). With
/// `flavor = "local"` it runs on an `urgency::runtime::LocalRuntime`, so that it may call `urgency::task::spawn_local`.
///
/// ```ignore
/// #[urgency::main]
/// async fn main() {
///     println!("{}", urgency::spawn(async { 6 * 7 }).await.unwrap());
/// }
/// ```
///
/// # Errors
///
/// A function that is not `async`, and an option that there is not, are compile errors. A function of another name than
/// `main` may take arguments.
#[proc_macro_attribute]
pub fn main(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(entry::Kind::Main, options, item).unwrap_or_else(error::Error::into_tokens)
}

/// Runs an `async fn` as a test, on a runtime of its own with one worker; reexported as `urgency::test`.
///
/// `flavor = "multi_thread"` and `worker_threads = N` ask for more workers, `start_paused = true` for a clock that
/// stands still (`urgency::time::pause`). With `flavor = "current_thread"` the calling thread works for the one worker
/// while the body waits, as with Tokio; `flavor = "local"` is the same with local tasks (`LocalRuntime`). Then a task
/// may not wait in a blocking form for what the body is to do. A test without an option is of the flavor
/// `current_thread` as well where the package depends on the library as `tokio`.
///
/// ```ignore
/// #[urgency::test(start_paused = true)]
/// async fn an_hour_is_over_at_once() {
///     urgency::time::sleep(std::time::Duration::from_secs(3600)).await;
/// }
/// ```
///
/// # Errors
///
/// As `main`'s, and a test that takes arguments.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(entry::Kind::Test, options, item).unwrap_or_else(error::Error::into_tokens)
}

/// What `select!` of the library expands to.
#[doc(hidden)]
#[proc_macro]
pub fn select_branches(input: TokenStream) -> TokenStream {
    branches::select(input)
}

/// What `join!` of the library expands to.
#[doc(hidden)]
#[proc_macro]
pub fn join_branches(input: TokenStream) -> TokenStream {
    branches::join(input, false)
}

/// What `try_join!` of the library expands to.
#[doc(hidden)]
#[proc_macro]
pub fn try_join_branches(input: TokenStream) -> TokenStream {
    branches::join(input, true)
}
