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

use std::{collections::BTreeSet, task::Waker};

/// The bound at first. Up to here the wakers are compared one by one.
const FEW: usize = 32;

/// The bound is never higher. Beyond it tasks do wake each other in turns.
const MOST: usize = 65_536;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// The oldest first.
    wakers: Vec<Waker>,
    /// The names of all of `wakers` if they are more than `FEW`.
    names: BTreeSet<(usize, usize)>,
    bound: usize,
}

impl Watchers {
    pub(crate) const fn new() -> Self {
        Watchers {
            wakers: Vec::new(),
            names: BTreeSet::new(),
            bound: FEW,
        }
    }

    /// Whether this very waker is there.
    pub(crate) fn has(&self, waker: &Waker) -> bool {
        if self.wakers.len() <= FEW {
            return self.wakers.iter().any(|other| other.will_wake(waker));
        }
        self.names.contains(&name(waker))
    }

    /// Adds a waker that is not there. Returns the wakers that are to be woken in its stead.
    pub(crate) fn add(&mut self, waker: Waker) -> Vec<Waker> {
        let mut ousted = Vec::new();
        if self.wakers.len() >= self.bound {
            self.names.clear();
            ousted = std::mem::take(&mut self.wakers);
            self.bound = (2 * self.bound).min(MOST);
        }
        self.wakers.push(waker);
        match self.wakers.len() {
            ..=FEW => {}
            len if len == FEW + 1 => self.names.extend(self.wakers.iter().map(name)),
            _ => self.names.extend(self.wakers.last().map(name)),
        }
        ousted
    }

    /// Takes all wakers, the oldest first; nothing watches any more.
    pub(crate) fn take(&mut self) -> std::vec::Drain<'_, Waker> {
        self.bound = self.wakers.len().max(FEW);
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
        for waker in wakers(all) {
            ousted += watchers.add(waker).len();
            assert!(watchers.wakers.len() <= MOST);
        }
        assert_eq!(ousted + watchers.take().count(), all);
    }

    #[test]
    fn the_bound_is_low_again_after_an_edge_with_few() {
        let mut watchers = Watchers::new();
        for waker in wakers(1000) {
            watchers.add(waker);
        }
        watchers.take();
        for waker in wakers(3) {
            watchers.add(waker);
        }
        assert_eq!(watchers.take().count(), 3);
        let ousted = wakers(FEW + 1).into_iter().map(|waker| watchers.add(waker));
        assert_eq!(ousted.map(|ousted| ousted.len()).sum::<usize>(), FEW);
    }
}
