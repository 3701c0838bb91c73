//! Models of the shards and their lists: how far an entry is overtaken, and that it stays visible.

use super::*;
use crate::{
    protocol::{groups::Groups, ready::Ready},
    sys::primitives::{
        Arc, Mutex,
        atomic::{Ordering::*, fence},
        thread,
    },
};
use std::collections::VecDeque;

/// Two shards of two lists each: list 2 s and the next one are of shard s.
struct Level {
    queues: [Mutex<VecDeque<u64>>; 4],
    given: [Given; 4],
    shown: Groups,
    ready: Ready,
    clock: AtomicU64,
}

impl Level {
    fn new() -> Arc<Self> {
        let numbers = [0, 1, 2, 3];
        Arc::new(Level {
            queues: numbers.map(|_| Mutex::new(VecDeque::new())),
            given: numbers.map(|_| Given::new(0, true)),
            shown: Groups::new(1, 2),
            ready: Ready::new(),
            clock: AtomicU64::new(1),
        })
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    /// Returns a time after the entry is in.
    fn put(&self, list: usize) -> u64 {
        let stamp = self.now();
        self.queues[list].lock().unwrap().push_back(stamp);
        fence(SeqCst);
        self.shown.show(0, list / 2);
        self.ready.announce_in_order(0);
        self.now()
    }

    fn is_empty(&self, list: usize) -> bool {
        self.queues[list].lock().unwrap().is_empty()
    }

    fn pop(&self, pace: &Pace, list: usize) -> Option<u64> {
        let stamp = self.queues[list].lock().unwrap().pop_front()?;
        self.given[list].note(stamp);
        pace.takes(stamp);
        Some(stamp)
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let lists = self
            .shown
            .at(0, 0)
            .flat_map(|shard| [2 * shard, 2 * shard + 1]);
        let filled = lists.filter(|&list| !self.is_empty(list));
        filled.map(|list| (list, self.given[list].stamp()))
    }

    /// By a worker of the first shard.
    fn take(&self, pace: &Pace) -> Option<u64> {
        while pace.must_look() {
            let Some((list, _)) = pace.look(self.filled()) else {
                break;
            };
            if let Some(stamp) = self.pop(pace, list) {
                return Some(stamp);
            }
        }
        let next = usize::from(self.given[1].stamp() < self.given[0].stamp());
        self.pop(pace, next).or_else(|| self.pop(pace, 1 - next))
    }
}

/// An entry is put into shard 1 beside two workers of shard 0, whose lists have an entry each already and get two more,
/// younger ones. So three lists have something, and one stays empty.
#[test]
fn no_worker_overtakes_by_more_than_its_free_takings_and_one_of_each_other_list() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let level = Level::new();
        level.put(0);
        level.put(1);
        let workers = [(), ()].map(|()| {
            let level = level.clone();
            thread::spawn(move || {
                let pace = Pace::default();
                std::array::from_fn::<_, 4, _>(|_| level.take(&pace))
            })
        });
        let put_in = level.put(2);
        for list in [0, 1, 0, 1] {
            level.put(list);
        }
        let taken = workers.map(|worker| worker.join().unwrap());
        if level.is_empty(2) {
            return;
        }
        for stamps in &taken {
            let young = stamps.iter().flatten().filter(|stamp| **stamp > put_in);
            assert!(young.count() <= FREE as usize + 2, "{taken:?}");
        }
    });
}

/// An entry is put into shard 1 while two workers of shard 0 find the level empty: it stays visible.
#[test]
fn an_entry_in_a_shard_is_not_left_behind_two_that_clear() {
    loom::model(|| {
        let level = Level::new();
        level.shown.show(0, 1);
        level.ready.announce(0);
        let clears = |level: &Level| {
            let is_filled = || !level.is_empty(2);
            for shard in level.shown.at(0, 0) {
                if shard == 1 && !is_filled() {
                    level.shown.clear(0, shard, is_filled);
                }
            }
            let is_queued = || level.filled().any(|(list, _)| list == 2);
            let _ = level.ready.clear(0, || !is_queued());
        };
        let theirs = level.clone();
        let clearer = thread::spawn(move || clears(&theirs));
        let theirs = level.clone();
        let inserter = thread::spawn(move || theirs.put(2));
        clears(&level);
        clearer.join().unwrap();
        inserter.join().unwrap();
        assert!(level.shown.shows(0, 1), "nobody looks into the shard");
        assert_eq!(level.ready.levels(), 1, "the entry is invisible");
    });
}
