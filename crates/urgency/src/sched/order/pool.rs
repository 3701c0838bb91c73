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

use super::{entry::Entry, queues::Queues};
use crate::{
    protocol::{groups::groups_of_cores, pace::Given},
    sched::stack::Stack,
    sys::{
        chaos, clock,
        primitives::{
            Queued,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
        thread,
    },
    tasks::TaskRef,
};
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use std::{iter, sync::Arc};
use urgency_policy::pool::{Aging, AnyOrder, Arrival, Kind, Place, PoolPolicy, Queue, comes_first};

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
    /// As [`Glance::given`], of the long list.
    long_given: CachePadded<Given>,
    /// What a worker reads before each piece of work, on one cache line.
    glance: CachePadded<Glance>,
}

#[derive(Debug)]
struct Glance {
    /// The stamp of what was popped last from the brief list, or of what was put into it when it was empty and the
    /// other one was not; at first, when the pool was made. Where there are other shards, the youngest stamp of all
    /// these.
    given: Given,
    /// How many entries the long list has: counted before one is put in, and after one is taken out.
    long: AtomicUsize,
}

/// Entries in the order in which they became ready, with their stamps: when that was, in ticks.
type List = SegQueue<(u64, Entry)>;

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

    /// Whether something is here that is not brief as a rule, or goes first: an abandoned stack.
    #[cold]
    pub(crate) fn has_long(&self) -> bool {
        self.each_shard()
            .any(|shard| shard.has_long() || shard.has_abandoned())
    }

    /// Takes the oldest of what is brief: out of this shard first.
    pub(crate) fn pop_brief(&self, own: usize) -> Option<Entry> {
        let mut filled = self.shards_from(own).filter(|it| it.has_brief());
        let (_, entry) = filled.find_map(Shard::pop_brief)?;
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
            Some(0) => Some(shard.glance.given.stamp().min(shard.long_given.stamp())),
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
        for shard in self.each_shard() {
            for _ in 0..shard.brief.len() {
                match shard.brief.pop() {
                    Some((_, Entry::Task(task))) => take(task),
                    Some(other) => shard.brief.push(other),
                    None => break,
                }
            }
            for _ in 0..shard.long.len() {
                match shard.pop_long() {
                    Some((_, Entry::Task(task))) => take(task),
                    Some((_, other)) => shard.push_long(other),
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
        let len = |shard: &Shard| shard.mugging.len() + shard.brief.len() + shard.long.len();
        self.each_shard().map(len).sum()
    }
}

impl Shard {
    fn new(is_only: bool) -> Self {
        let given = || Given::new(clock::now(), !is_only);
        Shard {
            mugging: SegQueue::new(),
            brief: SegQueue::new(),
            long: SegQueue::new(),
            long_given: CachePadded::new(given()),
            glance: CachePadded::new(Glance {
                given: given(),
                long: AtomicUsize::new(0),
            }),
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
            (_, entry) if entry.is_brief() => {
                let stamp = entry.ready_since();
                if self.has_long() && self.is_brief_empty() {
                    // Else it would go before all that waits in the other list.
                    self.glance.given.note(stamp);
                }
                counts(&self.brief, Queued::Pushed);
                self.brief.push((stamp, entry));
            }
            (_, entry) => self.push_long(entry),
        }
    }

    fn push_long(&self, entry: Entry) {
        let stamp = entry.ready_since();
        if self.glance.long.fetch_add(1, SeqCst) == 0 && !self.is_brief_empty() {
            self.long_given.note(stamp);
        }
        counts(&self.long, Queued::Pushed);
        self.long.push((stamp, entry));
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
        if !self.has_long() {
            return self.pop_brief();
        }
        if !self.is_brief_empty()
            && self.glance.given.stamp() <= self.long_given.stamp()
            && let Some(brief) = self.pop_brief()
        {
            return Some(brief);
        }
        self.pop_long().or_else(|| self.pop_brief())
    }

    #[inline]
    fn pop_brief(&self) -> Option<(u64, Entry)> {
        rotates(&self.brief);
        counts(&self.brief, Queued::Popped);
        let (stamp, entry) = self.brief.pop()?;
        self.glance.given.note(stamp);
        Some((stamp, entry))
    }

    fn pop_long(&self) -> Option<(u64, Entry)> {
        rotates(&self.long);
        counts(&self.long, Queued::Popped);
        let (stamp, entry) = self.long.pop()?;
        self.glance.long.fetch_sub(1, SeqCst);
        self.long_given.note(stamp);
        Some((stamp, entry))
    }

    /// Whether a task that became ready at `since` goes first: nothing is here, or what is here became ready later.
    #[inline]
    pub(crate) fn is_younger_than(&self, since: u64) -> bool {
        counts(&self.mugging, Queued::Looked);
        comes_first(
            since,
            || self.mugging.is_empty(),
            || self.glance.given.stamp(),
            || self.is_brief_empty(),
        ) && (!self.has_long() || since < self.long_given.stamp())
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
        let brief = self.has_brief().then(|| self.glance.given.stamp());
        let long = (!self.long.is_empty()).then(|| self.long_given.stamp());
        brief.into_iter().chain(long).min()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mugging.is_empty() && self.brief.is_empty() && self.long.is_empty()
    }

    fn has_brief(&self) -> bool {
        !self.brief.is_empty()
    }

    #[inline]
    fn is_brief_empty(&self) -> bool {
        counts(&self.brief, Queued::Looked);
        self.brief.is_empty()
    }

    /// Whether something is in the long list, or about to be.
    #[inline]
    fn has_long(&self) -> bool {
        self.glance.long.load(SeqCst) != 0
    }

    /// As [`Shard::is_younger_than`], if only what is brief is taken.
    pub(crate) fn is_brief_younger_than(&self, since: u64) -> bool {
        since < self.glance.given.stamp() || !self.has_brief()
    }
}

/// Under chaos a queue's order changes.
#[inline(always)]
fn rotates(list: &List) {
    if chaos::one_in(4)
        && let Some(entry) = list.pop()
    {
        list.push(entry);
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
