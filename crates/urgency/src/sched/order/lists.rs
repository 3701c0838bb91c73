//! The regular queue of a shard, which is two lists.
//!
//! One holds what is *brief* as a rule (polls, stacks whose wait is over), the other what begins a long piece of work
//! (closures, forks): brief work has turns among long equals (`rescue/turns.rs`), and must be found behind any number
//! of these.
//!
//! # Rules
//!
//! 1. Each list is a FIFO queue, and has a word: the stamp that it has *given* last, where there are other shards the
//!    youngest one (`protocol/pace.rs`).
//! 2. The list goes next that has given the older stamp. So the order is the queue's but for one entry of each worker:
//!    a worker that took a younger one than waits in the other list has raised this list's word above the other's.
//! 3. A list that stands empty has given nothing for long. Beside a full one, the word is raised to the stamp of what
//!    is put into it next. Else that would go before all that waits in the other list. Such a stamp is of the list's
//!    oldest entry: the word is still not younger than any that waits in the list.
//!
//! # Why it has no loom model
//!
//! The queues are crossbeam's, which loom does not see, and no entry is lost by a word: the words choose the list, and
//! `pop` looks into both before it finds none, but for the count of the long one. An entry is counted before it is put
//! in, and counted out by the thread that took it. So a thread that reads zero runs before a push of a long entry, or
//! after its pop. Whether a worker may then go idle is the question of every pool (`protocol/pooled.rs`, `ready.rs`).

use crate::{
    protocol::pace::Given,
    sys::{
        chaos,
        primitives::{
            Queued,
            atomic::{
                AtomicU64, AtomicUsize,
                Ordering::{Relaxed, SeqCst},
            },
        },
    },
};
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Lists<E> {
    brief: SegQueue<(u64, E)>,
    long: SegQueue<(u64, E)>,
    long_given: CachePadded<Given>,
    /// What a worker reads before each piece of work, on one cache line.
    glance: CachePadded<Glance>,
}

#[derive(Debug)]
struct Glance {
    /// The word of the brief list.
    given: Given,
    /// How many entries the long list has: counted before one is put in, and after one is taken out.
    long: AtomicUsize,
    /// The stamp that was put into the empty long list last; for statistics.
    long_since: AtomicU64,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Brief,
    Long,
}

impl<E> Lists<E> {
    /// As if each list had given something with this stamp. `is_only`: there are no other shards.
    pub(crate) fn new(given: u64, is_only: bool) -> Self {
        let given = || Given::new(given, !is_only);
        Lists {
            brief: SegQueue::new(),
            long: SegQueue::new(),
            long_given: CachePadded::new(given()),
            glance: CachePadded::new(Glance {
                given: given(),
                long: AtomicUsize::new(0),
                long_since: AtomicU64::new(0),
            }),
        }
    }

    /// Puts an entry in, which became ready at `stamp`.
    #[inline]
    pub(crate) fn push(&self, list: List, stamp: u64, entry: E) {
        match list {
            List::Brief => {
                if self.has_long() && self.is_brief_empty() {
                    // Rule 3.
                    self.glance.given.note(stamp);
                }
                counts(&self.brief, Queued::Pushed);
                self.brief.push((stamp, entry));
            }
            List::Long => self.push_long(stamp, entry),
        }
    }

    fn push_long(&self, stamp: u64, entry: E) {
        if self.glance.long.fetch_add(1, SeqCst) == 0 {
            self.glance.long_since.store(stamp, Relaxed);
            if !self.is_brief_empty() {
                self.long_given.note(stamp);
            }
        }
        counts(&self.long, Queued::Pushed);
        self.long.push((stamp, entry));
    }

    /// Takes what comes next, with its stamp.
    #[inline]
    pub(crate) fn pop(&self) -> Option<(u64, E)> {
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

    /// Takes the oldest entry of one list.
    pub(crate) fn pop_of(&self, list: List) -> Option<(u64, E)> {
        match list {
            List::Brief => self.pop_brief(),
            List::Long => self.pop_long(),
        }
    }

    #[inline]
    fn pop_brief(&self) -> Option<(u64, E)> {
        rotates(&self.brief);
        counts(&self.brief, Queued::Popped);
        let (stamp, entry) = self.brief.pop()?;
        self.glance.given.note(stamp);
        Some((stamp, entry))
    }

    fn pop_long(&self) -> Option<(u64, E)> {
        rotates(&self.long);
        counts(&self.long, Queued::Popped);
        let (stamp, entry) = self.long.pop()?;
        self.glance.long.fetch_sub(1, SeqCst);
        self.long_given.note(stamp);
        Some((stamp, entry))
    }

    /// Each list that has an entry, and the word of it.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (List, u64)> {
        let brief = (!self.is_brief_empty()).then(|| self.glance.given.stamp());
        // What is counted may not be in yet.
        let has_long = self.has_long() && !self.is_long_empty();
        let long = has_long.then(|| self.long_given.stamp());
        let brief = brief.map(|given| (List::Brief, given));
        brief
            .into_iter()
            .chain(long.map(|given| (List::Long, given)))
    }

    /// A stamp that is not younger than any that waits in one of the lists; never, if none waits.
    pub(crate) fn oldest(&self) -> u64 {
        let long_since = self.glance.long_since.load(Relaxed);
        let oldest = self.filled().map(|(list, given)| match list {
            List::Brief => given,
            List::Long => given.max(long_since),
        });
        oldest.min().unwrap_or(u64::MAX)
    }

    /// The word of the list that has given the older stamp.
    pub(crate) fn oldest_given(&self) -> u64 {
        self.brief_given().min(self.long_given.stamp())
    }

    /// The word of the brief list.
    #[inline]
    pub(crate) fn brief_given(&self) -> u64 {
        self.glance.given.stamp()
    }

    /// Whether the long list can only give what became ready after `since`.
    #[inline]
    pub(crate) fn is_long_younger_than(&self, since: u64) -> bool {
        !self.has_long() || since < self.long_given.stamp()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_brief_empty() && self.is_long_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.brief.len() + self.long.len()
    }

    #[inline]
    pub(crate) fn is_brief_empty(&self) -> bool {
        counts(&self.brief, Queued::Looked);
        self.brief.is_empty()
    }

    fn is_long_empty(&self) -> bool {
        counts(&self.long, Queued::Looked);
        self.long.is_empty()
    }

    /// Whether something is in the long list, or about to be.
    #[inline]
    pub(crate) fn has_long(&self) -> bool {
        self.glance.long.load(SeqCst) != 0
    }

    /// Goes over all entries once. What `keeps` returns is put in again.
    pub(crate) fn retain(&self, mut keeps: impl FnMut(E) -> Option<E>) {
        for _ in 0..self.brief.len() {
            let Some((stamp, entry)) = self.brief.pop() else {
                break;
            };
            if let Some(entry) = keeps(entry) {
                self.brief.push((stamp, entry));
            }
        }
        for _ in 0..self.long.len() {
            let Some((stamp, entry)) = self.pop_long() else {
                break;
            };
            if let Some(entry) = keeps(entry) {
                self.push_long(stamp, entry);
            }
        }
    }
}

/// Under chaos a queue's order changes.
#[inline(always)]
fn rotates<E>(list: &SegQueue<E>) {
    if chaos::one_in(4)
        && let Some(entry) = list.pop()
    {
        list.push(entry);
    }
}

/// What is done to a queue; unit tests count it.
#[inline(always)]
pub(super) fn counts<T>(_queue: &SegQueue<T>, _what: Queued) {
    #[cfg(test)]
    crate::sys::counted::queue(_queue, _what);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    /// A list that stands empty beside a full one has given nothing for long: what is put into it does not go before
    /// all that waits in the other.
    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
    fn brief_and_long_entries_go_in_the_order_in_which_they_came_but_for_one() {
        let lists = Lists::new(0, true);
        let is_long = [
            true, true, true, false, true, false, false, true, true, false,
        ];
        for (stamp, is_long) in (1..).zip(is_long) {
            let list = if is_long { List::Long } else { List::Brief };
            lists.push(list, stamp, ());
        }
        let stamps: Vec<u64> = iter::from_fn(|| lists.pop()).map(|it| it.0).collect();
        assert_eq!(stamps.len(), is_long.len());
        for (place, stamp) in stamps.iter().enumerate() {
            let overtakes = stamps[place..]
                .iter()
                .filter(|later| *later < stamp)
                .count();
            assert!(overtakes <= 1, "{stamps:?}");
        }
    }
}
