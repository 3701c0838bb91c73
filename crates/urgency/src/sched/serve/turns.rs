//! Turns: how a stack gives its worker away for brief work of its level, and how the worker takes that. When a turn may
//! begin is in `rescue/turns.rs`, with the rules.
//!
//! Here are the turns as well that code gives by itself: when it yields, or wants room in a queue.

use crate::{
    protocol::attention::CHECK_IN,
    sched::{
        Work,
        core::{RELIEF_PERIOD, period},
        job::Job,
        order::{entry::Entry, lists::List},
        poll_context,
        rescue::{
            relief::LONG,
            turns::{has_rested, is_over},
        },
        stack::Me,
        worker::{Worker, runs::Runs},
    },
    sys::primitives::atomic::Ordering,
    tasks::TaskRef,
};
use std::{iter, ptr, time::Duration};

/// How many turns a stack gives whose future yields, or which lends its thread: one takes one entry, and the stack goes
/// on before newer ones. Bounded, for an entry that yields itself is ready again at once.
pub(in crate::sched) const MOST_TURNS: u32 = 64;

impl Job {
    /// Rules 3, 5 and 6, at a scheduling point.
    pub(crate) fn let_equals_first(&self, me: Me<'_>) {
        let level = me.level();
        let pool = self.pools.at(level);
        if pool.queues().is_some() {
            return;
        }
        let worker = me.worker();
        let is_long = || has_run(me, RELIEF_PERIOD);
        let runs = Runs::at_scheduling_point(poll_context::polls_task());
        if self.has_brief(me, level, runs)
            && is_long()
            && has_rested(worker)
            && self.may_begin_turn(level)
        {
            self.flush_ring(&me);
            if let Some(work) = self.next_brief(me, worker, level) {
                worker.begin_turn(level, runs);
                let is_on_top = work.is_poll() && self.lends(me);
                self.leave_for(me, work, MOST_TURNS);
                if is_on_top {
                    me.worker().brief_turn.took(false, period());
                }
            }
        }
        if pool.has_others()
            && has_run(me, LONG)
            && let Some(lock) = self.begins_long.try_lock()
        {
            let work = self.next_unbegun(me, level);
            if let Some(work) = work.or_else(|| self.next_abandoned(me, level)) {
                self.abandon_under(me, work, lock);
            }
        }
    }

    /// Rule 6. The forks of running stacks are no reason: these come to them. (They go to the tail of the pool, as
    /// where a thief leaves some.)
    fn next_unbegun(&self, me: Me<'_>, level: u8) -> Option<Work> {
        let (worker, pool) = (me.worker(), self.pools.at(level));
        let begun = || pool.abandoned() + self.ahead();
        if me.number().is_some() || begun() >= self.core.workers.len() {
            return None;
        }
        let own = self.pools.shard_of(worker);
        let pop = || {
            pool.pop_of(own, List::Long)
                .or_else(|| pool.pop_of(own, List::Computing))
        };
        let mut entries = iter::from_fn(pop).take(pool.len());
        entries.find_map(|entry| match entry {
            Entry::Deque(stack) if self.stacks_at(level).any(|it| ptr::eq(it, &*stack)) => {
                stack.pooled.leave(level);
                if stack.deque.seems_public() {
                    self.insert_deque(&stack);
                }
                None
            }
            entry => self.claim_entry(worker, level, entry, false),
        })
    }

    /// Rule 5.
    fn next_abandoned(&self, me: Me<'_>, level: u8) -> Option<Work> {
        let (worker, pool) = (me.worker(), self.pools.at(level));
        let own = self.pools.shard_of(worker);
        let mut entries = iter::from_fn(|| pool.pop_abandoned(own));
        entries.find_map(|entry| self.claim_entry(worker, level, entry, true))
    }

    /// Whether something waits at this level that may have a turn in the place of this: in the ring of `me`, or in the
    /// pool.
    fn has_brief(&self, me: Me<'_>, level: u8, runs: Runs) -> bool {
        me.level() == level && !me.ring.is_empty() || self.has_for_turn(level, runs)
    }

    /// The next brief work of this level: of the own ring, the own shard, or another one.
    fn next_brief(&self, me: Me<'_>, worker: &Worker, level: u8) -> Option<Work> {
        let (pool, own) = (self.pools.at(level), self.pools.shard_of(worker));
        let pop_own = || (me.level() == level).then(|| me.pop_ring()).flatten();
        if pool.shard(own).is_brief_younger_than(me.ring.oldest())
            && let Some(task) = pop_own()
        {
            return Some(Work::Task(task));
        }
        let claim = |list| {
            let mut entries = iter::from_fn(|| pool.pop_of(own, list));
            entries.find_map(|entry| self.claim_entry(worker, level, entry, false))
        };
        let work = claim(List::Brief).or_else(|| pop_own().map(Work::Task));
        let takes_computing = worker.brief_turn.takes_computing();
        work.or_else(|| takes_computing.then(|| claim(List::Computing)).flatten())
    }

    /// The next work of the turn that the worker has, if it has one.
    pub(in crate::sched) fn next_of_turn(&self, me: Me<'_>, worker: &Worker) -> Option<Work> {
        let level = worker.brief_turn.level()?;
        let above = self.pools.ready.levels() & !(u64::MAX << level);
        let may = above == 0 && usize::from(level) < self.pools.len();
        let look = || self.next_brief(me, worker, level);
        let ran = match worker.brief_turn.takes_computing() {
            true => Runs::Long,
            false => Runs::Poll,
        };
        let work = (may && self.has_brief(me, level, ran)).then(look).flatten();
        worker.brief_turn.took(work.is_some(), period());
        if work.is_some() {
            self.wake_next(worker, &me);
        }
        work
    }

    /// Leaves the stack for work in hand. On a provided thread there is no other thread for it: it runs on top. So does
    /// a poll on a stack that lends its thread, and what comes after it, so many polls at most.
    fn leave_for(&self, me: Me<'_>, work: Work, most: u32) -> bool {
        match work {
            work if self.lends(me) => {
                let other = self.poll_on_top(me, Some(work), most);
                other.is_none_or(|work| self.abandon(me, work))
            }
            work @ (Work::Task(_) | Work::Fork(_)) if me.number().is_some() => {
                self.run_here(me, work);
                true
            }
            work => self.abandon(me, work),
        }
    }

    /// Lets ready work of this stack's level, or of a more urgent one, go first. Returns whether there was any.
    pub(crate) fn give_turn(&self, me: Me<'_>) -> bool {
        if me.number().is_some() {
            return self.take_turn(me);
        }
        if self
            .most_urgent_queued()
            .is_none_or(|queued| queued > me.level())
        {
            return false;
        }
        let Some(work) = self.next_ready(me, me.worker(), up_to(me.level())) else {
            return false;
        };
        self.leave_for(me, work, 1)
    }

    /// As [`Job::give_turn`], and if nothing is in a pool, for a fork that a running stack keeps to itself: it may sit
    /// in a long leaf, or in a call that blocks, and no other stack comes for it while no worker is idle.
    pub(crate) fn give_turn_or_steal(&self, me: Me<'_>) -> bool {
        if self.give_turn(me) {
            return true;
        }
        let Some(work) = self.steal_for_turn(me, me.worker(), me.level()) else {
            return false;
        };
        self.leave_for(me, work, 1)
    }

    /// As [`Job::give_turn`] on a provided thread: there is no other thread for the work.
    fn take_turn(&self, me: Me<'_>) -> bool {
        let worker = me.worker();
        let inbox = self.core.inbox_of(me, worker);
        let pinned = self.pinned_fork(worker, inbox).map(Work::Fork);
        let work = pinned.or_else(|| self.next_ready(me, worker, up_to(me.level())));
        work.is_some_and(|work| self.leave_for(me, work, 1))
    }
}

impl Me<'_> {
    /// The stack goes on, or begins a closure or a fork, at this time.
    pub(in crate::sched) fn runs_from(self, now: u64) {
        self.runs_since.store(now, Ordering::Relaxed);
    }

    /// A poll of `task` is pending. If it took long, the next one is not taken for brief. The clock is read only where
    /// something says that the poll may have taken long.
    #[inline]
    pub(in crate::sched) fn notes_length(self, task: &TaskRef) {
        let attention = &self.attention;
        let seems_long = attention.is_pending(CHECK_IN) || attention.is_revoked();
        if seems_long || !self.worker().is_brief() || task.computes() {
            let is_long = has_run(self, RELIEF_PERIOD);
            if is_long && self.may_be_stopped() {
                return;
            }
            task.set_computes(is_long);
            if is_long {
                poll_context::ends_late();
            }
        }
    }
}

/// Whether the stack has had a worker for this time, for the piece of work that it runs.
fn has_run(me: Me<'_>, time: Duration) -> bool {
    let is_young_poll = poll_context::polls_task() && !is_over(time, poll_context::ready_stamp());
    !is_young_poll && is_over(time, me.runs_since.load(Ordering::Relaxed))
}

/// This level and the more urgent ones.
fn up_to(level: u8) -> u64 {
    u64::MAX >> (63 - level)
}
