//! Forks held back: no worker is woken for a computation that is over before the worker could come.
//!
//! A stack whose fork finds no worker awake has one woken. The worker comes after a *wake-up* (`sys/wake_up.rs`), and
//! waking it and letting it fall asleep again costs as much processor time once more. A shorter call has taken its
//! fork back by then, and the worker has come in vain. Whether a wake-up is worth its price depends on the
//! computation's length, which its stack does not know in advance. So the rule is ski rental with a memory:
//!
//! 1. A job counts wake-ups in vain. In vain is a wake-up for a fork that its own stack takes back within twice the
//!    time that a wake-up takes. So is one for a fork that is stolen, if its stack comes to the join within a wake-up's
//!    time: what the two then did at the same time is less than waking cost. Other wake-ups make the count smaller
//!    ([`WakeUps::learn`]).
//! 2. When the count is at its limit, stacks *hold back* their forks: they stay private, and wake no worker.
//! 3. A stack that still forks, or still has an older fork, a wake-up's time after its first fork was held back, has a
//!    worker woken at once, and the count begins at zero. Its room is zero meanwhile, so each of its forks asks.
//!    Until then a poll that an event brought passes for short, as if it forked nothing: its thread keeps the short
//!    slices of the poller.
//! 4. A stack in a long leaf asks nothing. So the relief timer is set while forks are held back. An expiry makes public
//!    what is still there, starts a worker, begins the count at zero, and doubles its limit.
//!
//! So a fork that should not have been held back waits 8 ms at most. Between two of these lie 16, 32, 64 wake-ups in
//! vain, and so on. A worker that is awake, or has work, takes forks as always: only one that sleeps costs a wake-up.
//!
//! *Named race, "held under expiry"*: the timer is set already when a stack holds a fork back, and expires at that
//! moment. The stack 1. pushes its fork; 2. leaves a note for the expiry; 3. arms the timer. The expiry 1. switches the
//! timer off; 2. takes the note; 3. looks at the deque. Each second and third step of the stack writes in any case, so
//! the expiry sees the fork, or the note is there and the timer set (`relief_timer.rs` has the model).
//!
//! # Forks that may be hidden
//!
//! A worker that goes idle leaves one more look to the expiry ([`Job::leave_to_expiry`]; `search.rs`, step 3). That
//! look is behind a barrier on all processors: one barrier for all the workers that went idle since the last expiry.
//!
//! # Rejected
//!
//! - To wake the worker later by a timer for each computation: two system calls each, as much as the waker pays.
//! - To count no stolen fork as in vain. Where a sleeping worker comes within 10 µs, half of the forks of `tick-inside`
//!   are stolen, and a call takes 28 µs instead of the 24 that it takes on one worker.

use crate::{
    protocol::{fence, own::Own},
    sched::{
        core::Core,
        job::Job,
        poll_context::{self, Departure},
        stack::{Me, Stack},
        worker::NO_LEVEL,
    },
    sys::{chaos, clock},
};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

/// What a job has learnt of its wake-ups for forks.
#[derive(Debug, Default)]
pub(crate) struct WakeUps {
    /// How many were in vain, less what the others take off.
    in_vain: AtomicU32,
    /// How often the limit has doubled.
    doubled: AtomicU32,
    /// Whether a fork was held back since the last expiry of the relief timer.
    held: AtomicBool,
    /// Whether a worker went idle since then while a stack may have hidden a fork.
    hidden: AtomicBool,
}

impl WakeUps {
    /// So many make stacks hold back, at first.
    const LIMIT: u32 = 16;
    /// How often this doubles at most.
    const MOST_DOUBLED: u32 = 8;
    /// A wake-up that was not in vain takes off so many.
    const WORTH: u32 = 4;

    fn limit(&self) -> u32 {
        Self::LIMIT << self.doubled.load(Relaxed)
    }

    fn are_in_vain(&self) -> bool {
        self.in_vain.load(Relaxed) >= self.limit() || chaos::one_in(4)
    }

    /// A wake-up was in vain, or was not. Several threads may learn at once, and one of them may be forgotten.
    fn learn(&self, in_vain: bool) {
        let old = self.in_vain.load(Relaxed);
        let new = if in_vain {
            (old + 1).min(self.limit())
        } else {
            old.saturating_sub(Self::WORTH)
        };
        if new != old {
            self.in_vain.store(new, Relaxed);
        }
    }

    /// A computation was long after all.
    fn start_over(&self) {
        self.in_vain.store(0, Relaxed);
    }

    /// So long that an expiry of the relief timer found it.
    fn start_over_for_long(&self) {
        let doubled = self.doubled.load(Relaxed) + 1;
        self.doubled.store(doubled.min(Self::MOST_DOUBLED), Relaxed);
        self.start_over();
    }
}

/// What a stack knows of its own forks and wake-ups; all in ticks. Written by the stack.
#[derive(Debug, Default)]
pub(crate) struct HeldBack {
    /// When the computation held back its first fork.
    since: AtomicU64,
    /// When it last asked.
    asked: AtomicU64,
    /// When its forks had a worker woken; 0 if what became of that is known.
    woke: AtomicU64,
}

/// Whether other workers are to have forks of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// No worker wants any.
    Not,
    /// A worker would have to be woken, and forks are held back.
    Later,
    /// A worker wants them.
    Now,
}

impl Job {
    /// Whether `me`, whose forks a worker would take, holds them back.
    #[inline]
    pub(in crate::sched) fn holds_back(&self, me: Me<'_>) -> bool {
        self.wake_ups.are_in_vain() && self.holds_back_cold(me)
    }

    #[cold]
    fn holds_back_cold(&self, me: Me<'_>) -> bool {
        let would_wake = self.core.idle.is_any_hungry()
            && self.searchers.count() == 0
            && !self.seats.is_on()
            && self.served.below(me.level()) == 0;
        if !would_wake {
            return false;
        }
        let (held, now) = (&me.held_back, clock::now());
        let wake_up = self.core.wake_up.ticks();
        let asked = held.asked.load(Relaxed);
        held.asked.store(now, Relaxed);
        if now.saturating_sub(asked) >= wake_up && me.deque.forks() <= 1 {
            held.since.store(now, Relaxed);
        } else if now.saturating_sub(held.since.load(Relaxed)) >= wake_up {
            self.wake_ups.start_over();
            return false;
        }
        // Rule 4.
        me.deque.seems_empty() || self.core.leave_to(&self.wake_ups.held)
    }

    /// The calling worker goes idle, and has not seen a fork that a stack may have pushed just now. Whether an expiry
    /// of the relief timer will look.
    pub(in crate::sched) fn leave_to_expiry(&self) -> bool {
        self.core.leave_to(&self.wake_ups.hidden)
    }

    /// The relief timer expired.
    pub(in crate::sched) fn show_held_back(&self) {
        let left = |what: &AtomicBool| what.load(Relaxed) && what.swap(false, AcqRel);
        let (held, hidden) = (left(&self.wake_ups.held), left(&self.wake_ups.hidden));
        if held {
            // A program that made such calls lately makes more of them: the thread in the poller stays there.
            self.arm_late();
        }
        if !(held || hidden) || !self.core.idle.is_any_hungry() {
            return;
        }
        if hidden {
            fence::heavy();
        }
        let (now, wake_up) = (clock::now(), self.core.wake_up.ticks());
        for worker in self.workers().filter(|worker| worker.level() != NO_LEVEL) {
            let Some(stack) = self.core.holder(worker) else {
                continue;
            };
            if !stack.is_of(self) || stack.deque.seems_empty() || stack.deque.seems_public() {
                continue;
            }
            if now.saturating_sub(stack.held_back.since.load(Relaxed)) < wake_up {
                self.core.leave_to(&self.wake_ups.held);
            } else if self.show_forks(stack) && held {
                self.wake_ups.start_over_for_long();
            }
        }
    }

    /// The calling stack `me` made forks public, and `wake` has a worker come for them: if none searches, by waking it.
    pub(in crate::sched) fn noting_wake_up(&self, me: Me<'_>, wake: impl FnOnce()) {
        let wakes = self.searchers.count() == 0;
        poll_context::departing(Departure::Stays, wake);
        if wakes {
            // Behind the wake-up, which takes the waker some microseconds: it is the branch that is timed.
            me.held_back.woke.store(clock::now(), Relaxed);
        }
    }
}

impl Core {
    /// Leaves something to the next expiry of the relief timer. `false`: there is no timer.
    pub(super) fn leave_to(&self, what: &AtomicBool) -> bool {
        what.swap(true, AcqRel);
        self.arm_held();
        self.relief_timer.is_set()
    }
}

impl Own<'_, Stack> {
    /// The stack has taken a public fork back.
    pub(crate) fn took_back(self) {
        self.learn(|took, wake_up| took < 2 * wake_up);
    }

    /// The stack comes to a join, and finds that the fork was stolen.
    pub(crate) fn was_stolen(self) {
        self.learn(|took, wake_up| took < wake_up);
    }

    fn learn(self, is_in_vain: impl FnOnce(u64, u64) -> bool) {
        let woke = self.held_back.woke.load(Relaxed);
        if woke != 0 {
            self.held_back.woke.store(0, Relaxed);
            let took = clock::now().saturating_sub(woke);
            let job = self.runtime();
            job.wake_ups
                .learn(is_in_vain(took, job.core.wake_up.ticks()));
        }
    }
}
