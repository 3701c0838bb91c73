//! I/O: descriptors that can wait, and the driver that waits for them.
//!
//! An operation is tried at once; only if it would block is its descriptor registered, once and
//! edge-triggered, and its future suspended. Readiness wakes futures in the order in which the kernel
//! reports it, which with FIFO queues is the aging heuristic (fairness paper, section 3).
//!
//! From the bottom up:
//!
//! - `poller`: the kernel's interface, that of Linux.
//! - `slab`: keys that are never valid twice.
//! - `readiness`: the protocol of one direction of a descriptor. Read this one first.
//!   `watchers`: a part of it.
//! - `source`: a descriptor's two directions and its registration.
//! - `driver`: all sources and timers of a runtime; what the scheduler calls.
//! - `unread`: results of started operations whose future was dropped.
//! - [`Async`]: any descriptor; [`Blocking`]: the blocking forms for closures; [`stdin`], [`stdout`].
//!
//! Sockets are in [`net`](crate::net), timers in [`time`](crate::time), files in [`fs`](crate::fs).

mod async_fd;
mod blocking;
pub(crate) mod driver;
pub(crate) mod poller;
pub(crate) mod readiness;
pub(crate) mod slab;
pub(crate) mod source;
mod stdio;
pub(crate) mod unread;
pub(crate) mod watchers;

pub use async_fd::Async;
pub use blocking::Blocking;
pub use stdio::{Stdin, Stdout, stderr, stdin, stdout};

#[cfg(test)]
mod tests;
