//! Fork-join: `join`, `scope`, and the deque that carries their forks.
//!
//! The hot path of the whole runtime is [`join()`]: a push, a look at the attention word, the call of the
//! left closure, a pop, the call of the right closure. No atomic read-modify-write, no allocation, no
//! clock. Everything that can go differently is in a cold function of its own.

mod join;
mod right_branch;
mod scope;
mod spin;

pub(crate) use join::join_told;
pub use {join::join, scope::Scope, scope::scope};
