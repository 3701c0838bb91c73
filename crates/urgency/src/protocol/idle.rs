//! Idle workers and searchers: which workers sleep, which look for work, which must be woken.
//!
//! An idle worker is a permission that no stack uses: a bit in this set. It needs no thread. A thread that has work for
//! it claims the bit, and then uses the worker itself (a plain thread that calls `join`, a thread that returns from the
//! poller with an event in hand) or hands it to a spare thread.
//!
//! A *searcher* is a thread that has a worker, has no work, and is still looking. While there is a searcher, an
//! insertion wakes no thread: a wake-up costs the waker 10 µs and the sleeper 30 to 50.
//!
//! # Reserve
//!
//! A runtime may have more workers than there are processors, for code that sleeps in the kernel. A worker without work
//! is *hungry* while fewer workers run than there are processors; the others are *in reserve*. A worker of the reserve
//! would only share a processor with workers that run. So an insertion starts no worker of the reserve, and no stack
//! publishes a fork for one; `sched/rescue/reserve.rs` says when they are needed after all. (When every idle worker was
//! hungry, fib(32) on 2 processors took 5 ms with 2 workers, 326 ms with 64 and 1.6 s with 256: each fork was
//! published.)
//!
//! - Idle workers and searchers are *free*. With W workers, P processors and B stacks that hold a worker and do not
//!   come to a scheduling point (`sched/rescue/reserve.rs`), W - P - B free workers are in reserve, and the other free
//!   workers are hungry.
//! - P changes while the runtime runs, if the process may use other processors than before
//!   (`sched/machine/entitled.rs`).
//! - One word counts both. A worker is counted as a searcher, *then* asks whether it is hungry. So of several workers
//!   that run dry at once, the last finds out that it is hungry.
//! - The count of idle workers goes up before the bit is set, and down after it was cleared. It is never too low.
//! - A worker that runs dry takes tasks and stacks from the pools, whether it would be in reserve or not. A thread that
//!   runs already (it comes from the poller, or is an external thread) may take a worker of the reserve. So may a stack
//!   that can go on: its thread is there.
//!
//! # Protocol (no lost wake-up)
//!
//! - Inserter: 1. put the entry into the pool; 2. announce the level (a full barrier); 3. if no worker searches, claim
//!   an idle worker that is not in reserve and start it.
//! - Searcher that gives up: 1. [`Idle::release`] its worker; 2. [`Searchers::stop`] (a full barrier);
//!   3. look at the levels once more; if there is work, claim a worker back. In this order, because a stack that starts
//!   asks whether a worker is hungry, and keeps its forks to itself if none is. So at every moment it must see a
//!   searcher or an idle worker.
//! - Searcher that found work: [`Searchers::stop`], a full barrier, and if there is more work and no other worker
//!   searches, start the next idle worker: a woken worker wakes the next.
//!
//! *Named race, "first fork under release"*: a stack forks in a poll, and keeps the fork to itself, while a worker goes
//! idle that would have asked for it. A stack without forks that knows of a hungry worker says that it hides none
//! (`Worker::hides_forks`): when its poll begins, or when it answers a request. It has no room then. So its next fork
//! comes into the scheduler (`Attention::is_for_forks`), first says otherwise, and then looks whether a worker is
//! hungry. The worker that goes idle is hungry first, and then looks: one of the two sees the other. If a stack may
//! hide forks, the worker sees them behind a barrier on all processors.
//!
//! *Named race, "insert under release"*: the inserter looks at the set before the bit is there, the
//! worker looks at the levels before the announcement is there. The two barriers exclude that both look too early.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};
use crossbeam_utils::CachePadded;

/// One idle worker, in [`Idle::free`]; the lower half counts searchers.
const IDLE: u64 = 1 << 32;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Idle {
    words: Box<[AtomicU64]>,
    /// Idle workers and searchers.
    free: CachePadded<AtomicU64>,
    /// How many free workers are in reserve.
    withheld: AtomicUsize,
    /// How many workers there are.
    workers: usize,
    /// How many processors there are for them. It changes if the process may use others than before.
    processors: AtomicUsize,
}

/// How many workers of a job search. [`Idle`] counts the searchers of all jobs.
#[derive(Debug)]
pub(crate) struct Searchers(AtomicUsize);

impl Idle {
    /// A set for `workers` workers on so many processors, all in use.
    pub(crate) fn new(workers: usize, processors: usize) -> Self {
        Idle {
            words: (0..workers.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            free: CachePadded::new(AtomicU64::new(0)),
            withheld: AtomicUsize::new(workers.saturating_sub(processors)),
            workers,
            processors: AtomicUsize::new(processors),
        }
    }

    /// No stack uses worker `id` any longer. Ends with a full barrier.
    pub(crate) fn release(&self, id: usize) {
        chaos::delay();
        self.free.fetch_add(IDLE, Ordering::SeqCst);
        let old = self.words[id / 64].fetch_or(1 << (id % 64), Ordering::SeqCst);
        debug_assert_eq!(old >> (id % 64) & 1, 0, "a worker was released twice");
        fence(Ordering::SeqCst);
        chaos::delay();
    }

    /// Takes an idle worker, if there is one; `hint` is looked at first.
    pub(crate) fn claim(&self, hint: usize) -> Option<usize> {
        let first = hint / 64;
        for step in 0..self.words.len() {
            let index = (first + step) % self.words.len();
            let word = &self.words[index];
            let wanted = if step == 0 { 1 << (hint % 64) } else { 0 };
            let one = |idle: u64| match idle & wanted {
                0 => idle & idle.wrapping_neg(),
                wanted => wanted,
            };
            let take = |idle| (idle != 0).then(|| idle & !one(idle));
            if let Ok(idle) = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
                self.free.fetch_sub(IDLE, Ordering::SeqCst);
                return Some(index * 64 + one(idle).trailing_zeros() as usize);
            }
        }
        None
    }

    /// Takes this worker, if it is idle.
    pub(crate) fn claim_exactly(&self, id: usize) -> bool {
        let bit = 1 << (id % 64);
        let claimed = self.words[id / 64].fetch_and(!bit, Ordering::SeqCst) & bit != 0;
        if claimed {
            self.free.fetch_sub(IDLE, Ordering::SeqCst);
        }
        claimed
    }

    /// Whether this worker is idle.
    pub(crate) fn contains(&self, id: usize) -> bool {
        self.words[id / 64].load(Ordering::SeqCst) >> (id % 64) & 1 != 0
    }

    /// Whether any worker is idle, or about to be.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.free.load(Ordering::SeqCst) >= IDLE
    }
}

impl Searchers {
    pub(crate) fn new() -> Self {
        Searchers(AtomicUsize::new(0))
    }

    /// The calling worker starts to search.
    pub(crate) fn start(&self, idle: &Idle) {
        idle.free.fetch_add(1, Ordering::SeqCst);
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// The calling worker found work or gives up. Ends with a full barrier.
    pub(crate) fn stop(&self, idle: &Idle) {
        chaos::delay();
        let old = self.0.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(old, 0);
        idle.free.fetch_sub(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        chaos::delay();
    }

    /// How many workers search.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Idle {
    /// Whether a worker without work is hungry: fewer run than there are processors.
    #[inline]
    pub(crate) fn is_any_hungry(&self) -> bool {
        let free = self.free.load(Ordering::SeqCst);
        free != 0 && (free / IDLE + free % IDLE) as usize > self.withheld.load(Ordering::SeqCst)
    }

    /// Whether a worker runs for each processor.
    pub(crate) fn is_each_processor_in_use(&self) -> bool {
        // The count may be too high for a moment.
        let idle = (self.free.load(Ordering::SeqCst) / IDLE) as usize;
        self.workers.saturating_sub(idle) >= self.processors.load(Ordering::Relaxed)
    }

    /// Whether there are more workers than processors.
    #[inline]
    pub(crate) fn may_hold_back(&self) -> bool {
        self.workers > self.processors.load(Ordering::Relaxed)
    }

    /// How many free workers are in reserve.
    pub(crate) fn in_reserve(&self) -> usize {
        self.withheld.load(Ordering::SeqCst)
    }

    /// So many stacks hold a worker and do not come to a scheduling point: so many fewer workers are in reserve. Ends
    /// with a full barrier.
    pub(crate) fn set_held(&self, held: usize) {
        let run_at_once = self.processors.load(Ordering::Relaxed);
        let withheld = self
            .workers
            .saturating_sub(run_at_once.saturating_add(held));
        self.withheld.store(withheld, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// There are so many processors for these workers from now on, and so many stacks are held up. Without a count the
    /// caller counts these next, and starts workers if more are hungry: an idle worker does not look by itself.
    pub(crate) fn set_processors(&self, processors: usize, held: usize) {
        self.processors.store(processors, Ordering::Relaxed);
        self.set_held(held);
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_free_if_fewer_workers_run() {
        let idle = Idle::new(3, 2);
        assert!(idle.is_each_processor_in_use());
        idle.release(0);
        assert!(idle.is_each_processor_in_use(), "two run");
        idle.release(2);
        assert!(!idle.is_each_processor_in_use());
        assert!(!Idle::new(1, 2).is_each_processor_in_use());
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::ready::Ready;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::*, fence},
        },
        thread,
    };

    /// One worker that searches and gives up, one inserter: the entry is seen by the worker, or the
    /// inserter got the worker.
    #[test]
    fn no_worker_sleeps_while_an_entry_is_ready() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(1, 1));
            let searchers = Arc::new(Searchers::new());
            let ready = Arc::new(Ready::new());
            let pool = Arc::new(AtomicBool::new(false));
            searchers.start(&idle);
            let (i, s) = (idle.clone(), searchers.clone());
            let (r, p) = (ready.clone(), pool.clone());
            let inserter = thread::spawn(move || {
                p.store(true, Release);
                r.announce(0);
                s.count() == 0 && i.claim(0).is_some()
            });
            let mut found = ready.levels() != 0;
            if found {
                searchers.stop(&idle);
            } else {
                idle.release(0);
                searchers.stop(&idle);
                found = ready.levels_after_writes() != 0 && idle.claim(0).is_some();
            }
            let started = inserter.join().unwrap();
            assert!(found || started, "the entry sleeps with the worker");
        });
    }

    /// Three workers on two processors, of which two run dry at once: one of them finds that it is hungry, and asks the
    /// third one's stack for forks.
    #[test]
    fn of_workers_that_run_dry_at_once_the_last_is_hungry() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(3, 2));
            let searchers = Arc::new(Searchers::new());
            let runs_dry = |idle: &Idle, searchers: &Searchers, id| {
                searchers.start(idle);
                let asks = idle.is_any_hungry();
                idle.release(id);
                searchers.stop(idle);
                asks
            };
            let (i, s) = (idle.clone(), searchers.clone());
            let other = thread::spawn(move || runs_dry(&i, &s, 0));
            let asks = runs_dry(&idle, &searchers, 1);
            assert!(other.join().unwrap() || asks, "a processor is free");
            assert!(idle.is_any_hungry(), "the next fork stays private");
        });
    }

    /// A worker goes idle while another polls a task, without a barrier on all processors: the first fork of the poll
    /// is seen, or its stack sees that a worker is idle, and publishes the fork.
    #[test]
    fn the_first_fork_of_a_poll_sees_the_worker_that_goes_idle_or_is_seen_by_it() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(2, 2));
            let searchers = Arc::new(Searchers::new());
            let hides = Arc::new(AtomicBool::new(false));
            let forked = Arc::new(AtomicBool::new(false));
            searchers.start(&idle);
            let i = idle.clone();
            let (h, j) = (hides.clone(), forked.clone());
            let polls = thread::spawn(move || {
                j.store(true, Relaxed);
                h.store(true, SeqCst);
                i.is_any_hungry()
            });
            idle.release(0);
            searchers.stop(&idle);
            // If it may hide forks the barrier on all processors follows, after which the fork is seen.
            let seen = hides.load(SeqCst) && forked.load(Relaxed);
            let published = polls.join().unwrap();
            assert!(
                seen || published,
                "the fork is hidden while a worker sleeps"
            );
        });
    }

    /// A stack begins what may fork; until then its worker shows no level. A worker that goes idle asks the stack, or
    /// the stack sees that worker, and its first fork looks around.
    #[test]
    fn a_stack_that_begins_sees_the_worker_that_goes_idle_or_is_asked_by_it() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(2, 2));
            let searchers = Arc::new(Searchers::new());
            let shows_level = Arc::new(AtomicBool::new(false));
            let (i, level) = (idle.clone(), shows_level.clone());
            let begins = thread::spawn(move || {
                let has_room = !i.is_any_hungry();
                level.store(true, SeqCst);
                // Loom takes a store and a load that are `SeqCst` for weaker than they are.
                fence(SeqCst);
                has_room && !i.is_any_hungry()
            });
            searchers.start(&idle);
            idle.release(0);
            searchers.stop(&idle);
            let asks = shows_level.load(SeqCst);
            let keeps_forks = begins.join().unwrap();
            assert!(asks || !keeps_forks, "forks are kept while a worker sleeps");
        });
    }

    /// A stack in a poll that began while no worker was hungry is asked for forks while it has none, and forks later.
    /// Whether or not it said that it hides none, the worker that goes idle sees the fork, or the fork sees the worker.
    #[test]
    fn the_first_fork_after_an_answer_sees_the_worker_that_goes_idle_or_is_seen_by_it() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(2, 2));
            let searchers = Arc::new(Searchers::new());
            let hides = Arc::new(AtomicBool::new(true));
            let (forked, asked) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(AtomicBool::new(false)),
            );
            let i = idle.clone();
            let (h, j, a) = (hides.clone(), forked.clone(), asked.clone());
            let polls = thread::spawn(move || {
                let is_hungry = || i.is_any_hungry();
                // The scheduling point.
                let has_room = !is_hungry();
                if !has_room {
                    h.store(false, SeqCst);
                }
                // The fork.
                j.store(true, Relaxed);
                crate::protocol::fence::light();
                if has_room {
                    return a.load(Relaxed);
                }
                h.store(true, SeqCst);
                is_hungry()
            });
            searchers.start(&idle);
            idle.release(0);
            searchers.stop(&idle);
            asked.store(true, Relaxed);
            let mut seen = forked.load(Relaxed);
            if !seen && hides.load(SeqCst) {
                crate::protocol::fence::heavy();
                seen = forked.load(Relaxed);
            }
            let published = polls.join().unwrap();
            assert!(
                seen || published,
                "the fork is hidden while a worker sleeps"
            );
        });
    }
}
