//! The reactor: what a runtime waits for in the kernel.
//!
//! From the bottom up:
//!
//! - `poller`: what the driver needs of a system, as a trait; `epoll` is Linux's, and the only one. `sockets`: system
//!   calls that differ between systems.
//! - `readiness`: the protocol of one direction of a descriptor. Read this one first.
//!   `watchers`: a part of it.
//! - `directions`: a descriptor's two directions, as the driver knows them. What registers them is `io/source.rs`.
//! - `crowd`: whether events come from many descriptors. `incoming`: on which processor they come in. `sources`: the
//!   registered descriptors.
//! - `clock`: the clock of the timers, which tests may pause. `timers`: the heap of pending timers.
//! - `driver`: all sources and timers of a runtime; what the scheduler calls.

pub(crate) mod clock;
mod crowd;
pub(crate) mod directions;
pub(crate) mod driver;
mod epoll;
mod incoming;
pub(crate) mod poller;
pub(crate) mod readiness;
pub(crate) mod sockets;
mod sources;
pub(crate) mod timers;
pub(crate) mod watchers;
