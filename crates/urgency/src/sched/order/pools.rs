//! The pools of a job, one for each level, and the words that tell a worker which of them to look into.
//!
//! A look for work begins with the *ready word* (`protocol/ready.rs`), which has a bit for each level. What a level has
//! is in its pool and in the rings of stacks. Where there are many workers, a pool is in shards, and a word of groups
//! (`protocol/groups.rs`), `ringing`, says in which shards and rings of a level something may be. A second word,
//! `offering`, names the groups of which any worker may take something (`close_look.rs`).
//!
//! An insertion writes the entry, then the group, then the level's bit, and a look reads them in the other order: it
//! finds each entry whose level is announced. What is hidden behind a bit that is being cleared, the look behind the
//! clearing finds (`protocol/ready.rs`).

use super::pool::{Pool, Shard, ShardList};
use crate::{
    protocol::{fence as asymmetric, groups::Groups, ready::Ready},
    sched::{poll_context, stack::Stack, worker::Worker},
    sys::{
        chaos,
        primitives::atomic::{AtomicU64, Ordering, fence},
    },
};
use std::{iter, mem};
use urgency_policy::level::{LevelPolicy, Prompt};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Pools {
    pub(crate) ready: Ready,
    of_levels: Box<[Pool]>,
    /// The workers whose stacks may have tasks of a level in their rings; the groups whose shards may have something.
    pub(in crate::sched) ringing: Groups,
    /// The groups that have something on offer; see `close_look.rs`. `None` where that is not worth a word.
    pub(super) offering: Option<Groups>,
    /// How many shards a pool has.
    shards: usize,
    /// Whether an entry in a ring needs no barrier; see `insert.rs`.
    pub(crate) rings_are_light: bool,
    /// The levels with another order than aging.
    with_queues: u64,
    /// The stamp of the entry with which each level was announced last; for statistics.
    announced_since: Box<[AtomicU64]>,
}

impl Pools {
    pub(in crate::sched) fn new(of_levels: Box<[Pool]>, workers: usize) -> Self {
        let levels = of_levels.len();
        let ringing = Groups::new(levels, workers);
        let others = (0..)
            .zip(&of_levels)
            .filter(|(_, it)| it.queues().is_some());
        Pools {
            ready: Ready::new(),
            offering: (levels > 1 && !ringing.is_one()).then(|| Groups::new(levels, workers)),
            ringing,
            shards: of_levels.first().map_or(1, Pool::shards),
            rings_are_light: levels == 1 && asymmetric::heavy(),
            with_queues: others.fold(0, |levels, (level, _)| levels | 1 << level),
            announced_since: (0..levels).map(|_| AtomicU64::new(0)).collect(),
            of_levels,
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.of_levels.len()
    }

    /// Whether there are several levels: most runtimes have one, and many paths ask.
    #[inline]
    pub(crate) fn are_several(&self) -> bool {
        self.len() > 1
    }

    /// The pool of a level.
    #[inline]
    pub(crate) fn at(&self, level: u8) -> &Pool {
        &self.of_levels[usize::from(level)]
    }

    /// All of them, the most urgent level's first.
    pub(in crate::sched) fn iter(&self) -> impl Iterator<Item = (u8, &Pool)> {
        (0..).zip(&self.of_levels)
    }

    /// Takes the pools out, to be dropped where the code of entries may run.
    pub(in crate::sched) fn take(&mut self) -> Box<[Pool]> {
        mem::take(&mut self.of_levels)
    }

    /// Whether a level has another order than aging.
    #[inline]
    pub(crate) fn has_queues(&self, level: u8) -> bool {
        self.with_queues >> level & 1 != 0
    }

    /// Whether pools are in shards.
    #[inline]
    pub(in crate::sched) fn has_shards(&self) -> bool {
        self.shards > 1
    }

    /// The number of the shard of a worker's group.
    #[inline]
    pub(in crate::sched) fn shard_of(&self, worker: &Worker) -> usize {
        if self.has_shards() {
            self.ringing.group_of(worker.id) % self.shards
        } else {
            0
        }
    }

    /// The number of any shard, another one each time.
    pub(in crate::sched) fn any_shard(&self) -> usize {
        poll_context::next_turn() as usize % self.shards
    }

    /// A level's shard of the worker's group.
    #[inline]
    pub(super) fn own_shard(&self, worker: &Worker, level: u8) -> &Shard {
        self.at(level).shard(self.shard_of(worker))
    }

    /// Whether no shard of a level's pool has anything.
    pub(in crate::sched) fn is_empty(&self, level: u8) -> bool {
        let pool = self.at(level);
        let is_in_others = || {
            let mut groups = self.ringing.at(level, 0);
            groups.any(|group| pool.is_in_other(group))
        };
        pool.is_first_empty() && !(self.has_shards() && is_in_others())
    }

    /// When the oldest entry of a level's pool became ready at the earliest, in ticks; never, if there is none.
    pub(in crate::sched) fn oldest(&self, level: u8) -> u64 {
        let announced = self.announced_since[usize::from(level)].load(Ordering::Relaxed);
        self.at(level).oldest().max(announced)
    }

    /// An entry with this stamp was put into the level's shard of the group. Ends with a full barrier.
    #[inline]
    pub(in crate::sched) fn announce_shard(&self, level: u8, number: usize, stamp: u64) {
        let is_first = if self.has_shards() {
            self.announce_group(number, level, || true)
        } else {
            self.ready.announce(level)
        };
        if is_first {
            self.announced_since[usize::from(level)].store(stamp, Ordering::Relaxed);
        }
    }

    /// Whether something that becomes ready at `level` now is what a worker would take next.
    pub(in crate::sched) fn is_next_at(&self, level: u8) -> bool {
        self.ready.levels() & (u64::MAX >> (63 - level)) == 0
    }

    /// The levels whose bits are set, the most urgent first, behind a full barrier.
    fn announced(&self) -> impl Iterator<Item = u8> + use<> {
        let mut levels = self.ready.levels_after_writes();
        iter::from_fn(move || {
            let level = Prompt.serve(levels)?;
            levels &= levels - 1;
            Some(level)
        })
    }

    /// The announced levels that have work.
    pub(in crate::sched) fn levels_of(&self, has_work: impl Fn(u8) -> bool) -> u64 {
        let levels = self.announced().filter(|&level| has_work(level));
        levels.fold(0, |found, level| found | 1 << level)
    }

    /// The most urgent of these.
    pub(in crate::sched) fn most_urgent_of(&self, has_work: impl Fn(u8) -> bool) -> Option<u8> {
        self.announced().find(|&level| has_work(level))
    }

    /// The stack, which holds `worker`, has something of `level` in its ring. Ends with a full barrier.
    #[inline]
    pub(in crate::sched) fn announce_ring(&self, stack: &Stack, worker: &Worker, level: u8) {
        let group = self.ringing.group_of(worker.id);
        self.announce_group(group, level, || stack.ring.len() > 1);
    }

    /// A group of workers has something of `level` in a ring, or in its shard, and it may be on offer. Ends with a full
    /// barrier. Whether the level was not announced before.
    #[inline]
    pub(in crate::sched) fn announce_group(
        &self,
        group: usize,
        level: u8,
        offers: impl FnOnce() -> bool,
    ) -> bool {
        chaos::delay();
        fence(Ordering::SeqCst);
        self.ringing.show_group(level, group);
        if let Some(offering) = &self.offering
            && offers()
        {
            offering.show_group(level, group);
        }
        self.ready.announce_in_order(level)
    }

    /// Whether others look into the ring of a stack that holds `worker`, as far as one can see without ordering.
    #[inline]
    pub(in crate::sched) fn is_announced(&self, worker: &Worker, level: u8) -> bool {
        self.ready.levels() >> level & 1 == 1 && self.ringing.shows(level, worker.id)
    }

    /// The groups that a look for work looks at.
    pub(super) fn looked_at(&self, is_close: bool) -> &Groups {
        let offering = self.offering.as_ref().filter(|_| !is_close);
        offering.unwrap_or(&self.ringing)
    }

    /// The lists of these groups' shards that have something, and the youngest stamp that each has given.
    pub(super) fn filled_lists(
        &self,
        level: u8,
        of: &Groups,
    ) -> impl Iterator<Item = ((usize, ShardList), u64)> {
        let pool = self.at(level);
        let groups = of.at(level, 0);
        let numbers = groups.filter(|&group| group < pool.shards());
        numbers.flat_map(|number| {
            let filled = pool.shard(number).filled();
            filled.map(move |(list, given)| ((number, list), given))
        })
    }
}
