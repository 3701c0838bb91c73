//! The default order within a level, aging, as a worker of the runtime looks at it.
//!
//! The order is policy code: [`Aged::next`] says which look comes first, and `urgency_policy::pool::comes_first` when
//! the own ring goes before the pool. The simulator serves the same sequence (`urgency-sim/tests/same_order.rs`). Here
//! are the looks: the pool's two queues (`pool.rs`), the ring of the calling stack, and the rings of others. All of
//! them are inlined into [`Job::next_ready`]; the order itself is no code at run time.
//!
//! Where there are many cores the pool is in shards, and the shard of the worker's own group stands for the pool here.
//! The worker looks at all shards when nothing is left, and before it gets ahead of them (`pace.rs`). Then it takes
//! from the list that has given the oldest.
//!
//! The rings of others are looked at in two cases: nothing else is left, or it is time to look whether a task there is
//! much older than what this worker would run. Without the second case a worker that is never done would never see one.

use super::{
    entry::Entry,
    pool::{Pool, Shard},
};
use crate::{
    sched::{
        Work,
        job::Job,
        stack::{Me, Stack},
        worker::Worker,
    },
    sys::clock,
    tasks::TaskRef,
};
use std::ptr;
use urgency_policy::{
    level::LevelPolicy,
    pool::{Aged, Queue},
};

/// A worker looks into the rings of all workers once in this time, in nanoseconds, and takes a task that has waited
/// for so much longer than its own. Each look takes half a dozen cache lines from their owners: at every 16th
/// turn and for any difference, it doubled the cost of a yield.
pub(crate) const AGE_GAP: f64 = 50_000.0;

/// How many groups of workers with something in their rings one look takes the oldest from.
const GROUPS_PER_LOOK: u32 = 2;

/// Every so many turns a worker asks whether that time has passed.
pub(in crate::sched) const LOOK_AROUND: u32 = 64;

/// One level as this worker looks at it.
pub(in crate::sched) struct LevelView<'a> {
    job: &'a Job,
    me: Me<'a>,
    worker: &'a Worker,
    level: u8,
    pool: &'a Pool,
    /// Its own group's.
    shard: &'a Shard,
    /// The ring of `me` has tasks of this level, if of any.
    has_ring: bool,
    /// It looks into all rings, and not at what is on offer alone.
    is_close: bool,
}

impl<'a> LevelView<'a> {
    #[inline(always)]
    pub(in crate::sched) fn new(
        job: &'a Job,
        me: Me<'a>,
        worker: &'a Worker,
        level: u8,
        is_close: bool,
    ) -> Self {
        let pool = job.pools.at(level);
        LevelView {
            job,
            me,
            worker,
            level,
            pool,
            shard: job.pools.own_shard(worker, level),
            has_ring: me.level() == level,
            is_close,
        }
    }

    /// Keeps in mind what was taken from a shard.
    #[inline(always)]
    fn keep_pace(&self, taken: Option<(u64, Entry)>) -> Option<Entry> {
        let (stamp, entry) = taken?;
        if self.job.pools.has_shards() {
            self.job.notes.at(self.worker, self.level).pace.takes(stamp);
        }
        Some(entry)
    }

    /// Before the worker takes more than it may without a look: an abandoned stack of its own shard, or from a list
    /// that lags.
    #[cold]
    fn catch_up(&mut self) -> Option<Work> {
        while let Some(abandoned) = self.pop(Queue::Mugging) {
            if let Some(work) = self.claim(abandoned, Queue::Mugging) {
                return Some(work);
            }
        }
        self.next_in_shards(true)
    }

    /// Takes from the list that has given the oldest, of all shards: any, or one that lags.
    #[cold]
    fn next_in_shards(&mut self, must_lag: bool) -> Option<Work> {
        loop {
            let of = match must_lag {
                true => &self.job.pools.ringing,
                false => self.job.pools.looked_at(self.is_close),
            };
            let lists = self.job.pools.filled_lists(self.level, of);
            let ((number, list), _) = match must_lag {
                true => self
                    .job
                    .notes
                    .at(self.worker, self.level)
                    .pace
                    .look(lists)?,
                false => lists.min_by_key(|&(_, given)| given)?,
            };
            // Another worker may have been first, or the entry is stale: the next look tells.
            let taken = self.pool.shard(number).pop_of(list);
            let entry = self.keep_pace(taken);
            if let Some(work) = entry.and_then(|entry| self.claim(entry, list.queue())) {
                return Some(work);
            }
        }
    }
}

impl Aged for LevelView<'_> {
    type Entry = Entry;
    type Work = Work;

    #[inline(always)]
    fn pop(&mut self, queue: Queue) -> Option<Entry> {
        self.keep_pace(self.shard.pop(queue))
    }

    #[inline(always)]
    fn claim(&mut self, entry: Entry, from: Queue) -> Option<Work> {
        let was_abandoned = from == Queue::Mugging;
        self.job
            .claim_entry(self.worker, self.level, entry, was_abandoned)
    }

    #[inline(always)]
    fn own_goes_first(&mut self) -> bool {
        self.has_ring && self.shard.is_younger_than(self.me.ring.oldest())
    }

    #[inline(always)]
    fn pop_own(&mut self) -> Option<Work> {
        if !self.has_ring {
            return None;
        }
        let task = self.me.pop_ring()?;
        self.job.took_from_ring(self.worker, self.level, &task);
        Some(Work::Task(task))
    }

    #[inline(always)]
    fn much_older_elsewhere(&mut self) -> Option<Work> {
        if self.job.must_look_at_shards(self.worker, self.level)
            && let Some(work) = self.catch_up()
        {
            return Some(work);
        }
        if !self.worker.next_turn().is_multiple_of(LOOK_AROUND)
            || !self.worker.is_look_around_due(clock::ticks(AGE_GAP))
        {
            return None;
        }
        let gap = clock::ticks(AGE_GAP);
        let task = self
            .job
            .oldest_in_rings(self.me, self.worker, self.level, (gap, true));
        task.map(Work::Task)
    }

    #[inline(always)]
    fn oldest_elsewhere(&mut self) -> Option<Work> {
        if self.job.pools.has_shards()
            && let Some(work) = self.next_in_shards(false)
        {
            return Some(work);
        }
        let task = self
            .job
            .oldest_in_rings(self.me, self.worker, self.level, (0, self.is_close));
        task.map(Work::Task)
    }
}

impl Job {
    /// The usual case of a worker that is busy with tasks, in registers: its own ring has what is next.
    #[inline]
    pub(crate) fn next_in_own_ring(&self, me: Me<'_>, worker: &Worker) -> Option<TaskRef> {
        let level = self.seats.of(worker).serve(self.pools.ready.levels())?;
        if level != me.level()
            || worker.turn().wrapping_add(1).is_multiple_of(LOOK_AROUND)
            || self.pinned.waits_in(self.core.inbox_of(me, worker))
            || self.must_look_at_shards(worker, level)
            || !self
                .pools
                .own_shard(worker, level)
                .is_younger_than(me.ring.oldest())
        {
            return None;
        }
        let task = me.pop_ring()?;
        self.took_from_ring(worker, level, &task);
        worker.next_turn();
        self.wake_next(worker, &me);
        Some(task)
    }

    /// Whether a worker has taken as much as it may without a look at all shards.
    #[inline]
    fn must_look_at_shards(&self, worker: &Worker, level: u8) -> bool {
        self.pools.has_shards() && self.notes.at(worker, level).pace.must_look()
    }

    #[inline]
    fn took_from_ring(&self, worker: &Worker, level: u8, task: &TaskRef) {
        if self.pools.has_shards() {
            self.notes.at(worker, level).pace.takes(task.ready_since());
        }
    }

    /// Takes from the ring with the oldest head, of those at `level` in two groups of workers, others at each look, if
    /// it is older than the pool, and on offer. Another stack's head must be older by `gap` ticks than the own one.
    #[cold]
    fn oldest_in_rings(
        &self,
        me: Me<'_>,
        worker: &Worker,
        level: u8,
        (gap, is_close): (u64, bool),
    ) -> Option<TaskRef> {
        let age = |stack: &&Stack| {
            let since = stack.ring.oldest();
            if ptr::eq(*stack, me.shared()) {
                since
            } else {
                since.saturating_add(gap)
            }
        };
        let mut groups_left = GROUPS_PER_LOOK;
        let mut oldest: Option<&Stack> = None;
        for group in self.pools.looked_at(is_close).at(level, worker.next_look()) {
            let stacks = self.stacks_in(group, level);
            let offering =
                stacks.filter(|stack| ptr::eq(*stack, me.shared()) || stack.offers_task());
            let Some(here) = offering.min_by_key(age) else {
                if !is_close {
                    self.offers_nothing(group, level);
                }
                continue;
            };
            oldest = oldest.into_iter().chain([here]).min_by_key(age);
            groups_left -= 1;
            if groups_left == 0 {
                break;
            }
        }
        let oldest = oldest?;
        let shard = self.pools.own_shard(worker, level);
        if !shard.is_younger_than(oldest.ring.oldest()) {
            return None;
        }
        let task = oldest.pop_ring()?;
        self.took_from_ring(worker, level, &task);
        if !task.is_of(self) {
            // That stack has taken up another job meanwhile.
            task.put_back();
            return None;
        }
        if oldest.offers_task() {
            self.wake_next(worker, oldest);
        }
        Some(task)
    }
}
