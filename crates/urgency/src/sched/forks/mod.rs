//! Which workers would come for a fork, and which forks are shown to them.
//!
//! A fork is private to its stack until there is a reason to publish it ([`crate::protocol::deque`]). What is decided
//! here is whether there is one.
//!
//! Read [`hunger`] first: which workers would come for a stack's fork, and how a worker below is made to. Then
//! [`held_back`]: forks for which no worker is woken, since it would come in vain; [`pinned`]: forks for one certain
//! worker, which wait in its inbox.
//!
//! Published forks get to workers by [`serve`](super::serve), as other work does. A worker below that does not answer
//! is revoked by [`rescue`](super::rescue). Where threads are provided, [`switch`](super::switch) wakes the one for
//! which a pinned fork waits.

pub(crate) mod held_back;
pub(super) mod hunger;
pub(super) mod pinned;
