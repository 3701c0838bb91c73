//! One door for everything that synchronises: `std` normally, loom under `--cfg urgency_loom`, atomics that count in
//! unit tests (`counted.rs`).
//!
//! Every protocol of the runtime is a small type in a file of its own and takes its atomics, locks
//! and cells from here, so that its loom model checks the very lines that run in production. The
//! cfg has a name of our own: plain `--cfg loom` would also switch dependencies over and break
//! their builds. Under `urgency_loom` only the protocol files are compiled, not the whole library.

#[cfg(not(urgency_loom))]
pub(crate) use std::{
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

#[cfg(not(any(test, urgency_loom)))]
pub(crate) use std::sync::atomic;

#[cfg(all(test, not(urgency_loom)))]
pub(crate) use super::counted as atomic;

#[cfg(urgency_loom)]
pub(crate) use loom::{
    sync::{Arc, Mutex, MutexGuard, atomic},
    thread,
};

/// What is done to a queue that is not made of these atomics.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queued {
    Pushed,
    Popped,
    Looked,
}
