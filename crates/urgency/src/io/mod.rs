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
//! - `interest`, `ready`: [`Interest`] and [`Ready`], to wait for several things of a descriptor at once.
//!
//! - With the feature `tokio-io`: Tokio's traits, their extensions, `BufReader`, `BufWriter`, `copy`, `duplex`, `split`
//!   and the rest of `tokio::io` that needs no runtime. They are Tokio's own, so other crates know them.
//!
//! Sockets are in [`net`](crate::net), timers in [`time`](crate::time), files in [`fs`](crate::fs).

mod async_fd;
mod blocking;
pub(crate) mod forward;
mod interest;
pub(crate) mod ready;
pub(crate) mod source;
mod stdio;
pub(crate) mod unread;

pub use async_fd::Async;
pub use blocking::Blocking;
pub use interest::{Interest, Ready};
pub use stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

/// Tokio's I/O traits and what is built on them alone (`tokio::io` without its runtime): the feature `tokio-io`.
#[cfg(feature = "tokio-io")]
pub use tokio::io::*;

#[cfg(test)]
mod tests;
