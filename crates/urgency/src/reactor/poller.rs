//! What the driver needs of an operating system: a [`Poller`], one type for each of its interfaces.
//!
//! Everything above it (sources, readiness, timers, the paused clock, relief) is
//! [`DriverOver`](super::driver::DriverOver) any poller, and is the same code for each. The runtime's is
//! [`Epoll`](super::epoll::Epoll), by the alias [`Driver`](super::driver::Driver): the choice is made when the crate is
//! compiled, by `cfg`, so a call of a poller is a plain call. A trait object would make every wait an indirect call,
//! and no program wants two pollers.
//!
//! # What a poller promises
//!
//! 1. *Edges.* A descriptor that was [added](Poller::add) is reported when it becomes ready in a direction that is
//!    watched, and if it was ready when it was added or [modified](Poller::modify). An edge more costs an attempt in
//!    vain; an edge less is a task that waits for ever.
//! 2. *One thread each.* Any number of threads may wait at once. An event is given to one of them. No lock is held
//!    while a thread waits.
//! 3. *Stale events.* After [`Poller::remove`] events of the descriptor may still come under its key. Keys are never
//!    valid twice, so the driver drops them.
//! 4. *Notifications* are counted: `n` of them end `n` blocking waits ([`Poller::wait`] or [`Poller::rest`]), now or
//!    later. A wait gives out [`Event::Notification`], and the driver then takes one of the count or passes it on
//!    ([`Poller::take_notification`]); `rest` takes one itself.
//! 5. *The timer* is one, with absolute times. Programming it replaces the time before. A time in the past fires at
//!    once.
//!
//! # Interfaces that complete operations
//!
//! An interface like io_uring has operations that are submitted and completions that are harvested. It fits as follows;
//! `driver/completions.rs` is such a poller, over a kernel that is a table in memory, and runs the driver's tests.
//!
//! - `add` submits an operation that waits for the descriptor (`IORING_OP_POLL_ADD`), with the key as its user data.
//!   Its completion is the edge. The operation is then over, or says that it goes on; the poller submits it anew before
//!   it gives the edge out, since nobody above does (promise 1).
//! - `modify` and `remove` cancel it by its key, and a completion that was on its way is a stale event (promise 3).
//! - The timer is an operation as well (`IORING_OP_TIMEOUT`), and so is a notification (a read of an eventfd, or a
//!   message to the ring). [`Poller::postpone`] replaces the time of the rest's timeout (`IORING_TIMEOUT_UPDATE`).
//! - `wait` submits what is queued and harvests completions, in one system call.
//!
//! What does not go through here is the transfer itself: `io/source.rs` makes the system call when an edge says so. An
//! interface that also transfers would give out a third kind of event, with a result; sources with a buffer of their
//! own would be its users.

#![cfg(not(urgency_loom))]

use rustix::fd::BorrowedFd;
use std::{
    io,
    time::{Duration, Instant},
};

/// See the module's text. Times are in nanoseconds since the poller was made.
pub(crate) trait Poller: Sized + Send + Sync {
    /// Room for the events of one wait, on the stack of the waiting thread.
    type Batch: Default;

    /// Takes what it needs of the system; the error says that a limit is reached.
    fn new() -> io::Result<Self>;

    /// Watches `fd`. Readiness that exists already is reported as an event.
    fn add(&self, fd: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()>;

    /// Watches `fd` for other directions. Readiness that exists already is reported again.
    fn modify(&self, fd: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()>;

    /// Stops watching `fd`. Events that a thread has fetched already may still come.
    fn remove(&self, fd: BorrowedFd<'_>, key: u64) -> io::Result<()>;

    /// Waits for events without a time limit, or only looks. An interrupted wait has no events.
    fn wait<'a>(
        &'a self,
        block: bool,
        batch: &'a mut Self::Batch,
    ) -> io::Result<impl Iterator<Item = Event> + 'a>;

    /// Waits until a thread notifies, for `limit` at most, and for nothing else. `true`: this thread took one
    /// notification. One thread rests at a time.
    fn rest(&self, limit: Duration) -> io::Result<bool>;

    /// If a thread rests, its rest ends after `limit` from now, instead of the time set before.
    fn postpone(&self, limit: Duration);

    /// Ends one wait, now or later.
    fn notify(&self);

    /// After the event [`Event::Notification`]: takes one of the pending notifications if `wanted`, and
    /// passes on the rest.
    fn take_notification(&self, wanted: bool) -> bool;

    /// [`Event::Timer`] comes at this time, instead of the time set before.
    fn program_timer(&self, at: u64);

    /// The time now.
    fn now(&self) -> u64;

    /// A moment as a time; 0 for earlier ones.
    fn nanoseconds(&self, at: Instant) -> u64;

    /// The moment of a time.
    fn instant(&self, at: u64) -> Instant;
}

/// The directions in which a descriptor is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest(u8);

impl Interest {
    /// Readable, or closed by the peer.
    pub(crate) const READ: Interest = Interest(1);
    /// Writable.
    pub(crate) const WRITE: Interest = Interest(2);

    pub(crate) fn from_bits(bits: u8) -> Self {
        Interest(bits)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn contains(self, other: Interest) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn and(self, other: Interest) -> Self {
        Interest(self.0 | other.0)
    }
}

/// What the kernel said about one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// A read may succeed now, or report the end or an error.
    pub(crate) readable: bool,
    /// A write may succeed now, or report an error.
    pub(crate) writable: bool,
    /// A hang-up, an error or urgent data was among it: from now on a short read says nothing about
    /// whether more can be read.
    pub(crate) exceptional: bool,
}

/// One event, in the kernel's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The descriptor added under this key became ready.
    Ready(u64, Edge),
    /// The timer expired.
    Timer,
    /// A thread notified.
    Notification,
}
