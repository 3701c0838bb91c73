//! The watchers of one direction: tasks that used a `poll_*` form. See `readiness.rs`.
//!
//! A watcher has no identity but its waker, and does not say when it stops waiting. So each waker is kept once, until
//! the next edge wakes them all. The number of wakers is bounded: a task that makes a new waker for each poll cannot
//! fill the memory.
//!
//! # The bound
//!
//! The bound adapts. A newcomer beyond the bound wakes all others and doubles the bound. Watchers that still wait come
//! back, and have room then; the others are gone. So after a few rounds all live watchers fit, and an idle descriptor
//! is at rest. After an edge the bound is the number of watchers before the edge.
//!
//! Rejected: to wake the oldest only. With one task more than the bound they wake each other in turns for
//! ever.
//!
//! # The first one
//!
//! A connection has one watcher, as a rule. It lies beside the state of its direction. What is for more than one is
//! allocated when a second one comes: an edge of a connection among thousands finds every line of memory cold, and
//! touches one less.

use std::{collections::BTreeSet, task::Waker};

/// The bound at first. Up to here the wakers are compared one by one.
const FEW: usize = 32;

/// The bound is never higher. Beyond it tasks do wake each other in turns.
const MOST: usize = 65_536;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// The oldest. Without it there are no others.
    first: Option<Waker>,
    others: Option<Box<Others>>,
}

#[derive(Debug)]
struct Others {
    /// All but the first one, the oldest first.
    wakers: Vec<Waker>,
    /// The names of all, the first one's too, if they are more than `FEW`.
    names: BTreeSet<(usize, usize)>,
    bound: usize,
}

impl Watchers {
    pub(crate) const fn new() -> Self {
        Watchers {
            first: None,
            others: None,
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Waker> {
        let others = self.others.iter().flat_map(|others| &others.wakers);
        self.first.iter().chain(others)
    }

    /// Whether this very waker is there.
    pub(crate) fn has(&self, waker: &Waker) -> bool {
        match &self.others {
            Some(others) if others.wakers.len() >= FEW => others.names.contains(&name(waker)),
            _ => self.iter().any(|other| other.will_wake(waker)),
        }
    }

    /// Adds a waker that is not there. Returns the wakers that are to be woken in its stead.
    pub(crate) fn add(&mut self, waker: Waker) -> Vec<Waker> {
        let Some(first) = &self.first else {
            self.first = Some(waker);
            return Vec::new();
        };
        let others = self.others.get_or_insert_with(Others::none);
        if 1 + others.wakers.len() >= others.bound {
            let bound = (2 * others.bound).min(MOST);
            let ousted = self.take().collect();
            self.first = Some(waker);
            if let Some(others) = &mut self.others {
                others.bound = bound;
            }
            return ousted;
        }
        others.wakers.push(waker);
        match others.wakers.len() {
            ..FEW => {}
            FEW => {
                others.names.insert(name(first));
                others.names.extend(others.wakers.iter().map(name));
            }
            _ => others.names.extend(others.wakers.last().map(name)),
        }
        Vec::new()
    }

    /// Takes all wakers, the oldest first; nothing watches any more.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waker> {
        let others = self.others.as_mut().map(|others| others.take());
        self.first
            .take()
            .into_iter()
            .chain(others.into_iter().flatten())
    }
}

impl Others {
    fn none() -> Box<Self> {
        Box::new(Others {
            wakers: Vec::new(),
            names: BTreeSet::new(),
            bound: FEW,
        })
    }

    fn take(&mut self) -> std::vec::Drain<'_, Waker> {
        self.bound = (1 + self.wakers.len()).max(FEW);
        self.names.clear();
        self.wakers.drain(..)
    }
}

/// What tells one waker from another, as [`Waker::will_wake`] does, but in an order.
fn name(waker: &Waker) -> (usize, usize) {
    (
        waker.data().addr(),
        std::ptr::from_ref(waker.vtable()).addr(),
    )
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::{sync::Arc, task::Wake};

    struct Any(#[expect(dead_code, reason = "two of them have two addresses")] usize);

    impl Wake for Any {
        fn wake(self: Arc<Self>) {}
    }

    fn wakers(count: usize) -> Vec<Waker> {
        (0..count).map(|n| Arc::new(Any(n)).into()).collect()
    }

    /// As a task that polls: it watches, and every ousted watcher polls again. Returns how many were ousted.
    fn watch(watchers: &mut Watchers, waker: &Waker) -> usize {
        let mut polling = vec![waker.clone()];
        let mut ousted = 0;
        while let Some(waker) = polling.pop() {
            if !watchers.has(&waker) {
                let woken = watchers.add(waker);
                ousted += woken.len();
                polling.extend(woken);
            }
        }
        ousted
    }

    #[test]
    fn all_that_come_back_find_room_and_each_is_there_once() {
        const TASKS: usize = 1000;
        let tasks = wakers(TASKS);
        let mut watchers = Watchers::new();
        let mut ousted = 0;
        for _ in 0..2 {
            for task in &tasks {
                ousted += watch(&mut watchers, task);
                assert!(watchers.has(task));
            }
        }
        assert!(0 < ousted && ousted < TASKS, "{ousted}");
        let taken: BTreeSet<_> = watchers.take().map(|waker| name(&waker)).collect();
        assert_eq!(taken.len(), TASKS);
        assert!(!watchers.has(&tasks[0]));
        // Next time there is room from the start.
        for task in &tasks {
            assert_eq!(watch(&mut watchers, task), 0);
        }
        assert_eq!(watchers.take().count(), TASKS);
    }

    #[test]
    fn watchers_that_never_come_back_are_bounded_and_woken_once() {
        let mut watchers = Watchers::new();
        let mut ousted = 0;
        let all = 3 * MOST;
        for (before, waker) in wakers(all).into_iter().enumerate() {
            ousted += watchers.add(waker).len();
            assert!(before + 1 - ousted <= MOST);
        }
        assert_eq!(ousted + watchers.take().count(), all);
    }

    #[test]
    fn the_bound_is_low_again_after_an_edge_with_few() {
        let mut watchers = Watchers::new();
        for waker in wakers(1000) {
            watchers.add(waker);
        }
        watchers.take().for_each(drop);
        for waker in wakers(3) {
            watchers.add(waker);
        }
        assert_eq!(watchers.take().count(), 3);
        let ousted = wakers(FEW + 1).into_iter().map(|waker| watchers.add(waker));
        assert_eq!(ousted.map(|ousted| ousted.len()).sum::<usize>(), FEW);
    }
}
