//! Events: which thread waits for them, when the workers look instead, and which worker takes what became ready.
//!
//! Read [`poller`]. The modes, and what must hold when one gives way to the other, are a protocol of their own:
//! [`crate::protocol::poll_mode`].
//!
//! What became ready goes in by [`serve`](super::serve). A worker for it comes out of the idle set
//! ([`machine`](super::machine)), or is taken from a less urgent stack ([`rescue`](super::rescue)). The thread in the
//! poller is also the one that finds the relief timer expired. [`switch`](super::switch) sends it here.

mod poller;
