//! Which threads look for events while workers are busy: one in the poller, or the workers themselves.
//!
//! In the *dedicated* mode a thread in the poller waits for events. It is prompt: the kernel preempts a core for it
//! when an event arrives, or wakes one up. But it is a thread switch for each event, and while some worker runs *brief*
//! polls of tasks it is for nothing: that worker is back at the scheduler before a woken thread would run.
//!
//! Then the mode is *inline*. The thread in the poller waits for notifications only, for a relief period at a time. The
//! brief workers look at the kernel's queue between two polls, once in [`LOOK_PERIOD`] (less often if there is one
//! level only), and whenever they run dry. If a look finds more than one event, the next idle worker is started as
//! after any insertion. While any worker runs what may be long, the mode is dedicated: an event may have to preempt
//! that worker (inline, p99 of requests beside endless compute was 5.9 ms instead of 0.2).
//!
//! # States
//!
//! - `DEDICATED`: each thread in the poller waits there for everything.
//! - `INLINE`: one thread in the poller waits for notifications only. It wakes up after every relief period, and goes
//!   on in this way only while each worker that is not idle is brief or searches. (It does not wait for the timer
//!   descriptor: that stays readable while the worker that took its event is preempted, and the thread would spin.)
//! - `RECALLED`: the last such worker is about to run something that may be long, or is idle while its thread waits for
//!   something else, and has notified that thread in the poller. (The thread of a worker that went idle for want of
//!   work goes into the poller itself.)
//!
//! # Rules
//!
//! 1. Only a thread in the poller leaves `DEDICATED`, and only that thread comes back to it. There is at most one.
//! 2. It sets `INLINE`, *then* looks whether a worker is brief. A worker that is no longer brief says so,
//!    *then* looks at the state. All four steps are sequentially consistent: one of the two sees the other.
//! 3. So an event that arrives while all workers run long finds a thread in the poller, but for what becomes long
//!    without a scheduling point: a poll that computes. That is found when the relief period ends.

use crate::sys::primitives::atomic::{AtomicU8, AtomicU64, Ordering, fence};

/// Busy workers look for events once in this time, in nanoseconds, since one may be for more urgent work: about what it
/// takes until a thread in the poller runs, and thirty times what a look costs.
const LOOK_PERIOD: f64 = 30_000.0;

/// The same where nothing is more urgent than what the workers run. A look costs about as much for one event
/// as for ten: with 64 connections it was 10 % of the server's time at 30 µs, and the rate of requests 7 %
/// less.
const LOOK_PERIOD_OF_ONE_LEVEL: f64 = 100_000.0;

const DEDICATED: u8 = 0;
const INLINE: u8 = 1;
const RECALLED: u8 = 2;

/// How often busy workers look in a job of so many levels, in nanoseconds.
pub(crate) fn look_period(levels: usize) -> f64 {
    match levels {
        1 => LOOK_PERIOD_OF_ONE_LEVEL,
        _ => LOOK_PERIOD,
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct PollMode {
    state: AtomicU8,
    /// When a worker looked last, in ticks.
    looked_at: AtomicU64,
}

impl PollMode {
    pub(crate) fn new() -> Self {
        PollMode {
            state: AtomicU8::new(DEDICATED),
            looked_at: AtomicU64::new(0),
        }
    }

    /// A thread in the poller leaves events to the workers. `false`: another one has done so.
    pub(crate) fn begin_inline(&self) -> bool {
        let old =
            self.state
                .compare_exchange(DEDICATED, INLINE, Ordering::SeqCst, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        old.is_ok()
    }

    /// That thread waits for events again, or leaves the poller.
    pub(crate) fn end_inline(&self) {
        self.state.store(DEDICATED, Ordering::SeqCst);
    }

    /// Whether the workers look for events.
    #[inline]
    pub(crate) fn is_inline(&self) -> bool {
        self.state.load(Ordering::SeqCst) != DEDICATED
    }

    /// No worker is brief any more. `true`: the caller notifies the thread in the poller.
    pub(crate) fn recall(&self) -> bool {
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::SeqCst) != INLINE {
            return false;
        }
        let old = self
            .state
            .compare_exchange(INLINE, RECALLED, Ordering::SeqCst, Ordering::SeqCst);
        old.is_ok()
    }

    /// Whether no worker has looked for a period, [`look_period`] in ticks. Then the caller looks, and no other worker
    /// for as long.
    #[inline]
    pub(crate) fn is_due(&self, now: u64, period: u64) -> bool {
        let last = self.looked_at.load(Ordering::Relaxed);
        now.saturating_sub(last) >= period
            && self
                .looked_at
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::SeqCst},
        },
        thread,
    };

    #[test]
    fn a_worker_that_runs_long_recalls_the_thread_in_the_poller_or_is_seen_by_it() {
        loom::model(|| {
            let poll_mode = Arc::new(PollMode::new());
            let brief = Arc::new(AtomicBool::new(true));
            let (theirs, mine) = (poll_mode.clone(), brief.clone());
            let worker = thread::spawn(move || {
                mine.store(false, SeqCst);
                theirs.recall()
            });
            assert!(poll_mode.begin_inline());
            let inline = brief.load(SeqCst);
            if !inline {
                poll_mode.end_inline();
            }
            let recalled = worker.join().unwrap();
            assert!(
                !inline || recalled,
                "no thread waits for events while a worker runs long"
            );
        });
    }
}
