//! Fork-join: `join`, `scope`, and the deque that carries their jobs.
//!
//! The hot path of the whole runtime is [`join()`]: a push, a look at the attention word, the call of the
//! left closure, a pop, the call of the right closure. No atomic read-modify-write, no allocation, no
//! clock. Everything that can go differently is in a cold function of its own.

#[cfg(not(urgency_loom))]
pub(crate) mod deque;
pub(crate) mod fence;
#[cfg(not(urgency_loom))]
pub(crate) mod job;
#[cfg(not(urgency_loom))]
mod join;
pub(crate) mod latch;
#[cfg(not(urgency_loom))]
mod scope;
#[cfg(not(urgency_loom))]
mod spin;

#[cfg(not(urgency_loom))]
pub(crate) use join::join_told;
#[cfg(not(urgency_loom))]
pub use {join::join, scope::Scope, scope::scope};

/// Under loom the deque carries tags: its model needs no real job.
#[cfg(urgency_loom)]
pub(crate) mod job {
    #[derive(Debug)]
    pub(crate) struct Job;
}
#[cfg(urgency_loom)]
pub(crate) mod deque;
