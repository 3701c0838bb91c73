//! Groups of workers of which something is true: a set, for each level, that names all of them and perhaps more.
//!
//! The level that a worker serves, and whether it has tasks in a ring, stand on the worker's own cache lines, where its
//! holder writes them without disturbing other threads. To read these lines of all workers takes steps in proportion to
//! their number. So there is one word for each level with a bit for each *group* of workers. A reader looks at the
//! workers of the groups that are set there, and at none if the word is empty.
//!
//! A group has eight workers, or more where 64 groups of eight are not enough. A runtime of up to eight workers has
//! one.
//!
//! # Protocol
//!
//! - A worker writes that something is true of it, *then* calls [`Groups::show`], with a sequentially consistent step
//!   between the two. The bit is usually set already, and `show` is a load.
//! - Nobody takes a bit back when it is no longer true. A reader that finds a group without any such worker calls
//!   [`Groups::clear`], which looks once more behind the clearing, and sets the bit again if it was wrong.
//!
//! *Named race, "show under clear"*: a worker sees the bit still set while another thread is about to clear it. The
//! second look finds the worker. But a third thread may have read the word meanwhile, and found nothing. Code that
//! relies on a word that says nothing must be safe from that, by a later look of the worker's own or of the clearing
//! thread:
//!
//! - *rings*: the groups of a level are cleared only on the way to `Ready::clear` of the same level, whose second look
//!   comes after. A group's shard of the pool (`pace.rs`) is shown and cleared with its rings. If a third party has
//!   cleared the level's bit for a set that was empty for a moment, the one that restored the group sets it again
//!   (model below).
//! - *served levels*: the worker looks at the ready levels after it has shown its own. A reader that restores a group
//!   alerts its workers, and shows the level in the word of `served.rs` again, which others may have cleared meanwhile.
//!   A worker that went down to a less urgent level meanwhile has asked no stack in that group for forks: the reader
//!   leaves that to the next expiry of relief (model below).

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, Ordering, fence},
};
use crossbeam_utils::CachePadded;
use std::{iter, ops::Range};

/// Groups are not smaller than two to this power.
#[cfg(not(urgency_loom))]
const LEAST_SHIFT: u32 = 3;
#[cfg(urgency_loom)]
const LEAST_SHIFT: u32 = 0;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Groups {
    by_level: Box<[CachePadded<AtomicU64>]>,
    /// A group has two to this power workers.
    shift: u32,
    workers: usize,
}

/// A group of so many workers has two to this power.
fn shift_for(workers: usize) -> u32 {
    let fits = |shift: &u32| workers.div_ceil(1 << shift) <= 64;
    (LEAST_SHIFT..)
        .find(fits)
        .expect("groups can have any size")
}

/// How many groups can run at once, of so many workers on so many processors.
pub(crate) fn groups_of_cores(workers: usize, processors: usize) -> usize {
    let at_once = workers.min(processors).max(1);
    at_once.div_ceil(1 << shift_for(workers))
}

impl Groups {
    /// For so many levels and workers: nothing is true of anybody.
    pub(crate) fn new(levels: usize, workers: usize) -> Self {
        Groups {
            by_level: (0..levels)
                .map(|_| CachePadded::new(AtomicU64::new(0)))
                .collect(),
            shift: shift_for(workers),
            workers,
        }
    }

    /// The group of a worker.
    #[inline]
    pub(crate) fn group_of(&self, worker: usize) -> usize {
        worker >> self.shift
    }

    /// Whether all workers are one group: then there is nothing to be gained by clearing.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.workers <= 1 << self.shift
    }

    fn bit(&self, worker: usize) -> u64 {
        1 << self.group_of(worker)
    }

    /// It is true of this worker, at this level.
    #[inline]
    pub(crate) fn show(&self, level: u8, worker: usize) {
        self.show_group(level, self.group_of(worker));
    }

    /// It is true of this group, at this level.
    #[inline]
    pub(crate) fn show_group(&self, level: u8, group: usize) {
        let bit = 1 << group;
        let word = &self.by_level[usize::from(level)];
        if word.load(Ordering::SeqCst) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Whether the worker's group is named, as far as one can see without ordering.
    #[inline]
    pub(crate) fn shows(&self, level: u8, worker: usize) -> bool {
        self.by_level[usize::from(level)].load(Ordering::Relaxed) & self.bit(worker) != 0
    }

    /// The groups of which it may be true; `turn` says which comes first.
    pub(crate) fn at(&self, level: u8, turn: u32) -> impl Iterator<Item = usize> + use<> {
        let groups = ((self.workers - 1) >> self.shift) as u32 + 1;
        let first = turn % groups;
        let word = self.by_level[usize::from(level)].load(Ordering::SeqCst);
        let mut left = word.rotate_right(first);
        iter::from_fn(move || {
            let next = (left != 0).then(|| (left.trailing_zeros() + first) % 64)?;
            left &= left - 1;
            Some(next as usize)
        })
    }

    /// The workers of a group.
    pub(crate) fn members(&self, group: usize) -> Range<usize> {
        let first = group << self.shift;
        first..self.workers.min(first + (1 << self.shift))
    }

    /// It was true of no member of the group. `is_true` looks once more behind the clearing. `true`: it is after all,
    /// and the bit is set again.
    #[cold]
    pub(crate) fn clear(&self, level: u8, group: usize, is_true: impl FnOnce() -> bool) -> bool {
        let word = &self.by_level[usize::from(level)];
        word.fetch_and(!(1 << group), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        chaos::delay();
        let restores = is_true();
        if restores {
            word.fetch_or(1 << group, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
        restores
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_worker_is_in_one_of_at_most_64_groups() {
        for workers in [1, 2, 8, 9, 63, 64, 65, 512, 513, 1024] {
            let groups = Groups::new(1, workers);
            assert_eq!(groups.is_one(), workers <= 8);
            for worker in 0..workers {
                groups.show(0, worker);
            }
            for turn in [0, 1, 7, 63, 64, 1000] {
                let members = groups.at(0, turn).flat_map(|group| groups.members(group));
                let mut members: Vec<_> = members.collect();
                members.sort_unstable();
                assert_eq!(members, (0..workers).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn there_are_no_more_groups_of_cores_than_processors_need() {
        for (workers, processors, groups) in [
            (1, 1, 1),
            (64, 2, 1),
            (8, 8, 1),
            (9, 9, 2),
            (128, 128, 16),
            (1024, 1024, 64),
            (256, 16, 2),
            (8, usize::MAX, 1),
        ] {
            assert_eq!(groups_of_cores(workers, processors), groups);
        }
    }

    #[test]
    fn a_group_is_named_until_it_is_cleared_in_vain_or_not() {
        let groups = Groups::new(2, 100);
        groups.show(1, 50);
        assert!(groups.shows(1, 55) && !groups.shows(1, 56) && !groups.shows(0, 50));
        assert_eq!(groups.at(1, 3).collect::<Vec<_>>(), [6]);
        assert!(groups.clear(1, 6, || true) && groups.shows(1, 50));
        assert!(!groups.clear(1, 6, || false) && !groups.shows(1, 50));
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::{
        protocol::{ready::Ready, served::Served},
        sys::primitives::{
            Arc,
            atomic::{AtomicUsize, Ordering::*},
            thread,
        },
    };

    /// A worker pushes into its ring while two others find the level empty: the entry is seen.
    #[test]
    fn an_entry_in_a_ring_is_not_left_behind_two_that_clear() {
        loom::model(|| {
            let ready = Arc::new(Ready::new());
            let groups = Arc::new(Groups::new(1, 2));
            let ring = Arc::new(AtomicUsize::new(0));
            groups.show(0, 1);
            ready.announce(0);
            let clears = |ready: &Ready, groups: &Groups, ring: &AtomicUsize| {
                let has_entry = || ring.load(Acquire) != 0;
                for group in groups.at(0, 0) {
                    if !has_entry() {
                        groups.clear(0, group, has_entry);
                    }
                }
                let is_queued = || groups.at(0, 0).next().is_some() && has_entry();
                let _ = ready.clear(0, || !is_queued());
            };
            let (r, g, e) = (ready.clone(), groups.clone(), ring.clone());
            let other = thread::spawn(move || clears(&r, &g, &e));
            let (r, g, e) = (ready.clone(), groups.clone(), ring.clone());
            let pusher = thread::spawn(move || {
                e.store(1, Release);
                fence(SeqCst);
                g.show(0, 1);
                r.announce(0);
            });
            clears(&ready, &groups, &ring);
            other.join().unwrap();
            pusher.join().unwrap();
            assert!(groups.shows(0, 1), "nobody looks into the ring");
            assert_eq!(ready.levels(), 1, "the entry is invisible");
        });
    }

    /// A worker goes down to level 1 while a stack comes to level 0, whose group a third party forgets: the stack sees
    /// the worker, or the worker sees the stack, or the third party leaves the asking to an expiry.
    #[test]
    fn a_worker_that_goes_below_a_stack_whose_group_is_forgotten_is_not_missed() {
        const NOWHERE: usize = 2;
        loom::model(|| {
            let served = Arc::new(Served::new());
            let groups = Arc::new(Groups::new(2, 2));
            let levels = Arc::new([AtomicUsize::new(NOWHERE), AtomicUsize::new(NOWHERE)]);
            let unasked = Arc::new(AtomicUsize::new(0));
            groups.show(0, 0);
            served.show(0);
            let comes = |level: u8, served: &Served, groups: &Groups, levels: &[AtomicUsize; 2]| {
                let worker = usize::from(level);
                levels[worker].store(worker, SeqCst);
                // loom takes sequentially consistent accesses for acquiring and releasing ones.
                fence(SeqCst);
                groups.show(level, worker);
                served.show(level);
                fence(SeqCst);
            };
            let finds = |level: u8, groups: &Groups, levels: &[AtomicUsize; 2]| {
                let worker = usize::from(level);
                groups.at(level, 0).next().is_some() && levels[worker].load(SeqCst) == worker
            };
            let (s, g, l, u) = (
                served.clone(),
                groups.clone(),
                levels.clone(),
                unasked.clone(),
            );
            let forgets = thread::spawn(move || {
                let is_served = || l[0].load(SeqCst) == 0;
                for group in g.at(0, 0) {
                    if !is_served() && g.clear(0, group, is_served) {
                        s.show(0);
                        u.store(1, SeqCst);
                    }
                }
            });
            let (s, g, l) = (served.clone(), groups.clone(), levels.clone());
            let worker = thread::spawn(move || {
                comes(1, &s, &g, &l);
                s.above(1) != 0 && finds(0, &g, &l)
            });
            comes(0, &served, &groups, &levels);
            let sees = served.below(0) != 0 && finds(1, &groups, &levels);
            forgets.join().unwrap();
            let asks = worker.join().unwrap();
            assert!(
                sees || asks || unasked.load(SeqCst) == 1,
                "they miss each other"
            );
        });
    }

    /// A worker comes to level 1 while one party forgets its group and another one the level: both words name it.
    #[test]
    fn a_worker_is_found_by_its_level_and_its_group_while_others_forget_both() {
        loom::model(|| {
            let served = Arc::new(Served::new());
            let groups = Arc::new(Groups::new(2, 2));
            let level = Arc::new(AtomicUsize::new(0));
            groups.show(1, 1);
            served.show(1);
            let (s, g, l) = (served.clone(), groups.clone(), level.clone());
            let forgets_group = thread::spawn(move || {
                let is_served = || l.load(SeqCst) == 1;
                for group in g.at(1, 0) {
                    if !is_served() && g.clear(1, group, is_served) {
                        s.show(1);
                    }
                }
            });
            let (s, g, l) = (served.clone(), groups.clone(), level.clone());
            let worker = thread::spawn(move || {
                l.store(1, SeqCst);
                // loom takes sequentially consistent accesses for acquiring and releasing ones.
                fence(SeqCst);
                g.show(1, 1);
                fence(SeqCst);
                s.show(1);
            });
            let shown = || u64::from(groups.at(1, 0).next().is_some() && level.load(SeqCst) == 1);
            if served.below(0) != 0 && shown() == 0 {
                served.clear(2, || shown() << 1);
            }
            forgets_group.join().unwrap();
            worker.join().unwrap();
            assert!(groups.shows(1, 1), "its group is forgotten");
            assert_ne!(served.below(0), 0, "its level is forgotten");
        });
    }
}
