//! The pool of one level: all its ready contexts, in two FIFO queues for each group of cores.
//!
//! - The *mugging queue* holds abandoned stacks, which can go on at once; always looked at first, so
//!   that being abandoned does not cost a context its age.
//! - The *regular queue* holds everything else in the order in which it became ready: tasks, stacks whose wait is over,
//!   and deques with public forks.
//!
//! That order is the aging heuristic of Prompt I-Cilk. It is policy code (`urgency_policy::pool::Aging`): the queues
//! here do what it says, and `aged.rs` looks at them in its order. A queue is `crossbeam`'s `SegQueue`: positions in a
//! list of blocks, as in the paper, and no scheme of epochs to free the blocks.
//!
//! The regular queue is three lists: of what is *brief* as a rule, of polls that are not, and of what begins a long
//! piece of work (`lists.rs`).
//! Together they are in order but for one entry of each worker.
//!
//! # Shards
//!
//! Up to eight cores share one pair of queues. Where there are more, each group of eight
//! workers has a pair, its *shard*, and a worker takes from the others only when it has nothing, or is ahead: `pace.rs`
//! says when, and proves by how much work an entry may be overtaken. What comes from one worker's stack (a stack that
//! is abandoned, a deque with public forks) goes to the shard of that worker. All else goes to the shards in turn, by a
//! counter of the inserting thread: it has no place where it would run better, for what a poll makes ready is in its
//! stack's ring. A group whose shard, or a ring, may have something shows that in the level's word (`Job::ringing`).
//! There are as many groups as can run at once: workers beyond the processors use the shards of others.
//!
//! That is the default. Under another order the level has the queues of `queues.rs` instead, and
//! neither these two nor rings; the default pays one branch for the choice.

use super::{
    entry::Entry,
    lists::{List, Lists, counts},
    queues::Queues,
};
use crate::{
    protocol::groups::groups_of_cores,
    sched::stack::Stack,
    sys::{
        clock,
        primitives::{Queued, atomic::Ordering},
        thread,
    },
    tasks::TaskRef,
};
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use std::{iter, sync::Arc};
use urgency_policy::pool::{
    Aging, AnyOrder, Arrival, Kind, Layout, Place, PoolPolicy, Queue, comes_first,
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Pool {
    first: Shard,
    /// The shards of the other groups.
    others: Box<[CachePadded<Shard>]>,
    /// Where entries are under another order. On a cache line that is never written: all threads read it.
    queues: Option<Box<Queues>>,
}

/// The queues of one group of cores.
#[derive(Debug)]
pub(crate) struct Shard {
    mugging: SegQueue<Arc<Stack>>,
    regular: Lists<Entry>,
}

/// One of the places of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardList {
    Abandoned,
    Regular(List),
}

impl ShardList {
    /// Of which of the policy's two queues it is.
    pub(crate) fn queue(self) -> Queue {
        match self {
            ShardList::Abandoned => Queue::Mugging,
            ShardList::Regular(_) => Queue::Regular,
        }
    }
}

impl Pool {
    /// The pool of a level, with its order and the layout that was checked.
    pub(crate) fn new((order, layout): (&AnyOrder, Layout), level: usize, workers: usize) -> Self {
        let is_aging = order.kind() == Some(Kind::Aging);
        let shards = groups_of_cores(workers, thread::processors());
        Pool {
            first: Shard::new(shards == 1),
            others: (1..shards)
                .map(|_| CachePadded::new(Shard::new(false)))
                .collect(),
            queues: (!is_aging).then(|| Box::new(Queues::new((order, layout), level, workers))),
        }
    }

    /// The queues of another order than aging.
    #[inline]
    pub(crate) fn queues(&self) -> Option<&Queues> {
        self.queues.as_deref()
    }

    /// How many shards there are.
    pub(crate) fn shards(&self) -> usize {
        1 + self.others.len()
    }

    /// The shard of a group of cores.
    #[inline]
    pub(crate) fn shard(&self, number: usize) -> &Shard {
        match number {
            0 => &self.first,
            number => &self.others[number - 1],
        }
    }

    /// Whether something is here that is brief as a rule.
    pub(crate) fn has_brief(&self) -> bool {
        self.each_shard().any(Shard::has_brief)
    }

    /// Whether a task is here whose last poll took long.
    pub(crate) fn has_computing(&self) -> bool {
        let mut shards = self.each_shard();
        shards.any(|shard| shard.regular.has(List::Computing))
    }

    /// Whether something is here that is not brief as a rule, or goes first: an abandoned stack.
    #[cold]
    pub(crate) fn has_others(&self) -> bool {
        self.each_shard()
            .any(|shard| shard.regular.has_others() || shard.has_abandoned())
    }

    /// Takes the oldest of one list: out of this shard first.
    pub(crate) fn pop_of(&self, own: usize, list: List) -> Option<Entry> {
        let mut filled = self.shards_from(own).filter(|it| it.regular.has(list));
        let (_, entry) = filled.find_map(|shard| shard.regular.pop_of(list))?;
        Some(entry)
    }

    /// How many stacks are here that were abandoned.
    pub(crate) fn abandoned(&self) -> usize {
        self.each_shard().map(|shard| shard.mugging.len()).sum()
    }

    /// Takes the stack that was abandoned first: out of this shard first.
    pub(crate) fn pop_abandoned(&self, own: usize) -> Option<Entry> {
        let mut shards = self.shards_from(own);
        let (_, entry) = shards.find_map(|shard| shard.pop(Queue::Mugging))?;
        Some(entry)
    }

    fn shards_from(&self, own: usize) -> impl Iterator<Item = &Shard> {
        let others = (0..self.shards()).filter(move |number| *number != own);
        iter::once(own).chain(others).map(|it| self.shard(it))
    }

    fn each_shard(&self) -> impl Iterator<Item = &Shard> {
        iter::once(&self.first).chain(self.others.iter().map(|shard| &**shard))
    }

    /// When the oldest entry became ready at the earliest, in ticks; never, if there is none.
    pub(crate) fn oldest(&self) -> u64 {
        if let Some(queues) = &self.queues {
            return queues.oldest();
        }
        let oldest = self.each_shard().map(|shard| match shard.has_abandoned() {
            // Of abandoned stacks no time is known.
            true => shard.regular.oldest_given(),
            false => shard.regular.oldest(),
        });
        oldest.min().unwrap_or(u64::MAX)
    }

    /// Takes the tasks out, and leaves the rest.
    pub(crate) fn drain_tasks(&self, mut take: impl FnMut(TaskRef)) {
        if let Some(queues) = &self.queues {
            for entry in queues.drain() {
                match entry {
                    Entry::Task(task) => take(task),
                    other => drop(queues.push(None, Arrival::Resumable, other)),
                }
            }
            return;
        }
        for shard in self.each_shard() {
            shard.regular.retain(|entry| match entry {
                Entry::Task(task) => {
                    take(task);
                    None
                }
                other => Some(other),
            });
        }
    }

    /// Whether the first shard has nothing, or what is there in its place under another order.
    pub(crate) fn is_first_empty(&self) -> bool {
        match &self.queues {
            Some(queues) => queues.is_empty(),
            None => self.first.is_empty(),
        }
    }

    /// Whether this group's shard has something, and is not the first.
    pub(crate) fn is_in_other(&self, group: usize) -> bool {
        let other = group.checked_sub(1).and_then(|at| self.others.get(at));
        other.is_some_and(|shard| !shard.is_empty())
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        if let Some(queues) = &self.queues {
            return queues.len();
        }
        let len = |shard: &Shard| shard.mugging.len() + shard.regular.len();
        self.each_shard().map(len).sum()
    }
}

impl Shard {
    fn new(is_only: bool) -> Self {
        Shard {
            mugging: SegQueue::new(),
            regular: Lists::new(clock::now(), is_only),
        }
    }

    /// Puts an entry where aging places this arrival. Returns when it became ready.
    #[inline]
    pub(crate) fn push(&self, arrival: Arrival, entry: Entry) -> u64 {
        let (list, entry) = match (Aging.place(arrival, 0), entry) {
            (Place::Tail(Queue::Mugging), Entry::Stack(stack)) => {
                let since = stack.ready_since.load(Ordering::Relaxed);
                counts(&self.mugging, Queued::Pushed);
                self.mugging.push(stack);
                return since;
            }
            (_, entry) => (entry.list(), entry),
        };
        let stamp = entry.ready_since();
        self.regular.push(list, stamp, entry);
        stamp
    }

    /// Takes the oldest entry of one of the two queues, with its stamp.
    #[inline]
    pub(crate) fn pop(&self, queue: Queue) -> Option<(u64, Entry)> {
        match queue {
            Queue::Mugging => self.pop_abandoned(),
            _ => self.regular.pop(),
        }
    }

    /// Takes the oldest entry of one place, with its stamp.
    pub(crate) fn pop_of(&self, list: ShardList) -> Option<(u64, Entry)> {
        match list {
            ShardList::Abandoned => self.pop_abandoned(),
            ShardList::Regular(list) => self.regular.pop_of(list),
        }
    }

    #[inline]
    fn pop_abandoned(&self) -> Option<(u64, Entry)> {
        // The look is two loads, `pop` of an empty queue a full fence.
        if !self.has_abandoned() {
            return None;
        }
        counts(&self.mugging, Queued::Popped);
        let stack = self.mugging.pop()?;
        Some((0, Entry::Stack(stack)))
    }

    /// Each place that has an entry, and the youngest stamp that it has given: 0, of abandoned stacks.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (ShardList, u64)> {
        let abandoned = self.has_abandoned().then_some((ShardList::Abandoned, 0));
        let regular = self.regular.filled();
        let regular = regular.map(|(list, given)| (ShardList::Regular(list), given));
        abandoned.into_iter().chain(regular)
    }

    /// Whether a task that became ready at `since` goes first: nothing is here, or what is here became ready later.
    #[inline]
    pub(crate) fn is_younger_than(&self, since: u64) -> bool {
        comes_first(
            since,
            || !self.has_abandoned(),
            || self.regular.brief_given(),
            || self.regular.is_brief_empty(),
        ) && self.regular.are_others_younger_than(since)
    }

    #[inline]
    pub(crate) fn has_abandoned(&self) -> bool {
        counts(&self.mugging, Queued::Looked);
        !self.mugging.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.has_abandoned() && self.regular.is_empty()
    }

    fn has_brief(&self) -> bool {
        !self.regular.is_brief_empty()
    }

    /// As [`Shard::is_younger_than`], if only what is brief is taken.
    pub(crate) fn is_brief_younger_than(&self, since: u64) -> bool {
        since < self.regular.brief_given() || !self.has_brief()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        join,
        sched::tests::steps::{Batch, Urgent, runtime},
        yield_now,
    };
    use std::{
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
        thread,
        time::{Duration, Instant},
    };

    fn fib(n: u32) -> usize {
        if n < 2 {
            return 1;
        }
        let (a, b) = join(|| fib(n - 1), || fib(n - 2));
        a + b
    }

    #[test]
    fn whatever_comes_to_pools_in_shards_runs_once() {
        static RAN: AtomicUsize = AtomicUsize::new(0);
        const EACH: usize = 1_000;
        let runtime = runtime(24, Some(24));
        assert_eq!(runtime.job().pools.at(0).shards(), 3);
        let insert = || {
            let spawn = |number: usize| {
                let level = if number.is_multiple_of(2) {
                    runtime.at(Urgent)
                } else {
                    runtime.at(Batch)
                };
                level.spawn(async move {
                    match number % 3 {
                        0 => yield_now().await,
                        1 => assert_eq!(fib(12), 233),
                        _ => {}
                    }
                    RAN.fetch_add(1, Relaxed);
                })
            };
            let tasks: Vec<_> = (0..EACH).map(spawn).collect();
            tasks.into_iter().for_each(|task| task.get().unwrap());
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(insert))));
        assert_eq!(RAN.load(Relaxed), 4 * EACH);
        // A deque's entry may be left whose forks are gone: a worker that looks takes it out.
        let limit = Instant::now() + Duration::from_secs(20);
        while runtime.job().queued(0) + runtime.job().queued(1) != 0 {
            assert!(Instant::now() < limit, "an entry is left");
            runtime.at(Batch).spawn(async {}).get().unwrap();
        }
    }
}
