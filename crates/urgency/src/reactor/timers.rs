//! Pending timers, the earliest first.
//!
//! A four-ary heap of deadlines over a slab of wakers that know their place in the heap. Adding a
//! timer later than all others, as most timeouts are, moves nothing; cancelling costs as much as adding;
//! neither allocates once the vectors have grown. Timers with the same deadline fire in the
//! order in which they were added.
//!
//! Rejected: a hierarchical wheel (constant time, but it must be turned: either it ticks or it is
//! searched for the next occupied slot, and it rounds), a B-tree (allocates, three times slower for the
//! timeout that is added and cancelled).

#![cfg(not(urgency_loom))]

use crate::sys::slab::Slab;
use std::task::Waker;

/// Four children to a node: half the levels of a binary heap, and siblings share cache lines.
const CHILDREN: usize = 4;

/// A pending timer; finds nothing once the timer fired or was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerKey(u64);

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Timers {
    heap: Vec<Entry>,
    pending: Slab<Pending>,
    added: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    /// Breaks ties.
    number: u64,
    key: u64,
}

#[derive(Debug)]
struct Pending {
    place: usize,
    waker: Waker,
}

impl Entry {
    fn order(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Timers {
            heap: Vec::new(),
            pending: Slab::new(),
            added: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// When the next timer is due.
    pub(crate) fn earliest(&self) -> Option<u64> {
        self.heap.first().map(|entry| entry.at)
    }

    pub(crate) fn insert(&mut self, at: u64, waker: Waker) -> TimerKey {
        let place = self.heap.len();
        let key = self.pending.insert(Pending { place, waker });
        self.added += 1;
        self.heap.push(Entry {
            at,
            number: self.added,
            key,
        });
        self.sift_up(place);
        TimerKey(key)
    }

    pub(crate) fn waker_mut(&mut self, key: TimerKey) -> Option<&mut Waker> {
        self.pending
            .get_mut(key.0)
            .map(|pending| &mut pending.waker)
    }

    /// Gives a pending timer another time, as if it were added now. `false`: it fired or was cancelled.
    pub(crate) fn reset(&mut self, key: TimerKey, at: u64) -> bool {
        let Some(pending) = self.pending.get_mut(key.0) else {
            return false;
        };
        let place = pending.place;
        self.added += 1;
        let entry = &mut self.heap[place];
        (entry.at, entry.number) = (at, self.added);
        let place = self.sift_up(place);
        self.sift_down(place);
        true
    }

    /// Removes a pending timer and returns its waker, to be dropped without a lock.
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Waker> {
        let pending = self.pending.remove(key.0)?;
        self.take_from_heap(pending.place);
        Some(pending.waker)
    }

    /// Removes all timers that are due at `now` and adds their wakers in the order of their deadlines.
    /// Returns how many.
    pub(crate) fn expire(&mut self, now: u64, ready: &mut Vec<Waker>) -> usize {
        let mut fired = 0;
        while let Some(first) = self.heap.first()
            && first.at <= now
        {
            let pending = self.pending.remove(first.key);
            self.take_from_heap(0);
            ready.push(pending.expect("each entry of the heap is pending").waker);
            fired += 1;
        }
        fired
    }

    fn take_from_heap(&mut self, place: usize) {
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            let place = self.sift_up(place);
            self.sift_down(place);
        }
    }

    fn sift_up(&mut self, mut place: usize) -> usize {
        let moving = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent].order() <= moving.order() {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, moving);
        place
    }

    fn sift_down(&mut self, mut place: usize) {
        let moving = self.heap[place];
        loop {
            let first = place * CHILDREN + 1;
            let last = (first + CHILDREN).min(self.heap.len());
            let Some(least) = (first..last).min_by_key(|&child| self.heap[child].order()) else {
                break;
            };
            if moving.order() <= self.heap[least].order() {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, moving);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.pending
            .get_mut(entry.key)
            .expect("each entry of the heap is pending")
            .place = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::BTreeMap,
        sync::{Arc, Mutex},
        task::Wake,
    };

    struct Numbered(u64, Arc<Mutex<Vec<u64>>>);

    impl Wake for Numbered {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    /// The heap against a B-tree, with a fixed pseudo-random sequence of operations.
    #[test]
    fn timers_fire_by_deadline_and_then_by_age_whatever_was_cancelled_or_reset_between() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut timers = Timers::new();
        let mut model = BTreeMap::new();
        let mut keys = Vec::new();
        let mut random = 88172645463325252u64;
        let mut now = 0;
        for number in 0..20_000u64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            match random % 9 {
                0..=4 => {
                    let at = now + random % 97;
                    let waker = Arc::new(Numbered(number, log.clone())).into();
                    keys.push((timers.insert(at, waker), (at, number)));
                    model.insert((at, number), number);
                }
                // From now on it is as old as if it were added in this step.
                8 if !keys.is_empty() => {
                    let index = random as usize % keys.len();
                    let (key, place) = &mut keys[index];
                    let at = now + random / 9 % 97;
                    let of_model = model.remove(place);
                    assert_eq!(timers.reset(*key, at), of_model.is_some());
                    *place = (at, number);
                    model.extend(of_model.map(|first| (*place, first)));
                }
                5 | 6 if !keys.is_empty() => {
                    let (key, place) = keys.swap_remove(random as usize % keys.len());
                    assert_eq!(
                        timers.remove(key).is_some(),
                        model.remove(&place).is_some(),
                        "a fired timer cannot be cancelled"
                    );
                }
                _ => {
                    now += random % 13;
                    let mut ready = Vec::new();
                    let fired = timers.expire(now, &mut ready);
                    ready.into_iter().for_each(Waker::wake);
                    let later = model.split_off(&(now + 1, 0));
                    let expected: Vec<_> = model.into_values().collect();
                    model = later;
                    assert_eq!(fired, expected.len());
                    assert_eq!(std::mem::take(&mut *log.lock().unwrap()), expected);
                }
            }
            assert_eq!(timers.len(), model.len());
            let earliest = model.first_key_value().map(|(key, _)| key.0);
            assert_eq!(timers.earliest(), earliest);
        }
    }
}
