//! Models of the shards: how far an entry is overtaken, and that it stays visible.

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

struct Level {
    queues: [Mutex<VecDeque<u64>>; 2],
    given: [Given; 2],
    shown: Groups,
    ready: Ready,
    clock: AtomicU64,
}

impl Level {
    fn new() -> Arc<Self> {
        Arc::new(Level {
            queues: [Mutex::new(VecDeque::new()), Mutex::new(VecDeque::new())],
            given: [Given::new(0, true), Given::new(0, true)],
            shown: Groups::new(1, 2),
            ready: Ready::new(),
            clock: AtomicU64::new(1),
        })
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    /// Returns a time after the entry is in.
    fn put(&self, shard: usize) -> u64 {
        let stamp = self.now();
        self.queues[shard].lock().unwrap().push_back(stamp);
        fence(SeqCst);
        self.shown.show(0, shard);
        self.ready.announce_in_order(0);
        self.now()
    }

    fn pop(&self, pace: &Pace, shard: usize) -> Option<u64> {
        let stamp = self.queues[shard].lock().unwrap().pop_front()?;
        self.given[shard].note(stamp);
        pace.takes(stamp);
        Some(stamp)
    }

    fn others(&self, home: usize) -> impl Iterator<Item = (usize, u64)> {
        let others = self.shown.at(0, 0).filter(move |&shard| shard != home);
        let filled = others.filter(|&shard| !self.queues[shard].lock().unwrap().is_empty());
        filled.map(|shard| (shard, self.given[shard].stamp()))
    }

    fn take(&self, pace: &Pace, home: usize) -> Option<u64> {
        while pace.must_look() {
            let Some((shard, _)) = pace.look(self.others(home)) else {
                break;
            };
            if let Some(stamp) = self.pop(pace, shard) {
                return Some(stamp);
            }
        }
        self.pop(pace, home)
    }
}

/// An entry is put into shard 1 beside two workers of shard 0, which has two entries already and gets two more,
/// younger ones.
#[test]
fn no_worker_overtakes_by_more_than_its_free_takings() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let level = Level::new();
        level.put(0);
        let workers = [(), ()].map(|()| {
            let level = level.clone();
            thread::spawn(move || {
                let pace = Pace::default();
                std::array::from_fn::<_, 3, _>(|_| level.take(&pace, 0))
            })
        });
        let put_in = level.put(1);
        level.put(0);
        level.put(0);
        level.put(0);
        let taken = workers.map(|worker| worker.join().unwrap());
        let is_old = |stamp: &&Option<u64>| stamp.is_some_and(|stamp| stamp < put_in);
        for stamps in &taken {
            let waits = level.queues[1].lock().unwrap().len() == 1;
            let young = stamps.iter().flatten().filter(|stamp| **stamp > put_in);
            if waits {
                let most = FREE as usize + 1;
                assert!(
                    young.count() <= most,
                    "{taken:?} {}",
                    stamps.iter().filter(is_old).count()
                );
            }
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
            let is_filled = || !level.queues[1].lock().unwrap().is_empty();
            for shard in level.shown.at(0, 0) {
                if shard == 1 && !is_filled() {
                    level.shown.clear(0, shard, is_filled);
                }
            }
            let is_queued = || level.others(0).next().is_some();
            let _ = level.ready.clear(0, || !is_queued());
        };
        let theirs = level.clone();
        let clearer = thread::spawn(move || clears(&theirs));
        let theirs = level.clone();
        let inserter = thread::spawn(move || theirs.put(1));
        clears(&level);
        clearer.join().unwrap();
        inserter.join().unwrap();
        assert!(level.shown.shows(0, 1), "nobody looks into the shard");
        assert_eq!(level.ready.levels(), 1, "the entry is invisible");
    });
}
