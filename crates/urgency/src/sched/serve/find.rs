//! How a worker finds its next work.
//!
//! The level policy picks a level from the ready word. The order within the level (`aged.rs`, or `queues.rs`) gives an
//! entry of it. Stale entries are dropped on the way. If the level gives nothing, its bit is cleared, and a second look
//! behind the clearing finds what has slipped in (`protocol/ready.rs`). If no level gives anything, the worker searches
//! (`search.rs`).

use crate::protocol::attention::SHARE;
use crate::{
    protocol::deque::Stolen,
    sched::{
        StolenFork, Work,
        forks::hunger::each_level,
        job::Job,
        order::{
            aged::{LOOK_AROUND, LevelView},
            entry::Entry,
            queues::Queues,
        },
        poll_context,
        stack::{Me, Stack},
        worker::Worker,
    },
    sys::chaos,
};
use std::{ptr, sync::Arc};
use urgency_policy::{
    level::LevelPolicy,
    pool::{Aged, Arrival},
};

/// What became of a level's bit.
enum Cleared {
    /// Something had slipped in; look again.
    Hidden,
    /// There is nothing, or nothing that this worker may take.
    Fruitless,
}

impl Job {
    /// The oldest ready work of the level that the policy picks among these, if there is any.
    #[inline]
    pub(crate) fn next_ready(&self, me: Me<'_>, worker: &Worker, among: u64) -> Option<Work> {
        let pick = |levels| self.seats.of(worker).serve(levels & among);
        let is_other = |levels| pick(levels).is_some();
        self.next_picked(me, worker, (pick, is_other), |level| {
            self.miss_primary(worker, level);
        })
    }

    /// The oldest ready work of the level that `pick` names among the ready ones, if there is any; `found` hears of
    /// that level. `is_other`: the worker has something else to do if these are the levels that are left.
    #[inline(always)]
    fn next_picked(
        &self,
        me: Me<'_>,
        worker: &Worker,
        (pick, is_other): (impl Fn(u64) -> Option<u8>, impl Fn(u64) -> bool),
        found: impl FnOnce(u8),
    ) -> Option<Work> {
        let (mut fruitless, mut hidden) = (0, false);
        loop {
            let ready = self.pools.ready.levels() & !fruitless;
            let level = pick(ready)?;
            if let Some(work) = self.next_at(me, worker, level, hidden) {
                if hidden {
                    self.show_hidden();
                }
                self.seats.is_bound_for(worker, level);
                found(level);
                return Some(work);
            }
            let this = 1 << level;
            if self.has_looked_closely(worker, level) && is_other(ready & !this) {
                fruitless |= this;
                continue;
            }
            match self.clear(level) {
                Cleared::Hidden => hidden = true,
                Cleared::Fruitless => {
                    fruitless |= this;
                    self.looked_closely(worker, level);
                }
            }
        }
    }

    /// Nothing could be taken at `level`. If something has slipped in, a worker that went idle meanwhile, a
    /// stack that went to user code or an expiry of relief may have looked in vain at the cleared bit.
    fn clear(&self, level: u8) -> Cleared {
        self.clear_rings(level);
        let is_empty = self.pools.ready.clear(level, || !self.is_queued(level));
        if self.is_offered(level) {
            return Cleared::Hidden;
        }
        if !is_empty {
            self.watch_queued();
        }
        Cleared::Fruitless
    }

    /// Groups of workers without anything in their rings and shards are no longer looked at. `Ready::clear` must
    /// follow.
    fn clear_rings(&self, level: u8) {
        if self.pools.ringing.is_one() {
            return;
        }
        for group in self.pools.ringing.at(level, 0) {
            let has_some = || {
                self.pools.at(level).is_in_other(group)
                    || self
                        .stacks_in(group, level)
                        .any(|stack| !stack.ring.is_empty())
            };
            if !has_some() {
                self.pools.ringing.clear(level, group, has_some);
            }
        }
    }

    /// Work was taken that had been hidden under a cleared bit; there may be more.
    #[cold]
    fn show_hidden(&self) {
        match self.most_urgent_offered() {
            Some(level) => self.rest_inserted(level),
            None => self.watch_queued(),
        }
    }

    /// The next work of one level.
    #[inline]
    fn next_at(&self, me: Me<'_>, worker: &Worker, level: u8, is_close: bool) -> Option<Work> {
        if self.pools.has_queues(level)
            && let Some(queues) = self.pools.at(level).queues()
        {
            return self.next_in_queues(worker, level, queues);
        }
        LevelView::new(self, me, worker, level, is_close).next()
    }

    /// As [`Job::next_at`], under another policy than aging.
    #[cold]
    fn next_in_queues(&self, worker: &Worker, level: u8, queues: &Queues) -> Option<Work> {
        worker.next_turn();
        loop {
            let announce = || _ = self.pools.ready.announce(level);
            let (entry, mugged) = queues.pop(worker.id, announce)?;
            if let Some(work) = self.claim_entry(worker, level, entry, mugged) {
                return Some(work);
            }
        }
    }

    /// Work for which the worker leaves `level`, if there is any.
    pub(crate) fn next_above(&self, me: Me<'_>, level: u8) -> Option<Work> {
        let worker = me.worker();
        if !self.is_drawn(worker, level) {
            return None;
        }
        let pick = |levels| self.seats.of(worker).abandon_for(levels, level);
        self.next_picked(me, worker, (pick, |_| true), |_| ())
    }

    /// An entry is a hint: finds out whether it still stands for work, and takes that.
    pub(in crate::sched) fn claim_entry(
        &self,
        worker: &Worker,
        level: u8,
        entry: Entry,
        mugged: bool,
    ) -> Option<Work> {
        match entry {
            Entry::Task(task) if task.is_queued() => Some(Work::Task(task)),
            Entry::Task(task) => {
                // The last reference may be an entry, or run code of the program's where the runtime ends.
                Stack::outside_scheduler(|| drop(task));
                None
            }
            Entry::Stack(stack) => {
                if !self.claim_stack(&stack) {
                    return None;
                }
                if mugged {
                    self.at(worker, level).mugs.add(1);
                }
                Some(Work::Resume(stack))
            }
            Entry::Deque(stack) => self.steal_from_pool(worker, level, &stack),
            Entry::Fork(forked) => Some(Work::Fork(*forked)),
        }
    }

    /// Asks for the right to grant a stack of this job a worker.
    pub(in crate::sched) fn claim_stack(&self, stack: &Arc<Stack>) -> bool {
        if !stack.is_of(self) || !stack.suspension.claim() {
            return false;
        }
        if let Some(other) = stack.job()
            && !ptr::eq(&*other, self)
        {
            // It has taken up another job between the two, and waits there.
            stack.suspension.abandon();
            other.insert_abandoned(stack.clone());
            return false;
        }
        true
    }

    /// Takes the oldest fork of a deque from the pool; the deque goes to the tail if it has more.
    fn steal_from_pool(&self, worker: &Worker, level: u8, stack: &Arc<Stack>) -> Option<Work> {
        stack.pooled.leave(level);
        chaos::delay();
        // Asked under the deque's lock: while a fork lies there, its level is the stack's, and so is its job. The entry
        // may be of a time when the stack ran something else.
        let admit = || stack.level() == level && stack.is_of(self);
        let (stolen, origin) = stack.steal(false, admit);
        match stolen {
            Stolen::Forked(taken, more) => {
                self.leave_rest(worker, stack, level, more);
                self.at(worker, level).steals.add(1);
                Some(Work::Fork(StolenFork::new(taken, origin)))
            }
            Stolen::Contended | Stolen::Empty => {
                // Its owner or another thief is at it, or its forks are of another level. The entry goes back, whether
                // a worker is hungry or not: if the stack has stopped, no other thread makes one.
                if stack.deque.seems_public() {
                    self.insert_deque(stack);
                }
                None
            }
            Stolen::OnlyPrivate => None,
        }
    }

    /// The next work for a worker, out of this inbox, too. `None`: there is none, and the worker was
    /// released.
    pub(crate) fn find(&self, me: Me<'_>, worker: &Worker, inbox: Option<usize>) -> Option<Work> {
        if let Some(forked) = self.pinned_fork(worker, inbox) {
            return Some(Work::Fork(forked));
        }
        if let Some(work) = self.next_ready(me, worker, u64::MAX) {
            self.wake_next(worker, &me);
            return Some(work);
        }
        self.find_cold(me, worker, inbox)
    }

    /// There may be more work than the worker took, in the pools or in the ring of `stack`: a worker with work wakes
    /// the next. What is in the rings of others is theirs to see to.
    ///
    /// An insertion wakes a worker itself, or leaves that to a searcher, which looks at all shards in the end, as a
    /// worker does that was started ([`Job::wake_rest`]). So a worker that was busy before looks at its own shard, and
    /// at all of them now and then.
    #[inline]
    pub(crate) fn wake_next(&self, worker: &Worker, stack: &Stack) {
        if self.is_next_wanted() {
            self.wake_next_cold(Some(worker), stack);
        }
    }

    /// As [`Job::wake_next`], by a worker that was started, or has searched.
    pub(crate) fn wake_rest(&self, stack: &Stack) {
        if self.is_next_wanted() {
            self.wake_next_cold(None, stack);
        }
    }

    #[inline]
    fn is_next_wanted(&self) -> bool {
        self.core.idle.is_any_hungry() && (self.searchers.count() == 0 || self.seats.waits())
    }

    #[inline(never)]
    fn wake_next_cold(&self, busy: Option<&Worker>, stack: &Stack) {
        let is_seldom = |worker: &&Worker| !worker.turn().is_multiple_of(LOOK_AROUND);
        let is_offered = if self.seats.waits() {
            self.is_offered_to_idle()
        } else if stack.offers_task() {
            true
        } else if let Some(worker) = busy.filter(|_| self.pools.has_shards()).filter(is_seldom) {
            let own = self.pools.shard_of(worker);
            let is_left = |level: u8| !self.pools.at(level).shard(own).is_empty();
            each_level(self.pools.ready.levels()).any(is_left)
        } else {
            let is_left = |level: u8| !self.pools.is_empty(level);
            self.pools.most_urgent_of(is_left).is_some()
        };
        if is_offered {
            self.start_idle();
        }
    }

    /// The most urgent level at which anything is ready.
    pub(crate) fn most_urgent_queued(&self) -> Option<u8> {
        self.pools.most_urgent_of(|level| self.is_queued(level))
    }

    /// Whether work as urgent as what `me` runs, or more urgent, waits for a worker.
    pub(crate) fn is_wanted_elsewhere(&self, me: Me<'_>) -> bool {
        let queued = self.most_urgent_queued();
        queued.is_some_and(|queued| queued <= me.level())
    }

    /// The most urgent level at which any worker may take something.
    pub(crate) fn most_urgent_offered(&self) -> Option<u8> {
        self.pools.most_urgent_of(|level| self.is_offered(level))
    }

    /// The levels at which anything is ready.
    pub(crate) fn levels_queued(&self) -> u64 {
        self.pools.levels_of(|level| self.is_queued(level))
    }

    /// The levels at which any worker may take something.
    pub(crate) fn levels_offered(&self) -> u64 {
        self.pools.levels_of(|level| self.is_offered(level))
    }

    /// The scheduling point's answer to hunger. `published`: forks were made public already.
    pub(crate) fn share(&self, me: Me<'_>, published: bool) {
        let published = published || me.deque().publish(false);
        if !self.is_anybody_hungry(me.level()) {
            // It was a joiner that wants to leap, or a searcher that found something else. An entry in the pool
            // would be stale when the joiner has leapt, and make it believe that others want its worker. A searcher to
            // come sees public forks of running stacks without an entry, and a stack that stops makes one.
            return;
        }
        if published {
            self.seats.no_longer_missed(me.level());
            self.noting_wake_up(me, || self.insert_deque(&me));
        } else {
            me.attention.request(SHARE);
        }
    }

    /// The stack gives its worker away: all its forks become stealable. If it is in a poll, that is not about to end.
    /// (What such a stack made ready, itself included, was left to the end of its poll, and so to relief. After a
    /// shutdown there is none: in 1 of 287 runs the task that had shut its runtime down waited for a worker for good.)
    pub(crate) fn share_all(&self, me: Me<'_>) {
        poll_context::lasts();
        self.flush_ring(&me);
        if me.deque.bottom() == 0 {
            return;
        }
        if me.deque().publish(true) {
            self.insert_deque_as(&me, Arrival::Suspended);
        }
        if self.core.relief_timer.is_late() {
            // This stack will not come to them soon.
            self.arm_relief();
        }
    }
}
