//! Which threads look for events while workers are busy: one in the poller, or the workers themselves.
//!
//! In the *dedicated* mode a thread in the poller waits for events. It is prompt: the kernel preempts a core for it
//! when an event arrives, or wakes one up. But it is a thread switch for each event, and while some worker runs *brief*
//! polls of tasks it is for nothing: that worker is back at the scheduler before a woken thread would run.
//!
//! Then the mode is *inline*. The brief workers look at the kernel's queue between two polls, once in [`LOOK_PERIOD`]
//! (less often if there is one level only), and whenever they run dry. The thread in the poller *rests*: it waits for
//! notifications only, until no worker has looked for a relief period, since looks postpone the end of the rest. If a
//! look finds more than one event, the next idle worker is started as after any insertion. While any worker runs what
//! may be long, the mode is dedicated: an event may have to preempt that worker (inline, p99 of requests beside endless
//! compute was 5.9 ms instead of 0.2).
//!
//! # States
//!
//! - `DEDICATED`: each thread in the poller waits there for everything.
//! - `INLINE`: one thread in the poller waits for notifications only. It goes on in this way after a rest only while
//!   each worker that is not idle is brief or searches. (It does not wait for the descriptor of the timers: that stays
//!   readable while the worker that took its event is preempted, and the thread would spin.)
//! - `RECALLED`: the last such worker is about to run something that may be long, or is idle while its thread waits for
//!   something else, and has notified that thread in the poller. (The thread of a worker that went idle for want of
//!   work goes into the poller itself.)
//!
//! # Rules
//!
//! 1. Only a thread in the poller leaves `DEDICATED`, and only that thread comes back to it. There is at most one.
//! 2. It sets `INLINE`, *then* looks whether a worker is brief. A worker that is no longer brief says so,
//!    *then* looks at the state ([`PollMode::is_inline`]). All four steps are sequentially consistent: one of the two
//!    sees the other, without a barrier.
//! 3. So an event that arrives while all workers run long finds a thread in the poller, but for what becomes long
//!    without a scheduling point: a poll that computes. That is found when the rest ends.

use crate::sys::primitives::atomic::{AtomicU8, AtomicU64, Ordering};

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
    /// When a worker postponed the end of the rest last, in ticks.
    postponed_at: AtomicU64,
}

impl PollMode {
    pub(crate) fn new() -> Self {
        PollMode {
            state: AtomicU8::new(DEDICATED),
            looked_at: AtomicU64::new(0),
            postponed_at: AtomicU64::new(0),
        }
    }

    /// A thread in the poller leaves events to the workers. `false`: another one has done so.
    pub(crate) fn begin_inline(&self) -> bool {
        self.state
            .compare_exchange(DEDICATED, INLINE, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
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

    /// No worker is brief any more, and [`PollMode::is_inline`] said so to the caller. `true`: the caller notifies the
    /// thread in the poller.
    pub(crate) fn recall(&self) -> bool {
        // The caller's look is what rule 2 orders. This step decides between callers, and hands nothing over.
        self.state
            .compare_exchange(INLINE, RECALLED, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether no worker has looked for a period, [`look_period`] in ticks. Then the caller looks, and no other worker
    /// for as long.
    #[inline]
    pub(crate) fn is_due(&self, now: u64, period: u64) -> bool {
        once_in(&self.looked_at, now, period)
    }

    /// Whether no worker has postponed the end of the rest for most of the time that a rest takes, in ticks. Then the
    /// caller, which looks, does so: it is a system call.
    #[inline]
    pub(crate) fn postpones(&self, now: u64, most: u64) -> bool {
        once_in(&self.postponed_at, now, most)
    }
}

/// Whether `last` is a period ago. Then it becomes `now`, for one caller.
#[inline]
fn once_in(last: &AtomicU64, now: u64, period: u64) -> bool {
    let before = last.load(Ordering::Relaxed);
    now.saturating_sub(before) >= period
        && last
            .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
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

    /// Workers that say whether they are brief. The words have been written: a sequentially consistent load of loom's
    /// returns nothing older than the newest such store, but for what the word began with.
    struct Model {
        poll_mode: PollMode,
        brief: Vec<AtomicBool>,
    }

    impl Model {
        fn new(workers: usize) -> Arc<Self> {
            let brief: Vec<_> = (0..workers).map(|_| AtomicBool::new(false)).collect();
            brief.iter().for_each(|brief| brief.store(true, SeqCst));
            let poll_mode = PollMode::new();
            assert!(poll_mode.begin_inline());
            poll_mode.end_inline();
            Arc::new(Model { poll_mode, brief })
        }

        fn does_a_worker_look(&self) -> bool {
            self.brief.iter().any(|brief| brief.load(SeqCst))
        }

        /// The worker runs what may be long from now on. Whether it notifies the thread in the poller.
        fn runs_long(&self, worker: usize) -> bool {
            self.brief[worker].store(false, SeqCst);
            self.poll_mode.is_inline() && !self.does_a_worker_look() && self.poll_mode.recall()
        }
    }

    #[test]
    fn a_worker_that_runs_long_recalls_the_thread_in_the_poller_or_is_seen_by_it() {
        loom::model(|| {
            let model = Model::new(1);
            let theirs = model.clone();
            let worker = thread::spawn(move || theirs.runs_long(0));
            assert!(model.poll_mode.begin_inline());
            let inline = model.does_a_worker_look();
            if !inline {
                model.poll_mode.end_inline();
            }
            let recalled = worker.join().unwrap();
            assert!(
                !inline || recalled,
                "no thread waits for events while a worker runs long"
            );
        });
    }

    /// One notification: a second one would wake the thread in the poller once more, in vain.
    #[test]
    fn of_workers_that_run_long_at_once_one_recalls_the_thread_in_the_poller() {
        loom::model(|| {
            let model = Model::new(2);
            assert!(model.poll_mode.begin_inline());
            let theirs = model.clone();
            let other = thread::spawn(move || theirs.runs_long(0));
            let mine = model.runs_long(1);
            assert!(other.join().unwrap() != mine, "one of the two");
            assert!(model.poll_mode.is_inline(), "recalled, and not back yet");
        });
    }

    /// Two threads come to the poller at once: at most one leaves events to the workers, and the next may when that one
    /// is back, recalled or not.
    #[test]
    fn one_thread_at_a_time_leaves_events_to_the_workers() {
        for recalled in [false, true] {
            loom::model(move || {
                let model = Model::new(1);
                let theirs = model.clone();
                let other = thread::spawn(move || theirs.poll_mode.begin_inline());
                let mine = model.poll_mode.begin_inline();
                assert!(other.join().unwrap() != mine, "one of the two");
                assert!(model.poll_mode.is_inline());
                assert_eq!(recalled && model.runs_long(0), recalled);
                model.poll_mode.end_inline();
                assert!(!model.poll_mode.is_inline() && model.poll_mode.begin_inline());
            });
        }
    }
}
