//! What a task is made of, with what it holds meanwhile: its place in a scope, or its admission.
//!
//! What the task holds is dropped after what it is made of, also if the task is cancelled before it ran: the task has
//! its place until nothing is left of it. The captures of a closure and of an `async` block are dropped in the order in
//! which they are named there, which is the wrong order if the body begins with `let _place = place`.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
};

/// Is called with a place and the value of a panic.
type Saw<P> = fn(&P, &(dyn Any + Send));

/// See the module's text. The fields are dropped in this order.
pub(super) struct Held<F, P> {
    what: F,
    place: P,
}

impl<F, P> Held<F, P> {
    pub(super) fn new(what: F, place: P) -> Self {
        Held { what, place }
    }

    /// Runs a closure, and gives the place back after it. A call with `self`, so that a closure around it
    /// captures the whole.
    pub(super) fn call<T>(self) -> T
    where
        F: FnOnce() -> T,
    {
        let Held {
            what,
            place: _place,
        } = self;
        what()
    }

    /// The future, and after it the place, whose drop sees a panic of either the poll or the drop.
    pub(super) async fn run(self) -> F::Output
    where
        F: Future,
    {
        let Held {
            what,
            place: _place,
        } = self;
        what.await
    }

    /// As [`Held::call`], and `saw` is called if the closure panics.
    pub(super) fn call_seen<T>(self, saw: Saw<P>) -> T
    where
        F: FnOnce() -> T,
    {
        let Held { what, place } = self;
        seen(&place, saw, what)
    }

    /// As [`Held::run`], and `saw` is called if a poll panics.
    pub(super) async fn run_seen(self, saw: Saw<P>) -> F::Output
    where
        F: Future,
    {
        let Held { what, place } = self;
        // Dropped before the place.
        let mut what = pin!(what);
        poll_fn(|cx| seen(&place, saw, || what.as_mut().poll(cx))).await
    }
}

fn seen<P, R>(place: &P, saw: Saw<P>, run: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        saw(place, &*payload);
        resume_unwind(payload)
    })
}
