//! The census of a server's connections: how many live, and the word from the server to all of them.
//!
//! # Phases
//!
//! `OPEN` → `DRAINING` (finish what you do, take nothing new) → `CUT` (end now). Only the server changes the
//! phase, and only forwards.
//!
//! # Protocol
//!
//! 1. A connection polls with [`Member::poll_phase`]. While the phase is the one that the connection knows, the
//!    connection leaves its waker, once for each phase: it is a task of its own, so that its waker never changes.
//! 2. The server stores the new phase and takes all wakers in one critical section, and wakes them after it.
//! 3. A connection that leaves its waker reads the phase in the same critical section. So either it sees the
//!    new phase, or the server finds its waker.
//! 4. A member that is dropped gives its seat back and wakes the server, which may wait for room or for the
//!    last one to go.
//!
//! The lock is taken when a connection comes, goes or learns a phase; a request costs one load.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Waker},
};

/// What the server wants of its connections. See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    Draining,
    Cut,
}

impl Phase {
    fn from_bits(bits: u8) -> Phase {
        match bits {
            0 => Phase::Open,
            1 => Phase::Draining,
            _ => Phase::Cut,
        }
    }
}

/// How connections ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    pub(super) finished: u64,
    pub(super) failed: u64,
    pub(super) cut: u64,
}

#[derive(Debug, Default)]
struct Seats {
    live: usize,
    ended: Ended,
    /// By seat; `None` if the member left no waker, or if the seat is free.
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
    server: Option<Waker>,
}

/// The connections of one server.
#[derive(Debug, Default)]
pub(super) struct Census {
    phase: AtomicU8,
    seats: Mutex<Seats>,
}

impl Census {
    fn lock(&self) -> MutexGuard<'_, Seats> {
        // Nothing under this lock runs code of others but the clone of a waker, before any change.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection.
    pub(super) fn join(self: &Arc<Self>) -> Member {
        let mut seats = self.lock();
        seats.live += 1;
        let seat = seats.free.pop().unwrap_or_else(|| {
            seats.wakers.push(None);
            seats.wakers.len() - 1
        });
        Member {
            census: self.clone(),
            seat,
            left_waker: None,
            end: End::Failed,
        }
    }

    /// Ready when fewer than `limit` connections live.
    pub(super) fn poll_fewer_than(&self, limit: usize, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut seats = self.lock();
        if seats.live < limit {
            return Poll::Ready(());
        }
        let before = seats.server.replace(waker);
        drop(seats);
        drop(before);
        Poll::Pending
    }

    /// Goes on to `phase` and tells every connection.
    pub(super) fn announce(&self, phase: Phase) {
        let mut wakers = Vec::new();
        {
            let mut seats = self.lock();
            self.phase.store(phase as u8, Ordering::Release);
            wakers.extend(seats.wakers.iter_mut().filter_map(Option::take));
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many live, and how the others ended.
    pub(super) fn count(&self) -> (usize, Ended) {
        let seats = self.lock();
        (seats.live, seats.ended)
    }
}

/// How a member ended; `Failed` until it says otherwise, so that a panic counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Finished,
    Failed,
    Cut,
}

/// The seat of one connection.
#[derive(Debug)]
pub(super) struct Member {
    census: Arc<Census>,
    seat: usize,
    /// The phase in which it left its waker.
    left_waker: Option<Phase>,
    end: End,
}

impl Member {
    /// Ready when the phase is another than `known`.
    #[inline]
    pub(super) fn poll_phase(&mut self, known: Phase, cx: &mut Context<'_>) -> Poll<Phase> {
        let phase = Phase::from_bits(self.census.phase.load(Ordering::Acquire));
        if phase != known {
            return Poll::Ready(phase);
        }
        if self.left_waker == Some(known) {
            return Poll::Pending;
        }
        self.leave_waker(known, cx)
    }

    #[cold]
    fn leave_waker(&mut self, known: Phase, cx: &mut Context<'_>) -> Poll<Phase> {
        let waker = cx.waker().clone();
        let mut seats = self.census.lock();
        let phase = Phase::from_bits(self.census.phase.load(Ordering::Relaxed));
        if phase != known {
            return Poll::Ready(phase);
        }
        let before = seats.wakers[self.seat].replace(waker);
        drop(seats);
        drop(before);
        self.left_waker = Some(known);
        Poll::Pending
    }

    /// Says how it ended.
    pub(super) fn end(&mut self, end: End) {
        self.end = end;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let (waker, server) = {
            let mut seats = self.census.lock();
            seats.live -= 1;
            match self.end {
                End::Finished => seats.ended.finished += 1,
                End::Failed => seats.ended.failed += 1,
                End::Cut => seats.ended.cut += 1,
            }
            seats.free.push(self.seat);
            let waker = mem::take(&mut seats.wakers[self.seat]);
            (waker, seats.server.take())
        };
        drop(waker);
        if let Some(server) = server {
            server.wake();
        }
    }
}
