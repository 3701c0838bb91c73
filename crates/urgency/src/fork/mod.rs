//! Fork-join: `join` and `scope`. Their forks lie in the deque of the stack that forks (`protocol/deque.rs`).
//!
//! The hot path of the whole runtime is [`join()`]: a push, a look at the attention word, the call of the left closure,
//! a pop, the call of the right closure. It has no atomic read-modify-write, no allocation and no clock. Everything
//! that can go differently is in a cold function of its own.

mod join;
mod right_branch;
mod scope;
mod spin;

pub use {join::join, scope::Scope, scope::scope};
pub(crate) use {join::join_told, scope::innermost_base};
