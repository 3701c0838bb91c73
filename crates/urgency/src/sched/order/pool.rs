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
//! The regular queue is two lists: what is *brief* as a rule (polls, stacks whose wait is over) and what begins a long
//! piece of work (closures, forks). The list goes first that has given the older entry last, so the order is the
//! queue's but for one entry of each worker. It is two lists because brief work has turns among long equals
//! (`rescue/turns.rs`), and must be found behind any number of these.
//!
//! # Shards
//!
//! Up to eight cores share one pair of queues, and the order is exact. Where there are more, each group of eight
//! workers has a pair, its *shard*, and a worker takes from the others only when it has nothing, or is ahead: `pace.rs`
//! says when, and proves by how much work an entry may be overtaken. What comes from one worker's stack (a stack that
//! is abandoned, a deque with public forks) goes to the shard of that worker. All else goes to the shards in turn, by a
//! counter of the inserting thread: it has no place where it would run better, for what a poll makes ready is in its
//! stack's ring. A group whose shard, or a ring, may have something shows that in the level's word (`Job::ringing`).
//! There are as many groups as can run at once: workers beyond the processors use the shards of others.
//!
//! That is the default. Under another order the level has the queues of `queues.rs` instead, and
//! neither these two nor rings; the default pays one branch for the choice.
//!
//! An entry is a hint, and may be stale: a task that another entry already ran (it was boosted), a stack that another
//! thread claimed, a deque that is empty by now. The thread that pops an entry finds out by a claim (`TaskRef::run`,
//! `Suspension::claim`, `Deque::steal`), and looks further if the entry was stale.

use super::queues::Queues;
use crate::{
    protocol::{groups::groups_of_cores, pace::Given},
    sched::{StolenFork, stack::Stack},
    sys::{chaos, clock, primitives::Queued, thread},
    tasks::TaskRef,
};
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use std::{iter, sync::Arc};
use urgency_policy::pool::{Aging, AnyOrder, Arrival, Kind, Place, PoolPolicy, Queue, comes_first};

/// A ready context.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A task to be polled, or a closure to be started on a fresh stack.
    Task(TaskRef),
    /// A stack that can go on.
    Stack(Arc<Stack>),
    /// A deque that had public forks when this was queued.
    Deque(Arc<Stack>),
    /// A stolen fork for which no thread could be had. Larger than the others, and seldom.
    Fork(Box<StolenFork>),
}

impl Entry {
    /// Whether it stands for the forks of a stack, which may run meanwhile.
    #[inline]
    pub(crate) fn is_forks(&self) -> bool {
        matches!(self, Entry::Deque(_))
    }

    /// Whether it is a poll, or a stack that goes on after a wait: it begins no long piece of work, as a rule.
    #[inline]
    fn is_brief(&self) -> bool {
        match self {
            Entry::Task(task) => !task.is_closure(),
            Entry::Stack(_) => true,
            Entry::Deque(_) | Entry::Fork(_) => false,
        }
    }

    /// When a task became ready, in ticks. Anything else is put down as it becomes ready.
    #[inline]
    fn ready_since(&self) -> u64 {
        match self {
            Entry::Task(task) => task.ready_since(),
            _ => clock::now(),
        }
    }
}

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
    brief: List,
    long: List,
}

/// Entries in the order in which they became ready.
#[derive(Debug)]
struct List {
    /// With their stamps: when they became ready, in ticks.
    entries: SegQueue<(u64, Entry)>,
    /// The stamp of what was popped last, or of what was put into the empty list while the other one had something; at
    /// first, when the pool was made. Where there are other shards, the youngest stamp of all these.
    given: CachePadded<Given>,
}

impl Pool {
    /// The pool of a level.
    pub(crate) fn new(order: &AnyOrder, level: usize, workers: usize) -> Self {
        let is_aging = order.kind() == Some(Kind::Aging);
        let shards = groups_of_cores(workers, thread::processors());
        Pool {
            first: Shard::new(shards == 1),
            others: (1..shards)
                .map(|_| CachePadded::new(Shard::new(false)))
                .collect(),
            queues: (!is_aging).then(|| Box::new(Queues::new(order, level, workers))),
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

    /// Takes the oldest of what is brief: out of this shard first.
    pub(crate) fn pop_brief(&self, own: usize) -> Option<Entry> {
        let mut filled = self.shards_from(own).filter(|it| it.has_brief());
        let (_, entry) = filled.find_map(|shard| shard.brief.pop())?;
        Some(entry)
    }

    /// Whether a stack is here that was abandoned.
    pub(crate) fn has_abandoned(&self) -> bool {
        self.each_shard().any(Shard::has_abandoned)
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
        let given = self.each_shard().filter_map(|shard| match shard.given() {
            // Of abandoned stacks no time is known.
            Some(0) => Some(shard.brief.given.stamp().min(shard.long.given.stamp())),
            given => given,
        });
        given.min().unwrap_or(u64::MAX)
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
        let lists = self.each_shard().flat_map(|it| [&it.brief, &it.long]);
        for entries in lists.map(|list| &list.entries) {
            for _ in 0..entries.len() {
                match entries.pop() {
                    Some((_, Entry::Task(task))) => take(task),
                    Some(other) => entries.push(other),
                    None => break,
                }
            }
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
        let len = |shard: &Shard| {
            shard.mugging.len() + shard.brief.entries.len() + shard.long.entries.len()
        };
        self.each_shard().map(len).sum()
    }
}

impl Shard {
    fn new(is_only: bool) -> Self {
        Shard {
            mugging: SegQueue::new(),
            brief: List::new(is_only),
            long: List::new(is_only),
        }
    }

    /// Puts an entry where aging places this arrival.
    #[inline]
    pub(crate) fn push(&self, arrival: Arrival, entry: Entry) {
        match (Aging.place(arrival, 0), entry) {
            (Place::Tail(Queue::Mugging), Entry::Stack(stack)) => {
                counts(&self.mugging, Queued::Pushed);
                self.mugging.push(stack);
            }
            (_, entry) if entry.is_brief() => self.brief.push(entry, &self.long),
            (_, entry) => self.long.push(entry, &self.brief),
        }
    }

    /// Takes the oldest entry of one of the two queues, with its stamp.
    #[inline]
    pub(crate) fn pop(&self, queue: Queue) -> Option<(u64, Entry)> {
        if queue == Queue::Mugging {
            // `is_empty` is two loads, `pop` of an empty queue a full fence.
            counts(&self.mugging, Queued::Looked);
            if self.mugging.is_empty() {
                return None;
            }
            counts(&self.mugging, Queued::Popped);
            return self.mugging.pop().map(|stack| (0, Entry::Stack(stack)));
        }
        if self.long.is_empty() {
            return self.brief.pop();
        }
        if !self.brief.is_empty()
            && self.brief.given.stamp() <= self.long.given.stamp()
            && let Some(brief) = self.brief.pop()
        {
            return Some(brief);
        }
        self.long.pop().or_else(|| self.brief.pop())
    }

    /// Whether a task that became ready at `since` goes first: nothing is here, or what is here became ready later.
    #[inline]
    pub(crate) fn is_younger_than(&self, since: u64) -> bool {
        counts(&self.mugging, Queued::Looked);
        comes_first(
            since,
            || self.mugging.is_empty(),
            || self.brief.given.stamp(),
            || self.brief.is_empty(),
        ) && (self.long.is_empty() || since < self.long.given.stamp())
    }

    pub(crate) fn has_abandoned(&self) -> bool {
        !self.mugging.is_empty()
    }

    /// The youngest stamp that was given, of the list that goes next; 0 if there is an abandoned stack. Nothing, if
    /// there is no entry.
    pub(crate) fn given(&self) -> Option<u64> {
        if self.has_abandoned() {
            return Some(0);
        }
        let lists = [&self.brief, &self.long].into_iter();
        let filled = lists.filter(|list| !list.is_empty());
        filled.map(|list| list.given.stamp()).min()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mugging.is_empty() && !self.has_brief() && self.long.entries.is_empty()
    }

    fn has_brief(&self) -> bool {
        !self.brief.entries.is_empty()
    }

    /// As [`Shard::is_younger_than`], if only what is brief is taken.
    pub(crate) fn is_brief_younger_than(&self, since: u64) -> bool {
        since < self.brief.given.stamp() || !self.has_brief()
    }
}

impl List {
    fn new(is_only: bool) -> Self {
        List {
            entries: SegQueue::new(),
            given: CachePadded::new(Given::new(clock::now(), !is_only)),
        }
    }

    #[inline]
    fn push(&self, entry: Entry, other: &List) {
        let stamp = entry.ready_since();
        if !other.is_empty() && self.is_empty() {
            // Else it would go before all that waits there.
            self.given.note(stamp);
        }
        counts(&self.entries, Queued::Pushed);
        self.entries.push((stamp, entry));
    }

    #[inline]
    fn pop(&self) -> Option<(u64, Entry)> {
        if chaos::one_in(4)
            && let Some(entry) = self.entries.pop()
        {
            self.entries.push(entry);
        }
        counts(&self.entries, Queued::Popped);
        let (stamp, entry) = self.entries.pop()?;
        self.given.note(stamp);
        Some((stamp, entry))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        counts(&self.entries, Queued::Looked);
        self.entries.is_empty()
    }
}

/// What is done to a queue; unit tests count it.
#[inline(always)]
fn counts<T>(_queue: &SegQueue<T>, _what: Queued) {
    #[cfg(test)]
    crate::sys::counted::queue(_queue, _what);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        join,
        sched::tests::{
            stack_of,
            steps::{Batch, Urgent, runtime},
        },
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

    /// A list that stands empty beside a full one has given nothing for long: what is put into it does not go before
    /// all that waits in the other.
    #[test]
    fn brief_and_long_entries_go_in_the_order_in_which_they_came_but_for_one() {
        let runtime = runtime(1, None);
        let forked = || {
            let (_, stack) = stack_of(runtime.shared());
            Entry::Deque(stack)
        };
        let resumed = || {
            let (_, stack) = stack_of(runtime.shared());
            Entry::Stack(stack)
        };
        let shard = Shard::new(true);
        let is_long = [
            true, true, true, false, true, false, false, true, true, false,
        ];
        for is_long in is_long {
            let (arrival, entry) = match is_long {
                true => (Arrival::PublicForks, forked()),
                false => (Arrival::Resumable, resumed()),
            };
            shard.push(arrival, entry);
        }
        let stamps: Vec<u64> = iter::from_fn(|| shard.pop(Queue::Regular))
            .map(|(stamp, _)| stamp)
            .collect();
        assert_eq!(stamps.len(), is_long.len());
        for (place, stamp) in stamps.iter().enumerate() {
            let overtakes = stamps[place..]
                .iter()
                .filter(|later| *later < stamp)
                .count();
            assert!(overtakes <= 1, "{stamps:?}");
        }
    }

    #[test]
    fn whatever_comes_to_pools_in_shards_runs_once() {
        static RAN: AtomicUsize = AtomicUsize::new(0);
        const EACH: usize = 1_000;
        let runtime = runtime(24, Some(24));
        assert_eq!(runtime.shared().pools[0].shards(), 3);
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
        while runtime.shared().queued(0) + runtime.shared().queued(1) != 0 {
            assert!(Instant::now() < limit, "an entry is left");
            runtime.at(Batch).spawn(async {}).get().unwrap();
        }
    }
}
