//! The waiters in their order, and what was handed over to them: one FIFO list for each level, over one slab.
//!
//! # Words
//!
//! - *waiter*: a future that waits. It owns a [`Key`], the number of its slot.
//! - *need*: what the waiter waits for, as its primitive says it (so many permits).
//! - *grant*: what was handed over to the waiter.
//!
//! # States of a slot, all changed under the lock of the primitive
//!
//! ```text
//! vacant --enter--> waiting --grant--> granted --poll--> vacant          the waiter got it
//!                      |                  |
//!                      +------ leave -----+------------> vacant          the waiter was dropped
//!                      ^                  |
//!                      +----- revoke -----+                              somebody else needs it more (raw.rs)
//! waiting --take_first--> vacant                                         it is told to look itself (grant.rs)
//! ```
//!
//! A granted slot is in no list. `leave` of a granted slot returns the grant, and the primitive must hand the grant to
//! the next waiter: so a dropped waiter loses nothing. Only the waiter frees its slot, so a key never names another
//! waiter's slot. `take_first` is the exception: after it, the waiter is told not to use its key.
//!
//! # Order
//!
//! The most urgent level first; within a level, the order of entering. A waiter keeps its place when it
//! is polled with another waker. Entering, granting and leaving take constant time: each list
//! is doubly linked through the slots (levels.rs).
//!
//! Wakers are given out to be woken or dropped after the lock is released: they may be the program's code.
//!
//! Rejected: an intrusive list through the waiting futures. It saves the slab, and costs an `unsafe` protocol
//! between a future's address and the lock; the slab grows to the most waiters that there were at once, and
//! costs no allocation after that. Rejected: one list sorted by level, in which an urgent waiter would walk past
//! all less urgent ones.

use super::levels::{Levels, NONE};
use crate::tasks::contained;
use std::{mem, task::Waker};

/// When the last waiter is gone, a slab with more slots than this is freed.
const KEPT_SLOTS: usize = 64;

/// See the module's text.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Lists<N, G> {
    slots: Vec<Slot<N, G>>,
    /// Head of the chain of vacant slots, linked by `next`.
    vacant: u32,
    taken: u32,
    levels: Levels,
}

/// On a cache line of its own: the lock's holder touches as few lines as can be.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<N, G> {
    state: State<N, G>,
    next: u32,
    /// Stale if it is the first of its list.
    previous: u32,
    level: u8,
    /// By `wake_first`, and it was not polled since.
    woken: bool,
}

#[derive(Debug)]
enum State<N, G> {
    Vacant,
    Waiting(N, Waker),
    Granted(G),
}

/// The right to one slot. It must go back by `poll` or `leave`.
#[derive(Debug)]
pub(super) struct Key(u32);

/// What a waiter that leaves had.
#[derive(Debug)]
pub(super) enum Left<N, G> {
    /// Nothing yet. Both are to be dropped outside of the lock.
    Waiting(N, Waker),
    /// This grant, which the primitive must hand to another waiter.
    Granted(G),
}

impl<N, G> Lists<N, G> {
    pub(super) const fn new() -> Self {
        Lists {
            slots: Vec::new(),
            vacant: NONE,
            taken: 0,
            levels: Levels::new(),
        }
    }

    /// Whether nothing waits. There may be a grant that its waiter did not take yet.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.levels.turn().is_none()
    }

    /// A new waiter, behind the others of its level.
    pub(super) fn enter(&mut self, level: u8, need: N, waker: Waker) -> Key {
        let slot = Slot {
            state: State::Waiting(need, waker),
            next: NONE,
            previous: NONE,
            level,
            woken: false,
        };
        let place = self.vacant;
        let place = if place == NONE {
            let place = u32::try_from(self.slots.len()).expect("fewer than 2^32 waiters");
            self.slots.push(slot);
            place
        } else {
            self.vacant = self.slots[place as usize].next;
            self.slots[place as usize] = slot;
            place
        };
        self.taken += 1;
        self.link(place);
        Key(place)
    }

    /// What the waiter whose turn it is needs.
    #[inline]
    pub(super) fn first(&self) -> Option<&N> {
        let (_, first) = self.levels.turn()?;
        match &self.slots[first as usize].state {
            State::Waiting(need, _) => Some(need),
            _ => unreachable!("only waiting slots are in a list"),
        }
    }

    /// The level of the waiter whose turn it is.
    pub(super) fn first_level(&self) -> Option<u8> {
        Some(self.levels.turn()?.0)
    }

    /// The level of the waiter whose turn it is after that one.
    pub(super) fn next_level(&self) -> Option<u8> {
        let (level, first) = self.levels.turn()?;
        if self.slots[first as usize].next != NONE {
            return Some(level);
        }
        self.levels.below(level)
    }

    /// The level by which a waiter stands in the queue.
    pub(super) fn level_of(&self, key: &Key) -> u8 {
        self.slots[key.0 as usize].level
    }

    /// Whether a waiter was woken by [`wake_first`](Self::wake_first) and was not polled since.
    pub(super) fn is_woken(&self, key: &Key) -> bool {
        self.slots[key.0 as usize].woken
    }

    /// Puts all waiters into the lists of the levels that they have now; waiters of one level stay in their order.
    pub(super) fn sort(&mut self, level_of: impl Fn(&N) -> Option<u8>) {
        let mut waiting = Vec::new();
        for (_, first) in self.levels.in_order() {
            let mut place = first;
            while place != NONE {
                waiting.push(place);
                place = self.slots[place as usize].next;
            }
        }
        for place in waiting {
            let State::Waiting(need, _) = &self.slots[place as usize].state else {
                unreachable!("only waiting slots are in a list");
            };
            let level = level_of(need);
            if let Some(level) = level
                && level != self.slots[place as usize].level
            {
                self.unlink(place);
                self.slots[place as usize].level = level;
                self.link(place);
            }
        }
    }

    /// A slot whose grant was not taken yet. Looks at all.
    pub(super) fn granted(&self, is_it: impl Fn(&G) -> bool) -> Option<u32> {
        let is_it = |slot: &Slot<N, G>| matches!(&slot.state, State::Granted(to) if is_it(to));
        self.slots.iter().position(is_it).map(|place| place as u32)
    }

    /// Takes the grant of a slot back: its waiter waits again, as the first of its level.
    pub(super) fn revoke(&mut self, place: u32, need: N, waker: Waker) -> G {
        let slot = &mut self.slots[place as usize];
        let State::Granted(grant) = mem::replace(&mut slot.state, State::Waiting(need, waker))
        else {
            unreachable!("only a grant is revoked");
        };
        slot.woken = false;
        slot.previous = NONE;
        let level = slot.level;
        let list = self.levels.of(level);
        let next = mem::replace(&mut list.first, place);
        if next == NONE {
            list.last = place;
        } else {
            self.slots[next as usize].previous = place;
        }
        self.slots[place as usize].next = next;
        grant
    }

    /// Hands `grant` to the waiter whose turn it is; the caller wakes it. `None`: the queue is empty.
    pub(super) fn grant(&mut self, grant: G) -> Option<(N, Waker)> {
        let (_, place) = self.levels.turn()?;
        self.grant_at(place, grant)
    }

    /// As [`grant`](Self::grant), for the waiter of that level that came last.
    pub(super) fn grant_last(&mut self, grant: G) -> Option<(N, Waker)> {
        let (level, _) = self.levels.turn()?;
        let place = self.levels.of(level).last;
        self.grant_at(place, grant)
    }

    fn grant_at(&mut self, place: u32, grant: G) -> Option<(N, Waker)> {
        self.unlink(place);
        let granted = State::Granted(grant);
        match mem::replace(&mut self.slots[place as usize].state, granted) {
            State::Waiting(need, waker) => Some((need, waker)),
            _ => unreachable!("only waiting slots are in a list"),
        }
    }

    /// Takes out the waiter whose turn it is. The caller tells it (grant.rs) and wakes it: its key names nothing from
    /// now on.
    pub(super) fn take_first(&mut self) -> Option<(N, Waker)> {
        let (_, place) = self.levels.turn()?;
        self.unlink(place);
        match self.free(place) {
            State::Waiting(need, waker) => Some((need, waker)),
            _ => unreachable!("only waiting slots are in a list"),
        }
    }

    /// A waiter that is still in the queue has this waker from now on. The waker that it had before comes back, to be
    /// dropped outside of the lock.
    pub(super) fn set_waker(&mut self, key: &Key, waker: Waker) -> Waker {
        match &mut self.slots[key.0 as usize].state {
            State::Waiting(_, own) => mem::replace(own, waker),
            _ => unreachable!("it was not granted anything, nor taken out"),
        }
    }

    /// The waker of the waiter whose turn it is, to be woken, and the waiter's level. The waiter stays in the queue;
    /// until it is polled again it has no waker.
    pub(super) fn wake_first(&mut self) -> Option<(Waker, u8)> {
        let (level, first) = self.levels.turn()?;
        let slot = &mut self.slots[first as usize];
        slot.woken = true;
        match &mut slot.state {
            State::Waiting(_, waker) => {
                let waker = mem::replace(waker, Waker::noop().clone());
                Some((waker, level))
            }
            _ => unreachable!("only waiting slots are in a list"),
        }
    }

    /// Hands a copy of `grant` to all waiters, in their order.
    pub(super) fn grant_all(&mut self, grant: G, wakers: &mut Wakers)
    where
        G: Clone,
    {
        while let Some((_, waker)) = self.grant(grant.clone()) {
            wakers.push(waker);
        }
    }

    /// The waker of a waiter that was handed nothing yet.
    pub(super) fn waker(&self, key: &Key) -> Option<&Waker> {
        match &self.slots[key.0 as usize].state {
            State::Waiting(_, own) => Some(own),
            _ => None,
        }
    }

    /// A poll by a waiter: takes what was handed over and frees the slot, or keeps the place with this waker.
    /// The waker that is not needed comes back, to be dropped outside of the lock.
    pub(super) fn poll(&mut self, key: &mut Option<Key>, waker: Waker) -> (Option<G>, Waker) {
        let place = key.as_ref().expect("a waiter has a slot").0;
        let slot = &mut self.slots[place as usize];
        slot.woken = false;
        match &mut slot.state {
            State::Waiting(_, own) => (None, mem::replace(own, waker)),
            _ => match self.free(place) {
                State::Granted(grant) => {
                    *key = None;
                    (Some(grant), waker)
                }
                _ => unreachable!("a key's slot is not vacant"),
            },
        }
    }

    /// The waiter is dropped.
    pub(super) fn leave(&mut self, key: Key) -> Left<N, G> {
        if matches!(self.slots[key.0 as usize].state, State::Waiting(..)) {
            self.unlink(key.0);
        }
        match self.free(key.0) {
            State::Waiting(need, waker) => Left::Waiting(need, waker),
            State::Granted(grant) => Left::Granted(grant),
            State::Vacant => unreachable!("a key's slot is not vacant"),
        }
    }

    fn free(&mut self, place: u32) -> State<N, G> {
        let slot = &mut self.slots[place as usize];
        let state = mem::replace(&mut slot.state, State::Vacant);
        slot.next = self.vacant;
        self.vacant = place;
        self.taken -= 1;
        if self.taken == 0 && self.slots.len() > KEPT_SLOTS {
            self.slots = Vec::new();
            self.vacant = NONE;
        }
        state
    }

    /// Puts a slot at the end of its level's list.
    fn link(&mut self, place: u32) {
        let level = self.slots[place as usize].level;
        let list = self.levels.of(level);
        let last = mem::replace(&mut list.last, place);
        if last == NONE {
            list.first = place;
        } else {
            self.slots[last as usize].next = place;
        }
        let slot = &mut self.slots[place as usize];
        slot.previous = last;
        slot.next = NONE;
    }

    fn unlink(&mut self, place: u32) {
        let Slot {
            next,
            previous,
            level,
            ..
        } = self.slots[place as usize];
        let list = self.levels.of(level);
        if list.first == place {
            // The next one's line is not touched.
            list.first = next;
            if next == NONE {
                list.last = NONE;
            }
            return;
        }
        self.slots[previous as usize].next = next;
        match next {
            NONE => list.last = previous,
            _ => self.slots[next as usize].previous = previous,
        }
    }
}

/// Wakers to be woken when the lock is released, in this order.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Wakers {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakers {
    pub(super) fn push(&mut self, waker: Waker) {
        if self.first.is_none() {
            self.first = Some(waker);
        } else {
            self.others.push(waker);
        }
    }

    /// Wakes all.
    #[inline]
    pub(super) fn wake(self) {
        let Some(first) = self.first else {
            return;
        };
        wake_one(first);
        if !self.others.is_empty() {
            self.others.into_iter().for_each(wake_one);
        }
    }
}

/// A waker may be the program's code: its panic must not cost others their wake-up, nor the caller its result.
#[inline]
pub(super) fn wake_one(waker: Waker) {
    contained(|| waker.wake());
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    fn order(lists: &mut Lists<u32, ()>) -> Vec<u32> {
        std::iter::from_fn(|| lists.grant(()).map(|(need, _)| need)).collect()
    }

    fn filled(entries: &[(u8, u32)]) -> (Lists<u32, ()>, Vec<Key>) {
        let mut lists = Lists::new();
        let keys = entries
            .iter()
            .map(|&(level, name)| lists.enter(level, name, Waker::noop().clone()))
            .collect();
        (lists, keys)
    }

    #[test]
    fn more_urgent_levels_go_first_and_equals_in_the_order_of_arrival() {
        let (mut lists, _keys) = filled(&[(2, 20), (0, 1), (2, 21), (1, 10), (0, 2)]);
        assert_eq!(lists.first(), Some(&1));
        assert_eq!(order(&mut lists), [1, 2, 10, 20, 21]);
        assert!(lists.is_empty());
    }

    #[test]
    fn a_waiter_that_leaves_from_any_place_breaks_no_list() {
        for gone in 0..4 {
            let (mut lists, mut keys) = filled(&[(1, 0), (1, 1), (1, 2), (1, 3)]);
            assert!(matches!(lists.leave(keys.remove(gone)), Left::Waiting(..)));
            let expected: Vec<u32> = (0..4).filter(|&name| name != gone as u32).collect();
            assert_eq!(order(&mut lists), expected);
        }
    }

    #[test]
    fn a_grant_that_was_not_taken_comes_back_when_its_waiter_leaves() {
        let mut lists: Lists<(), u32> = Lists::new();
        let key = lists.enter(0, (), Waker::noop().clone());
        assert!(lists.grant(7).is_some());
        assert!(lists.is_empty());
        assert!(matches!(lists.leave(key), Left::Granted(7)));
    }

    #[test]
    fn a_polled_waiter_keeps_its_place_and_takes_its_grant_once() {
        let mut lists: Lists<u32, ()> = Lists::new();
        let mut first = Some(lists.enter(0, 1, Waker::noop().clone()));
        let _second = lists.enter(0, 2, Waker::noop().clone());
        assert!(lists.poll(&mut first, Waker::noop().clone()).0.is_none());
        assert_eq!(lists.grant(()).map(|(need, _)| need), Some(1));
        assert!(lists.poll(&mut first, Waker::noop().clone()).0.is_some());
        assert!(first.is_none());
    }

    #[test]
    fn a_woken_waiter_is_known_as_woken_until_it_is_polled() {
        let (mut lists, keys) = filled(&[(2, 20), (1, 10), (2, 21)]);
        assert_eq!(lists.wake_first().map(|(_, level)| level), Some(1));
        assert_eq!(lists.next_level(), Some(2));
        let [mut low, mut high, _last] = <[Key; 3]>::try_from(keys).unwrap().map(Some);
        let woken =
            |lists: &Lists<u32, ()>, key: &Option<Key>| lists.is_woken(key.as_ref().unwrap());
        assert!(woken(&lists, &high) && !woken(&lists, &low));
        assert_eq!(lists.level_of(high.as_ref().unwrap()), 1);
        for key in [&mut high, &mut low] {
            assert!(lists.poll(key, Waker::noop().clone()).0.is_none());
            assert!(!woken(&lists, key));
        }
        let _ = lists.leave(high.unwrap());
        assert_eq!(
            (lists.first_level(), lists.next_level()),
            (Some(2), Some(2))
        );
        let _ = lists.leave(low.unwrap());
        assert_eq!(lists.next_level(), None);
    }

    #[test]
    fn slots_are_used_again_and_a_burst_of_waiters_leaves_no_memory_behind() {
        let (mut lists, keys) = filled(&vec![(0, 0); 10 * KEPT_SLOTS]);
        for key in keys {
            let _ = lists.leave(key);
        }
        assert_eq!(lists.slots.capacity(), 0);
        for _ in 0..10 {
            let key = lists.enter(0, 0, Waker::noop().clone());
            let _ = lists.leave(key);
        }
        assert_eq!(lists.slots.len(), 1);
    }
}
