//! What a task is made of, with what it holds meanwhile: its place in a scope, or its admission.
//!
//! The second is dropped after the first, also if the task is cancelled before it ran: until nothing is left of it, the task has its place. The captures of
//! a closure and of an `async` block are dropped in the order in which they are named there, which is the wrong one if the body begins with `let _place = place`.

/// See the module's text. The fields are dropped in this order.
pub(super) struct Held<F, P> {
    what: F,
    place: P,
}

impl<F, P> Held<F, P> {
    pub(super) fn new(what: F, place: P) -> Self {
        Held { what, place }
    }

    /// As a call with `self`, so that a closure captures the whole.
    pub(super) fn release(self) -> (F, P) {
        (self.what, self.place)
    }
}
