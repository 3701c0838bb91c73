//! `join` and `join_context`: on a stack, Urgency's own; from outside, inside a visit.

use crate::{registry::Registry, scope::in_place_scope};
use std::marker::PhantomData;
use urgency::embed::join_told;

/// Tells a closure of [`join_context`] about the call.
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// Neither `Send` nor `Sync`, as in rayon.
    here: PhantomData<*mut ()>,
}

impl FnContext {
    #[inline]
    fn new(migrated: bool) -> Self {
        FnContext {
            migrated,
            here: PhantomData,
        }
    }

    /// Whether the closure was called on another thread than the one that gave it.
    #[inline]
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// Runs both closures, potentially in parallel, and returns both results.
///
/// # Panics
///
/// With the panic of `oper_a`, or else with the panic of `oper_b`, after both have ended.
///
/// # Examples
///
/// ```
/// assert_eq!(rayon_core::join(|| 6, || 7), (6, 7));
/// ```
#[inline]
pub fn join<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match join_told(move |_| oper_a(), move |_| oper_b()) {
        Ok(joined) => joined,
        Err((a, b)) => join_outside(a, b),
    }
}

/// As [`join`]; the closures learn whether they migrated.
///
/// # Panics
///
/// As [`join`].
#[inline]
pub fn join_context<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let a = move |migrated| oper_a(FnContext::new(migrated));
    let b = move |migrated| oper_b(FnContext::new(migrated));
    match join_told(a, b) {
        Ok(joined) => joined,
        Err((a, b)) => join_outside(a, b),
    }
}

/// The calling thread is a plain one: both closures migrate to the global pool. In a handler of a pool they
/// do not.
#[cold]
#[inline(never)]
fn join_outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(bool) -> RA + Send,
    B: FnOnce(bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    Registry::current().run(move |migrated| {
        let joined = join_told(move |_| a(migrated), move |_| b(migrated));
        joined.unwrap_or_else(|(a, b)| in_turn(|| a(false), || b(false)))
    })
}

/// In a handler, on its thread. A scope runs b whatever a does, and resumes the first panic.
fn in_turn<RA, RB>(a: impl FnOnce() -> RA + Send, b: impl FnOnce() -> RB + Send) -> (RA, RB)
where
    RA: Send,
    RB: Send,
{
    let (mut from_a, mut from_b) = (None, None);
    in_place_scope(|s| {
        s.spawn(|_| from_a = Some(a()));
        s.spawn(|_| from_b = Some(b()));
    });
    let both = from_a.zip(from_b);
    both.expect("a closure without a result has panicked")
}
