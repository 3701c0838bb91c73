//! `Barrier`: all wait until all have come.
//!
//! Under one short lock are the number of arrivals and the number of the round. The last arrival ends the round and
//! notifies all. A future that is dropped while it waits takes its arrival back, so a round never ends with too few.

use super::{
    hooks,
    notify::{Notified, Notify},
};
use crate::sys::mutex::Mutex;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A point that so many contexts pass together, again and again; see [`mod@crate::sync`] for what holds for
/// all primitives.
///
/// ```
/// use urgency::sync::Barrier;
///
/// static START: Barrier = Barrier::new(2);
///
/// let other = urgency::spawn(START.wait());
/// let led_here = START.blocking_wait();
/// let led_there = other.get()?;
/// assert!(led_here.is_leader() != led_there.is_leader(), "one of them came last");
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub struct Barrier {
    parties: usize,
    state: Mutex<State>,
    passed: Notify,
}

#[derive(Clone, Copy)]
struct State {
    came: usize,
    round: u64,
}

impl Barrier {
    const_fn! {
        /// For so many contexts. For 0 and 1 nobody waits.
        pub fn new(parties: usize) -> Self {
            Barrier {
                parties,
                state: Mutex::new(State { came: 0, round: 0 }),
                passed: Notify::new(),
            }
        }
    }

    /// Waits until all have come. The one that came last is told so: [`BarrierWaitResult::is_leader`].
    ///
    /// # Cancellation
    ///
    /// Dropping the future before all have come takes the arrival back.
    pub fn wait(&self) -> BarrierWait<'_> {
        BarrierWait {
            barrier: self,
            waiting: None,
        }
    }

    /// As [`wait`](Self::wait), for closures and plain threads.
    pub fn blocking_wait(&self) -> BarrierWaitResult {
        crate::block_on(self.wait())
    }
}

debug_struct!(Barrier, |it| parties: it.parties);

/// Whether the waiter came last, and so leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// True for the one that came last, false for the others.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

/// The future of [`Barrier::wait`].
#[must_use = "futures do nothing unless awaited"]
pub struct BarrierWait<'a> {
    barrier: &'a Barrier,
    /// The round in which it came, and the news of its end.
    waiting: Option<(u64, Notified<'a>)>,
}

impl Future for BarrierWait<'_> {
    type Output = BarrierWaitResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let barrier = self.barrier;
        if self.waiting.is_none() {
            std::task::ready!(hooks::begin(cx));
            // Made before the look at the state: the end of the round is not missed.
            let passed = barrier.passed.notified();
            let mut state = barrier.state.lock();
            state.came += 1;
            if state.came >= barrier.parties {
                state.came = 0;
                state.round += 1;
                drop(state);
                barrier.passed.notify_waiters();
                return Poll::Ready(BarrierWaitResult(true));
            }
            let round = state.round;
            drop(state);
            self.waiting = Some((round, passed));
        }
        let (_, passed) = self.waiting.as_mut().expect("set above");
        std::task::ready!(Pin::new(passed).poll(cx));
        self.waiting = None;
        Poll::Ready(BarrierWaitResult(false))
    }
}

impl Drop for BarrierWait<'_> {
    fn drop(&mut self) {
        if let Some((round, _)) = self.waiting {
            let mut state = self.barrier.state.lock();
            if state.round == round {
                state.came -= 1;
            }
        }
    }
}

debug_struct!(BarrierWait<'_>, |it| waits: it.waiting.is_some());
