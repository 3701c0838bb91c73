//! I/O: descriptors that can wait.
//!
//! An operation is tried at once; only if it would block is its descriptor registered, once and
//! edge-triggered, and its future suspended. Readiness wakes futures in the order in which the kernel
//! reports it, which with FIFO queues is the aging heuristic (fairness paper, section 3).
//!
//! What waits in the kernel, and how, is the reactor's (`reactor/`). Here are:
//!
//! - `source`: a descriptor and its registration with the driver. Read this one first.
//! - `unread`: results of started operations whose future was dropped.
//! - [`Async`]: any descriptor; [`Blocking`]: the blocking forms for closures; [`stdin`], [`stdout`].
//!
//! Sockets are in [`net`](crate::net), timers in [`time`](crate::time), files in [`fs`](crate::fs).

mod async_fd;
mod blocking;
pub(crate) mod source;
mod stdio;
pub(crate) mod unread;

pub use async_fd::Async;
pub use blocking::Blocking;
pub use stdio::{Stdin, Stdout, stderr, stdin, stdout};

#[cfg(test)]
mod tests;
