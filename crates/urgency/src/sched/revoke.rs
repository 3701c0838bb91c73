//! Revoking: a worker is taken from a stack that runs user code, and restored to it.
//!
//! A stack in user code may lose its worker at any time (`Attention::take`). It does not notice until its next
//! scheduling point, where it parks until it gets a worker again. Workers are revoked
//!
//! - for an event that is more urgent than what the worker runs (`poll.rs`): the kernel has preempted a processor
//!   already;
//! - for more urgent work of any kind, from a stack that *overruns*: it has lost its worker before and not
//!   come to a scheduling point since, so a request would wait for a millisecond ([`Shared::revoke_overrun`]);
//! - by relief (`relief.rs`).
//!
//! # Restoring
//!
//! A worker that was revoked for more urgent work remembers from which stack. When none of that work is left,
//! the worker goes back there, before it takes anything that is not more urgent than that stack: else each urgent
//! task would leave one more begun piece of work behind. Usually the stack has not noticed, and goes on. If it
//! has, it is in the mugging queue, which comes first. A worker may be revoked for something urgent and then for
//! something more urgent, so it remembers a list; the last comes first.

use super::{
    Work,
    relief::note_run_time,
    shared::Shared,
    stack::Stack,
    worker::{NO_LEVEL, Worker},
};
use crate::{account::overruns::Name, chaos, fork::fence, os::clock};
use std::{
    hint,
    sync::{Arc, atomic::Ordering},
};
use urgency_policy::level::LevelPolicy;

/// How long a worker waits, before it goes back to less urgent work, for jobs of a more urgent stack that runs, in
/// nanoseconds: about what it costs to wake a thread.
const WAIT_ABOVE: f64 = 30_000.0;

/// Why a worker is revoked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// For more urgent work: the worker is to be restored.
    Urgency,
    /// The thread sleeps in the kernel.
    Blocked,
    /// The stack has run for long while others of its level wait.
    Length,
}

impl Shared {
    /// Revokes the worker of whatever stack holds `worker` now, if it is in user code, and, if `only_if` is not zero,
    /// these requests are still pending there.
    pub(super) fn revoke(&self, worker: &Worker, only_if: u32, cause: Cause) -> Option<&Worker> {
        let stack = self.holder(worker)?;
        // The stack may hold another worker by now than the one we looked at; that is the one we got.
        let revoked = &*self.workers[stack.attention.take(only_if)?];
        chaos::delay();
        let level = stack.level();
        let counters = revoked.at(level);
        let now = clock::now();
        counters.running.add(revoked.lap_at(now));
        counters
            .behind
            .add(revoked.no_longer_wanted(level, revoked.since()));
        if self.rings_are_light {
            // The stack may push at this moment, and look at its word before that is visible.
            fence::heavy();
        }
        self.flush_ring(stack);
        let stack = stack.arc();
        if !stack.overruns.swap(true, Ordering::Relaxed) {
            self.overrunning.count.fetch_add(1, Ordering::Relaxed);
        }
        stack.lost_worker_at.store(now, Ordering::Relaxed);
        if only_if == 0 {
            // Nobody has asked it yet.
            note_run_time(&stack);
        }
        self.overrunning.add(&stack, cause == Cause::Length);
        if cause == Cause::Urgency {
            if !revoked.is_brief() && level == self.least_urgent() {
                self.lower(&stack);
            }
            revoked.left_on(stack.cpu());
            // What an event wakes is brief, as a rule.
            revoked.set_brief(true);
            revoked.push_revoked_from(stack);
        }
        self.arm_relief();
        Some(revoked)
    }

    /// As [`Shared::revoke`], of a stack that is known not to come to a scheduling point soon: it is an overrun, and
    /// counted as a relief.
    pub(super) fn revoke_counted(
        &self,
        worker: &Worker,
        only_if: u32,
        cause: Cause,
    ) -> Option<&Worker> {
        let stack = self.holder(worker)?;
        let level = stack.level();
        // Before the taking: the stack may come back at once. Its mark stays if it has one: the worker has no
        // other holder yet since an earlier taking.
        let mark = &stack.relieved_at;
        let marked = mark.compare_exchange(0, clock::now(), Ordering::Relaxed, Ordering::Relaxed);
        let Some(revoked) = self.revoke(worker, only_if, cause) else {
            if marked.is_ok() {
                mark.store(0, Ordering::Relaxed);
            }
            return None;
        };
        revoked.at(level).reliefs.add(1);
        Some(revoked)
    }

    /// Something at `level` became ready, and no worker is idle. Revokes a worker that serves something less urgent
    /// and whose stack overruns; of several, one that serves the least urgent.
    pub(crate) fn revoke_overrun(&self, level: u8) -> Option<&Worker> {
        if !self.overrunning.any() || self.served.below(level) == 0 {
            return None;
        }
        let overruns = |worker: &&Worker| {
            let serves = worker.level();
            serves != NO_LEVEL
                && worker.seat().is_drawn_by(level, serves)
                && self.is_settled(worker)
                && self.holder(worker).is_some_and(|stack| {
                    stack.overruns.load(Ordering::Relaxed) && !stack.attention.is_taken()
                })
        };
        let worker = if self.centre.is_on() {
            let workers = self.workers.iter().map(|worker| &**worker);
            workers.filter(overruns).max_by_key(|w| w.level())
        } else {
            self.some_below(level).find(overruns)
        };
        let worker = worker?;
        self.revoke_counted(worker, 0, Cause::Urgency)
    }

    /// The stack, the caller's, comes to a scheduling point in the middle of `what`, or at its end. If it has lost its
    /// worker to relief since the last one, that is noted, whether the worker has come back or not.
    #[inline]
    pub(crate) fn no_longer_overruns(&self, me: &Stack, what: impl FnOnce() -> Name) {
        if me.overruns.load(Ordering::Relaxed) {
            if me.overruns.swap(false, Ordering::Relaxed) {
                self.overrunning.count.fetch_sub(1, Ordering::Relaxed);
            }
            self.note_overrun(me, what());
        }
    }

    /// If the worker was revoked from a stack for more urgent work, and there is no more of that, it goes
    /// back. Usually that stack's thread has not run since: it stood on the processor that the event
    /// preempted, and never notices.
    #[inline]
    pub(crate) fn restore(&self, me: &Stack, worker: &Worker) -> Restored {
        while let Some(stack) = worker.pop_revoked_from() {
            if stack.attention.is_taken_from(worker.id) {
                return self.restore_to(me, worker, stack);
            }
            // It has noticed, and is in the mugging queue or has another worker.
        }
        Restored::Not
    }

    #[cold]
    fn restore_to(&self, me: &Stack, worker: &Worker, stack: Arc<Stack>) -> Restored {
        let level = stack.level();
        let is_drawn = || {
            // The bits alone may be stale: a level's bit is cleared by whoever finds its pool empty.
            worker
                .seat()
                .abandon_for(self.levels_queued(), level)
                .is_some()
        };
        if is_drawn() || {
            // Down and up again costs more than a look.
            self.look();
            is_drawn()
        } {
            worker.push_revoked_from(stack);
            return Restored::Not;
        }
        if let Some(work) = self.more_above(me, worker, level) {
            worker.push_revoked_from(stack);
            return Restored::Found(work);
        }
        // While that stack is the holder, nobody looks into the ring of this one.
        self.flush_ring(me);
        // All that a holder shows comes before the look at the levels: whoever inserts more urgent work
        // after that look alerts the stack.
        worker.set_holder(&*stack);
        worker.set_level(level);
        self.shows(worker, level);
        worker.set_brief(false);
        worker.set_hides_jobs(true);
        worker.counters.scheduling.add(worker.lap());
        if is_drawn() {
            me.hold(worker);
            worker.push_revoked_from(stack);
            return Restored::Not;
        }
        if stack.attention.give_back(worker.id) {
            return Restored::Done;
        }
        me.hold(worker);
        Restored::Not
    }

    /// Jobs that a running stack above `level` keeps to itself, or is about to fork. A worker that went down and came
    /// up again for them would cost two wake-ups, so it waits for about as long.
    fn more_above(&self, me: &Stack, worker: &Worker, level: u8) -> Option<Work> {
        let least = level.checked_sub(1)?;
        let above = |worker: &Worker| worker.level() <= least && worker.hides_jobs();
        let others = || self.workers.iter().filter(|other| other.id != worker.id);
        if self.served.above(level) == 0 || !others().any(|other| above(other)) {
            return None;
        }
        worker.counters.scheduling.add(worker.lap());
        worker.set_level(NO_LEVEL);
        let end = clock::now() + clock::ticks(WAIT_ABOVE);
        let found = loop {
            if let Some(work) = self.steal_for_turn(me, worker, least) {
                break Some(work);
            }
            if clock::now() >= end
                || self.ready.levels() & !(u64::MAX << level) != 0
                || !others().any(|other| above(other))
            {
                break None;
            }
            hint::spin_loop();
        };
        worker.counters.searching.add(worker.lap());
        found
    }
}

/// What became of a worker that is to go back.
pub(crate) enum Restored {
    /// It has gone back.
    Done,
    /// It is still the calling stack's.
    Not,
    /// So it is, and has more urgent work.
    Found(Work),
}
