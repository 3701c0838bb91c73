//! The regular queue of a shard, which is three lists.
//!
//! One holds what is *brief* as a rule: polls, and stacks whose wait is over. It has turns among long equals
//! (`rescue/turns.rs`), and must be found behind any number of these. One holds the polls that are not brief, as far as
//! is known. One holds what begins a long piece of work: closures and forks.
//!
//! # Rules
//!
//! 1. Each list is a FIFO queue, and has a word: the stamp that it has *given* last, where there are other shards the
//!    youngest one (`protocol/pace.rs`).
//! 2. The list goes next that has given the oldest stamp. So the order is the queue's but for one entry of each worker
//!    and list: a worker that took a younger one than waits in another list has raised this list's word above the
//!    other's.
//! 3. A list that stands empty has given nothing for long. Beside a full one, the word is raised to the stamp of what
//!    is put into it next. Else that would go before all that waits in the others. Such a stamp is of the list's
//!    oldest entry: the word is still not younger than any that waits in the list.
//!
//! # Why it has no loom model
//!
//! The queues are crossbeam's, which loom does not see, and no entry is lost by a word: the words choose the list, and
//! `pop` looks into all before it finds none, but for the count of all that is not brief. An entry is counted before it
//! is put in, and counted out by the thread that took it. So a thread that reads zero runs before a push of an entry
//! that is not brief, or after its pop. Whether a worker may then go idle is the question of every pool
//! (`protocol/pooled.rs`, `ready.rs`).

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
    computing: Other<E>,
    long: Other<E>,
    /// What a worker reads before each piece of work, on one cache line.
    glance: CachePadded<Glance>,
}

/// A list of what is not brief.
#[derive(Debug)]
struct Other<E> {
    entries: SegQueue<(u64, E)>,
    given: CachePadded<Given>,
    /// The stamp that was put into the empty list last; for statistics.
    since: AtomicU64,
}

#[derive(Debug)]
struct Glance {
    /// The word of the brief list.
    given: Given,
    /// How many entries the others have: counted before one is put in, and after one is taken out.
    others: AtomicUsize,
}

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Brief,
    /// Of tasks whose last poll took long.
    Computing,
    Long,
}

impl<E> Lists<E> {
    /// As if each list had given something with this stamp. `is_only`: there are no other shards.
    pub(crate) fn new(given: u64, is_only: bool) -> Self {
        let given = || Given::new(given, !is_only);
        let other = || Other {
            entries: SegQueue::new(),
            given: CachePadded::new(given()),
            since: AtomicU64::new(0),
        };
        Lists {
            brief: SegQueue::new(),
            computing: other(),
            long: other(),
            glance: CachePadded::new(Glance {
                given: given(),
                others: AtomicUsize::new(0),
            }),
        }
    }

    fn others(&self) -> [(List, &Other<E>); 2] {
        [(List::Computing, &self.computing), (List::Long, &self.long)]
    }

    /// Puts an entry in, which became ready at `stamp`.
    #[inline]
    pub(crate) fn push(&self, list: List, stamp: u64, entry: E) {
        match list {
            List::Brief => {
                if self.has_others() && self.is_brief_empty() {
                    // Rule 3.
                    self.glance.given.note(stamp);
                }
                counts(&self.brief, Queued::Pushed);
                self.brief.push((stamp, entry));
            }
            List::Computing => self.push_other(&self.computing, stamp, entry),
            List::Long => self.push_other(&self.long, stamp, entry),
        }
    }

    fn push_other(&self, list: &Other<E>, stamp: u64, entry: E) {
        let is_first = self.glance.others.fetch_add(1, SeqCst) == 0;
        if is_first || list.is_empty() {
            list.since.store(stamp, Relaxed);
            if !is_first || !self.is_brief_empty() {
                list.given.note(stamp);
            }
        }
        counts(&list.entries, Queued::Pushed);
        list.entries.push((stamp, entry));
    }

    /// Takes what comes next, with its stamp.
    #[inline]
    pub(crate) fn pop(&self) -> Option<(u64, E)> {
        if !self.has_others() {
            return self.pop_brief();
        }
        self.pop_oldest()
    }

    fn pop_oldest(&self) -> Option<(u64, E)> {
        let oldest = self.filled().min_by_key(|&(_, given)| given);
        let entry = oldest.and_then(|(list, _)| self.pop_of(list));
        entry.or_else(|| {
            let lists = [List::Long, List::Computing, List::Brief];
            lists.into_iter().find_map(|list| self.pop_of(list))
        })
    }

    /// Takes the oldest entry of one list.
    pub(crate) fn pop_of(&self, list: List) -> Option<(u64, E)> {
        match list {
            List::Brief => self.pop_brief(),
            List::Computing => self.pop_other(&self.computing),
            List::Long => self.pop_other(&self.long),
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

    fn pop_other(&self, list: &Other<E>) -> Option<(u64, E)> {
        rotates(&list.entries);
        counts(&list.entries, Queued::Popped);
        let (stamp, entry) = list.entries.pop()?;
        self.glance.others.fetch_sub(1, SeqCst);
        list.given.note(stamp);
        Some((stamp, entry))
    }

    /// Each list that has an entry, and the word of it.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (List, u64)> {
        let brief = (!self.is_brief_empty()).then(|| (List::Brief, self.glance.given.stamp()));
        // What is counted may not be in yet.
        let others = self.has_others().then(|| self.others());
        let others = others.into_iter().flatten();
        let filled = others.filter(|(_, list)| !list.is_empty());
        brief
            .into_iter()
            .chain(filled.map(|(name, list)| (name, list.given.stamp())))
    }

    /// A stamp that is not younger than any that waits in one of the lists; never, if none waits.
    pub(crate) fn oldest(&self) -> u64 {
        let oldest = self.filled().map(|(list, given)| match list {
            List::Brief => given,
            List::Computing => given.max(self.computing.since.load(Relaxed)),
            List::Long => given.max(self.long.since.load(Relaxed)),
        });
        oldest.min().unwrap_or(u64::MAX)
    }

    /// The word of the list that has given the oldest stamp.
    pub(crate) fn oldest_given(&self) -> u64 {
        let others = self.others().map(|(_, list)| list.given.stamp());
        others.into_iter().fold(self.brief_given(), u64::min)
    }

    /// The word of the brief list.
    #[inline]
    pub(crate) fn brief_given(&self) -> u64 {
        self.glance.given.stamp()
    }

    /// Whether the lists of what is not brief can only give what became ready after `since`.
    #[inline]
    pub(crate) fn are_others_younger_than(&self, since: u64) -> bool {
        let is_younger = |(_, list): (_, &Other<E>)| list.is_empty() || since < list.given.stamp();
        !self.has_others() || self.others().into_iter().all(is_younger)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_brief_empty() && self.computing.is_empty() && self.long.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.brief.len() + self.computing.entries.len() + self.long.entries.len()
    }

    #[inline]
    pub(crate) fn is_brief_empty(&self) -> bool {
        counts(&self.brief, Queued::Looked);
        self.brief.is_empty()
    }

    /// Whether something that is not brief is here, or about to be.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        self.glance.others.load(SeqCst) != 0
    }

    /// Whether this list has an entry.
    pub(crate) fn has(&self, list: List) -> bool {
        match list {
            List::Brief => !self.is_brief_empty(),
            List::Computing => self.has_others() && !self.computing.is_empty(),
            List::Long => self.has_others() && !self.long.is_empty(),
        }
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
        for (_, list) in self.others() {
            for _ in 0..list.entries.len() {
                let Some((stamp, entry)) = self.pop_other(list) else {
                    break;
                };
                if let Some(entry) = keeps(entry) {
                    self.push_other(list, stamp, entry);
                }
            }
        }
    }
}

impl<E> Other<E> {
    fn is_empty(&self) -> bool {
        counts(&self.entries, Queued::Looked);
        self.entries.is_empty()
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
    fn entries_of_all_lists_go_in_the_order_in_which_they_came_but_for_one_of_each_other_list() {
        use List::{Brief, Computing, Long};
        let lists = Lists::new(0, true);
        let entries = [
            Long, Long, Long, Brief, Computing, Long, Brief, Brief, Computing, Long, Long, Brief,
        ];
        for (stamp, list) in (1..).zip(entries) {
            lists.push(list, stamp, ());
        }
        let stamps: Vec<u64> = iter::from_fn(|| lists.pop()).map(|it| it.0).collect();
        assert_eq!(stamps.len(), entries.len());
        for (place, stamp) in stamps.iter().enumerate() {
            let overtakes = stamps[place..]
                .iter()
                .filter(|later| *later < stamp)
                .count();
            assert!(overtakes <= 2, "{stamps:?}");
        }
    }
}
