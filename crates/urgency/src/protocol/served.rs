//! Which levels workers serve: a word that tells with one load that no worker serves anything less urgent.
//!
//! A stack that forks asks whether a worker would come for the fork. A worker that serves a less urgent level would, so
//! the answer is in the levels that all workers show. To read all of these is work in proportion to the number of
//! workers, and most programs have no less urgent work at the time. The word has a bit for each level that some worker
//! shows, and perhaps for more: the first thread that relies on a bit and finds no worker at that level clears the bit.
//!
//! # Protocol
//!
//! - A worker shows its level, *then* calls [`Served::show`], and *then* looks at the levels above
//!   (`sched/forks/hunger.rs`).
//! - A stack that begins shows its level, then looks at the levels below, then at the workers that show them.
//! - A thread that finds no worker at a level of the word calls [`Served::clear`], which looks once more behind the
//!   clearing. If there is one after all, the caller alerts it: an insertion may have relied on the word meanwhile.
//!
//! *Named race, "show under clear"*: a worker shows its level, sees the bit still set, and leaves it alone, while
//! another thread is about to clear it. The second look comes after the clearing and finds the worker's level.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, Ordering, fence},
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Served(crossbeam_utils::CachePadded<AtomicU64>);

impl Served {
    pub(crate) fn new() -> Self {
        Served(crossbeam_utils::CachePadded::new(AtomicU64::new(0)))
    }

    /// The calling worker has shown that it serves `level`.
    #[inline]
    pub(crate) fn show(&self, level: u8) {
        let bit = 1 << level;
        if self.0.load(Ordering::SeqCst) & bit == 0 {
            self.0.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// The levels that are less urgent than `level` and that some worker may serve.
    #[inline]
    pub(crate) fn below(&self, level: u8) -> u64 {
        self.0.load(Ordering::SeqCst) & (!1 << level)
    }

    /// The levels that are more urgent than `level` and that some worker may serve.
    #[inline]
    pub(crate) fn above(&self, level: u8) -> u64 {
        self.0.load(Ordering::SeqCst) & !(u64::MAX << level)
    }

    /// No worker was found at these levels. `served` tells, after the clearing, which of them workers serve after all.
    /// Returns those: a third party may have relied on the word meanwhile.
    #[cold]
    pub(crate) fn clear(&self, levels: u64, served: impl FnOnce() -> u64) -> u64 {
        self.0.fetch_and(!levels, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        chaos::delay();
        let back = served() & levels;
        if back != 0 {
            self.0.fetch_or(back, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
        back
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_levels_below_and_above_leave_out_the_level_itself() {
        let served = Served::new();
        [0, 2, 63].into_iter().for_each(|level| served.show(level));
        assert_eq!((served.below(2), served.above(2)), (1 << 63, 1));
        assert_eq!((served.below(63), served.above(0)), (0, 0));
        assert_eq!(served.clear(u64::MAX, || 1 << 63), 1 << 63);
        assert_eq!(served.below(0), 1 << 63);
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::sys::primitives::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering::SeqCst},
        thread,
    };

    const NONE: u8 = u8::MAX;

    /// loom takes sequentially consistent accesses for acquiring and releasing ones: a fence stands in for their order.
    fn in_order() {
        fence(SeqCst);
    }

    /// A worker goes down to level 1 while a stack at level 0 forks, and a third clears a stale bit: the fork sees the
    /// worker, or the worker sees the stack.
    #[test]
    fn a_worker_that_goes_below_and_a_fork_above_see_each_other() {
        loom::model(|| {
            let served = Arc::new(Served::new());
            served.show(1);
            let levels = Arc::new([AtomicU8::new(NONE), AtomicU8::new(NONE)]);
            let forked = Arc::new(AtomicBool::new(false));
            let (s, l, f) = (served.clone(), levels.clone(), forked.clone());
            let worker = thread::spawn(move || {
                l[1].store(1, SeqCst);
                in_order();
                s.show(1);
                // It asks the stack above for forks: the next scheduling point of that stack answers.
                s.above(1) != 0 && l[0].load(SeqCst) == 0 || f.load(SeqCst)
            });
            levels[0].store(0, SeqCst);
            served.show(0);
            in_order();
            let shown = |l: &[AtomicU8; 2]| u64::from(l[1].load(SeqCst) == 1) << 1;
            let mut sees = false;
            if served.below(0) != 0 {
                sees = shown(&levels) != 0;
                if !sees {
                    served.clear(2, || shown(&levels));
                    sees = served.below(0) != 0;
                }
            }
            forked.store(true, SeqCst);
            in_order();
            let asked = worker.join().unwrap();
            assert!(sees || asked, "the job stays hidden from a worker below");
        });
    }
}
