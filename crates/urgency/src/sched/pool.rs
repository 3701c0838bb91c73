//! The pool of one level: all its ready contexts, in two FIFO queues.
//!
//! - The *mugging queue* holds abandoned stacks, which can go on at once; always looked at first, so
//!   that being abandoned does not cost a context its age.
//! - The *regular queue* holds everything else in the order in which it became ready: tasks, stacks whose wait is over,
//!   and deques with public forks.
//!
//! That order is the aging heuristic of Prompt I-Cilk, and the reason why this is one central queue and not a set of
//! stealing queues. It is policy code (`urgency_policy::pool::Aging`): the queues here do what it says, and `aged.rs`
//! looks at them in its order. The queue itself is `crossbeam`'s segmented queue: fetch-and-add style positions in a
//! list of blocks, as in the paper, without an epoch scheme.
//!
//! That is the default. Under another order the level has the queues of `queues.rs` instead, and
//! neither these two nor rings; the default pays one branch for the choice.
//!
//! An entry is a hint, and may be stale: a task that another entry already ran (it was boosted), a stack that another
//! thread claimed, a deque that is empty by now. The thread that pops an entry finds out by a claim (`TaskRef::run`,
//! `Suspension::claim`, `Deque::steal`), and looks further if the entry was stale.

use super::{StolenFork, queues::Queues, stack::Stack};
use crate::sys::primitives::atomic::{AtomicU64, Ordering};
use crate::{
    sys::{chaos, clock, primitives::Queued},
    tasks::TaskRef,
};
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
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
    /// A stolen fork for which no thread could be had.
    Fork(StolenFork),
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Pool {
    mugging: SegQueue<Arc<Stack>>,
    regular: SegQueue<Entry>,
    /// When the task that was popped last had become ready, in ticks; at first, when the pool was made.
    given: CachePadded<AtomicU64>,
    /// Where entries are under another order. On a cache line that is never written: all threads read it.
    queues: Option<Box<Queues>>,
}

impl Pool {
    /// The pool of a level.
    pub(crate) fn new(order: &AnyOrder, level: usize, workers: usize) -> Self {
        let is_aging = order.kind() == Some(Kind::Aging);
        Pool {
            mugging: SegQueue::new(),
            regular: SegQueue::new(),
            given: CachePadded::new(AtomicU64::new(clock::now())),
            queues: (!is_aging).then(|| Box::new(Queues::new(order, level, workers))),
        }
    }

    /// The queues of another order than aging.
    #[inline]
    pub(crate) fn queues(&self) -> Option<&Queues> {
        self.queues.as_deref()
    }

    /// Puts an entry where aging places this arrival.
    #[inline]
    pub(crate) fn push(&self, arrival: Arrival, entry: Entry) {
        match (Aging.place(arrival, 0), entry) {
            (Place::Tail(Queue::Mugging), Entry::Stack(stack)) => {
                counts(&self.mugging, Queued::Pushed);
                self.mugging.push(stack);
            }
            (_, entry) => {
                counts(&self.regular, Queued::Pushed);
                self.regular.push(entry);
            }
        }
    }

    /// Takes the oldest entry of one of the two queues.
    #[inline]
    pub(crate) fn pop(&self, queue: Queue) -> Option<Entry> {
        if queue == Queue::Mugging {
            // `is_empty` is two loads, `pop` of an empty queue a full fence.
            counts(&self.mugging, Queued::Looked);
            if self.mugging.is_empty() {
                return None;
            }
            counts(&self.mugging, Queued::Popped);
            return self.mugging.pop().map(Entry::Stack);
        }
        if chaos::one_in(4)
            && let Some(entry) = self.regular.pop()
        {
            self.regular.push(entry);
        }
        counts(&self.regular, Queued::Popped);
        let entry = self.regular.pop()?;
        if let Entry::Task(task) = &entry {
            self.given.store(task.ready_since(), Ordering::Relaxed);
        }
        Some(entry)
    }

    /// When the oldest entry became ready at the earliest, in ticks; never, if there is none.
    pub(crate) fn oldest(&self) -> u64 {
        if let Some(queues) = &self.queues {
            return queues.oldest();
        }
        if self.is_empty() {
            u64::MAX
        } else {
            self.given.load(Ordering::Relaxed)
        }
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
        for _ in 0..self.regular.len() {
            match self.regular.pop() {
                Some(Entry::Task(task)) => take(task),
                Some(other) => self.regular.push(other),
                None => return,
            }
        }
    }

    /// Whether a task that became ready at `since` goes first: nothing is here, or what is here became ready later.
    #[inline]
    pub(crate) fn is_younger_than(&self, since: u64) -> bool {
        counts(&self.mugging, Queued::Looked);
        counts(&self.regular, Queued::Looked);
        comes_first(
            since,
            || self.mugging.is_empty(),
            || self.given.load(Ordering::Relaxed),
            || self.regular.is_empty(),
        )
    }

    pub(crate) fn is_empty(&self) -> bool {
        if let Some(queues) = &self.queues {
            return queues.is_empty();
        }
        self.mugging.is_empty() && self.regular.is_empty()
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        if let Some(queues) = &self.queues {
            return queues.len();
        }
        self.mugging.len() + self.regular.len()
    }
}

/// What is done to a queue; unit tests count it.
#[inline(always)]
fn counts<T>(_queue: &SegQueue<T>, _what: Queued) {
    #[cfg(test)]
    crate::sys::counted::queue(_queue, _what);
}
