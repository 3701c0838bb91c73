//! Revoking: a worker is taken from a stack that runs user code, and restored to it.
//!
//! A stack in user code may lose its worker at any time (`Attention::revoke`). It does not notice until its next
//! scheduling point, where it parks until it gets a worker again. Workers are revoked
//!
//! - for an event that is more urgent than what the worker runs (`poll/poller.rs`): the kernel has preempted a
//!   processor already;
//! - for more urgent work of any kind, from a stack that *overruns*: it has lost its worker before and not
//!   come to a scheduling point since, so a request would wait for a millisecond ([`Job::revoke_overrun`]);
//! - for a turn of brief work of its level (`turns.rs`);
//! - by relief (`relief.rs`).
//!
//! # Restoring
//!
//! A worker that was revoked for more urgent work or a turn remembers from which stack, and one that was revoked for
//! another job finds the stack when it comes back to the first one (`overrunning.rs`). When nothing is left of what it
//! was revoked for, the worker goes back there, before it takes anything that is not more urgent than that stack: else
//! each urgent task would leave one more begun piece of work behind. Usually the stack has not noticed, and goes on. If
//! the stack has noticed, it is in the mugging queue, which comes first. A worker may be revoked for something urgent
//! and then for something more urgent, so it remembers a list; the last comes first.

use super::{relief::LONG, turns::runs_briefly};
use crate::{
    account::overruns::Name,
    protocol::{attention::Visit, fence},
    sched::{
        Work,
        job::Job,
        stack::{Me, Stack},
        worker::{NO_LEVEL, Worker, runs::Runs},
    },
    sys::{chaos, clock},
};
use std::{
    hint,
    sync::{Arc, atomic::Ordering},
};
use urgency_policy::level::LevelPolicy;

/// How long a worker waits, before it goes back to less urgent work, for forks of a more urgent stack that runs, in
/// nanoseconds: about what it costs to wake a thread.
const WAIT_ABOVE: f64 = 30_000.0;

/// Why a worker is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sched) enum Cause {
    /// For more urgent work: the worker is to be restored.
    Urgency,
    /// The thread sleeps in the kernel.
    Blocked,
    /// The stack has run for long while others of its level wait.
    Length,
    /// Brief work of its level is to have a turn: the worker is to be restored.
    Turn,
    /// Another job is to have the worker.
    Job,
}

/// A stack that was looked at while it was on a visit to user code.
#[derive(Clone, Copy)]
pub(in crate::sched) struct Seen<'a> {
    pub(super) stack: &'a Stack,
    pub(super) visit: Visit,
}

impl Job {
    /// Revokes the worker of the stack that holds `worker` now, if the stack is in user code. With `seen`: revokes the
    /// worker of the stack that was seen, as long as that visit lasts.
    pub(in crate::sched) fn revoke(
        &self,
        worker: &Worker,
        seen: Option<Seen<'_>>,
        cause: Cause,
    ) -> Option<&Worker> {
        let stack = self.holder_or_seen(worker, seen)?;
        // The stack may hold another worker by now than the one we looked at; that is the one we got.
        let revoked = &*self.core.workers[stack.attention.revoke(seen.map(|seen| seen.visit))?];
        chaos::delay();
        if !revoked.is_of(self) || cause == Cause::Turn && runs_briefly(revoked, stack) {
            return self.revoked_by_mistake(revoked, stack);
        }
        // As far as the stack is of this job still.
        let level = stack.level().min(self.least_urgent());
        let counters = self.at(revoked, level);
        let now = clock::now();
        // At the level that a snapshot may have shown; as far as a model of a stack has announced one.
        let announced = revoked.announced_level().min(self.least_urgent());
        let running = &self.at(revoked, announced).running;
        running.add(revoked.lap_at(now));
        counters
            .behind
            .add(self.seats.no_longer_wanted(revoked, level, revoked.since()));
        if self.pools.rings_are_light && revoked.runs() != Runs::Long {
            // The stack may push at this moment, and look at its word before that is visible. (With the barrier at each
            // turn a request beside forks of its level took 15 us longer.)
            fence::heavy();
        }
        self.flush_ring(stack);
        let stack = stack.arc();
        let ran = revoked.runs();
        // A poll that was revoked is not about to end: events are not left to the worker that is restored to it.
        stack
            .lost_in
            .show(Runs::at_scheduling_point(ran != Runs::Long));
        self.core.begins_to_overrun(&stack);
        stack.lost_worker_at.store(now, Ordering::Relaxed);
        self.overrunning.add(&stack, cause);
        let mut is_late = false;
        if matches!(cause, Cause::Urgency | Cause::Turn) {
            if cause == Cause::Turn {
                revoked.begin_turn(level, ran);
            } else if ran != Runs::Poll && level == self.least_urgent() {
                self.lower(&stack);
            }
            revoked.left_on(stack.cpu());
            // What an event wakes is brief, as a rule.
            revoked.set_runs(Runs::Poll);
            // An expiry would not lower the thread, and no worker wants what it forked. A worker that runs dry later
            // brings the timer forward, and so does this one if it begins something long.
            let wants_forks = || !stack.deque.seems_empty() && self.core.idle.is_any_hungry();
            is_late = !self.is_to_lower(&stack) && !wants_forks();
            revoked.push_revoked_from(stack);
        }
        if is_late {
            self.arm_late();
        } else {
            self.arm_relief();
        }
        Some(revoked)
    }

    /// Between the look at its worker and the revoking the stack had taken up another job, or begun a poll. The worker
    /// goes back, unless the stack has noticed, and then on to the next work of its job.
    #[cold]
    fn revoked_by_mistake(&self, revoked: &Worker, stack: &Stack) -> Option<&Worker> {
        if !stack.attention.restore(revoked.id)
            && let Some(job) = revoked.job()
        {
            revoked.set_level(NO_LEVEL);
            job.start(revoked);
        }
        None
    }

    /// As [`Job::revoke`], of a stack that is known not to come to a scheduling point soon: it is an overrun, and
    /// counted as a relief.
    pub(in crate::sched) fn revoke_counted(
        &self,
        worker: &Worker,
        seen: Option<Seen<'_>>,
        cause: Cause,
    ) -> Option<&Worker> {
        let stack = self.holder_or_seen(worker, seen)?;
        // As far as the stack is of this job.
        let level = stack.level().min(self.least_urgent());
        // Before the taking: the stack may come back at once. Its mark stays if it has one: the worker has no
        // other holder yet since an earlier taking.
        let mark = &stack.relieved_at;
        let marked = mark.compare_exchange(0, clock::now(), Ordering::Relaxed, Ordering::Relaxed);
        if cause == Cause::Job {
            let most = LONG.as_nanos() as u64;
            stack.beside.begin(stack.run_time(), most);
        }
        let Some(revoked) = self.revoke(worker, seen, cause) else {
            if marked.is_ok() {
                mark.store(0, Ordering::Relaxed);
                self.take_beside(stack, true);
            }
            return None;
        };
        self.at(revoked, level).reliefs.add(1);
        Some(revoked)
    }

    fn holder_or_seen<'a>(
        &'a self,
        worker: &'a Worker,
        seen: Option<Seen<'a>>,
    ) -> Option<&'a Stack> {
        match seen {
            Some(seen) => Some(seen.stack),
            None => self.core.holder(worker),
        }
    }

    /// Something at `level` became ready, and no worker is idle. Revokes a worker that serves something less urgent
    /// and whose stack overruns; of several, one that serves the least urgent.
    pub(crate) fn revoke_overrun(&self, level: u8) -> Option<&Worker> {
        if !self.core.does_any_overrun() || self.served.below(level) == 0 {
            return None;
        }
        let overruns = |worker: &&Worker| {
            let serves = worker.level();
            serves != NO_LEVEL
                && self.seats.of(worker).is_drawn_by(level, serves)
                && self.is_settled(worker)
                && self.core.holder(worker).is_some_and(|stack| {
                    stack.overruns.load(Ordering::Relaxed) && !stack.attention.is_revoked()
                })
        };
        let worker = if self.seats.is_on() {
            let workers = self.workers().filter(overruns);
            workers.max_by_key(|w| w.level())
        } else {
            self.some_below(level).find(overruns)
        };
        let worker = worker?;
        self.revoke_counted(worker, None, Cause::Urgency)
    }

    /// The stack comes to a scheduling point in the middle of `what`, or at its end. If it has lost its
    /// worker to relief since the last one, that is noted, whether the worker has come back or not.
    #[inline]
    pub(crate) fn no_longer_overruns(&self, me: Me<'_>, what: impl FnOnce() -> Name) {
        if me.overruns.load(Ordering::Relaxed) {
            self.core.no_longer_overruns(&me);
            self.note_overrun(me, what());
        }
    }

    /// If the worker was revoked from a stack for more urgent work or a turn, and there is no more of that, it goes
    /// back. Usually that stack's thread has not run since: it stood on the processor that the event
    /// preempted, and never notices.
    #[inline]
    pub(crate) fn restore(&self, me: Me<'_>, worker: &Worker) -> Restored {
        if worker.is_to_return() {
            self.restore_cold(me, worker)
        } else {
            Restored::Not
        }
    }

    #[cold]
    fn restore_cold(&self, me: Me<'_>, worker: &Worker) -> Restored {
        if self.has_pinned_for(worker) {
            return Restored::Not;
        }
        if let Some(work) = self.next_of_turn(me, worker) {
            return Restored::Found(work);
        }
        while let Some(stack) = worker.pop_revoked_from() {
            if stack.attention.is_revoked_from(worker.id) {
                return self.restore_to(me, worker, stack);
            }
            // It has noticed, and is in the mugging queue or has another worker.
            if is_on_its_way(&stack) && self.claim_stack(&stack) {
                return Restored::Found(Work::Resume(stack));
            }
        }
        Restored::Not
    }

    fn restore_to(&self, me: Me<'_>, worker: &Worker, stack: Arc<Stack>) -> Restored {
        // As far as the stack is of this job still.
        let level = stack.level().min(self.least_urgent());
        loop {
            // What is seen may be gone when it is to be taken, so it is taken: a worker that had seen something, found
            // it gone, and looked further would begin more of the stack's own level.
            let more = self.next_above(me, level).or_else(|| {
                // Down and up again costs more than a look.
                self.look();
                self.next_above(me, level)
            });
            if let Some(work) = more.or_else(|| self.more_above(me, worker, level)) {
                worker.push_revoked_from(stack);
                self.wake_rest(&me);
                return Restored::Found(work);
            }
            match self.try_restore(me, worker, &stack, level) {
                Some(true) => return Restored::Done,
                Some(false) => return Restored::Not,
                None => {}
            }
        }
    }

    /// Gives the worker to `stack`, unless more urgent work has come (`None`) or the stack has noticed that it lost its
    /// worker (`false`).
    fn try_restore(&self, me: Me<'_>, worker: &Worker, stack: &Stack, level: u8) -> Option<bool> {
        // While that stack is the holder, no worker looks into the ring of this one.
        self.flush_ring(&me);
        // All that a holder shows comes before the look at the levels: a thread that inserts more urgent work after
        // that look alerts the stack.
        worker.set_holder(stack);
        self.core.places.goes_to(&worker.place, stack.cpu());
        worker.set_level(level);
        self.shows(worker, level);
        worker.set_runs(stack.lost_in.get());
        worker.set_hides_forks(true);
        worker.counters.scheduling.add(worker.lap());
        // The bits alone may be stale: a level's bit is cleared only when a worker finds its pool empty. What is its
        // owner's for a while is nothing to wait for: beside many stacks with a task in their rings some always is.
        let offered = self.levels_offered();
        let is_drawn = self.seats.of(worker).abandon_for(offered, level).is_some();
        if !is_drawn && stack.attention.restore(worker.id) {
            self.take_beside(stack, true);
            self.raise_to_its_level(stack);
            return Some(true);
        }
        me.hold(worker);
        if is_drawn { None } else { Some(false) }
    }

    /// Forks that a running stack above `level` keeps to itself, or is about to fork. A worker that went down and came
    /// up again for them would cost two wake-ups, so it waits for about as long. A seat may draw it to no level above:
    /// in fair rounds. (It took a fork there after every third event, each fork had a stack of its own from then on,
    /// and two endless levels had 800 threads after a minute.)
    fn more_above(&self, me: Me<'_>, worker: &Worker, level: u8) -> Option<Work> {
        let seat = self.seats.of(worker);
        let least = (0..level)
            .rev()
            .find(|above| seat.is_drawn_by(*above, level))?;
        let above = |worker: &Worker| worker.level() <= least && worker.hides_forks();
        let others = || self.workers().filter(|other| other.id != worker.id);
        if self.served.above(level) == 0 || !others().any(&above) {
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
                || self.pools.ready.levels() & !(u64::MAX << level) != 0
                || !others().any(&above)
            {
                break None;
            }
            hint::spin_loop();
        };
        worker.counters.searching.add(worker.lap());
        found
    }
}

/// Whether the stack, which has noticed that it has no worker, was on its way into the mugging queue and can be claimed
/// now. (A worker that found nothing there yet began something new, beside one stack more that waited.)
fn is_on_its_way(stack: &Stack) -> bool {
    let can_go_on = || stack.suspension.is_resumable_after_writes();
    let is_inside = || stack.attention.is_inside() && !can_go_on();
    if !is_inside() {
        return false;
    }
    let end = clock::now() + clock::ticks(WAIT_ABOVE);
    while is_inside() && clock::now() < end {
        hint::spin_loop();
    }
    can_go_on()
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
