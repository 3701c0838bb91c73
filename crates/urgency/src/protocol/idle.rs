//! Idle workers and searchers: who sleeps, who looks, who must be woken.
//!
//! An idle worker is a permission that nobody uses: a bit in this set. It needs no thread. Whoever
//! has work for it claims the bit and runs (a plain thread that calls `join`, a thread that returns
//! from the poller with an event in hand) or hands it to a spare thread.
//!
//! A *searcher* is a thread with a worker and without work that is still looking. While somebody
//! searches, an insertion wakes nobody: a wake-up costs the waker 10 µs and the sleeper 30 to 50.
//!
//! # Protocol (no lost wake-up)
//!
//! - Inserter: 1. put the entry into the pool; 2. announce the level (a full barrier); 3. if nobody
//!   searches, claim an idle worker and start it.
//! - Searcher that gives up: 1. [`Idle::release`] its worker; 2. [`Searchers::stop`] (a full barrier);
//!   3. look at the levels once more; if there is work, claim a worker back. In this order, so that whoever
//!   asks whether anybody is hungry (a stack that starts, and would keep its jobs to itself otherwise)
//!   sees a searcher or an idle worker at every moment.
//! - Searcher that found work: [`Searchers::stop`], a full barrier, and if there is more work and nobody
//!   else searches, start the next idle worker: a woken one wakes the next.
//!
//! *Named race, "first fork under release"*: a stack forks in a poll, and keeps the job to itself, while a
//! worker goes idle that would have asked for it. A stack without jobs that knows of somebody hungry says
//! that it hides none (`Worker::hides_forks`): when its poll begins, or when it answers a request. It has no
//! room then, so its next fork comes in (`Attention::is_for_forks`), first says otherwise, and then looks
//! whether anybody is hungry. The worker that goes idle is hungry first, then looks: one of them sees the
//! other. Of a stack that may hide jobs it sees them behind a barrier on all processors.
//!
//! *Named race, "insert under release"*: the inserter looks at the set before the bit is there, the
//! worker looks at the levels before the announcement is there. The two barriers exclude that both
//! happen.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Idle {
    words: Box<[AtomicU64]>,
}

/// How many workers of a job search.
#[derive(Debug)]
pub(crate) struct Searchers(AtomicUsize);

impl Idle {
    /// A set for `workers` workers, all in use.
    pub(crate) fn new(workers: usize) -> Self {
        Idle {
            words: (0..workers.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    /// Worker `id` is no longer used by anybody. Ends with a full barrier.
    pub(crate) fn release(&self, id: usize) {
        chaos::delay();
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
            let mut old = word.load(Ordering::SeqCst);
            while old != 0 {
                let wanted = 1 << (hint % 64);
                let bit = if step == 0 && old & wanted != 0 {
                    wanted
                } else {
                    old & old.wrapping_neg()
                };
                match word.compare_exchange_weak(
                    old,
                    old & !bit,
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                ) {
                    Ok(_) => return Some(index * 64 + bit.trailing_zeros() as usize),
                    Err(now) => old = now,
                }
            }
        }
        None
    }

    /// Takes this worker, if it is idle.
    pub(crate) fn claim_exactly(&self, id: usize) -> bool {
        let bit = 1 << (id % 64);
        self.words[id / 64].fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    /// Whether this worker is idle.
    pub(crate) fn contains(&self, id: usize) -> bool {
        self.words[id / 64].load(Ordering::SeqCst) >> (id % 64) & 1 != 0
    }

    /// Whether any worker is idle.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.words.iter().any(|w| w.load(Ordering::SeqCst) != 0)
    }
}

impl Searchers {
    pub(crate) fn new() -> Self {
        Searchers(AtomicUsize::new(0))
    }

    /// The calling worker starts to search.
    pub(crate) fn start(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// The calling worker found work or gives up. Ends with a full barrier.
    pub(crate) fn stop(&self) {
        chaos::delay();
        let old = self.0.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(old, 0);
        fence(Ordering::SeqCst);
        chaos::delay();
    }

    /// How many workers search.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::ready::Ready;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::*},
        },
        thread,
    };

    /// One worker that searches and gives up, one inserter: the entry is seen by the worker, or the
    /// inserter got the worker.
    #[test]
    fn no_worker_sleeps_while_an_entry_is_ready() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(1));
            let searchers = Arc::new(Searchers::new());
            let ready = Arc::new(Ready::new());
            let pool = Arc::new(AtomicBool::new(false));
            searchers.start();
            let (i, s) = (idle.clone(), searchers.clone());
            let (r, p) = (ready.clone(), pool.clone());
            let inserter = thread::spawn(move || {
                p.store(true, Release);
                r.announce(0);
                s.count() == 0 && i.claim(0).is_some()
            });
            let mut found = ready.levels() != 0;
            if found {
                searchers.stop();
            } else {
                idle.release(0);
                searchers.stop();
                found = ready.levels_after_writes() != 0 && idle.claim(0).is_some();
            }
            let started = inserter.join().unwrap();
            assert!(found || started, "the entry sleeps with the worker");
        });
    }

    /// A worker goes idle while another polls a task, without a barrier on all processors: the first fork of
    /// the poll is seen, or its stack sees that somebody is idle, and publishes the job.
    #[test]
    fn the_first_fork_of_a_poll_is_seen_by_who_goes_idle_or_sees_him() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(2));
            let searchers = Arc::new(Searchers::new());
            let hides = Arc::new(AtomicBool::new(false));
            let forked = Arc::new(AtomicBool::new(false));
            searchers.start();
            let (i, s) = (idle.clone(), searchers.clone());
            let (h, j) = (hides.clone(), forked.clone());
            let polls = thread::spawn(move || {
                j.store(true, Relaxed);
                h.store(true, SeqCst);
                s.count() != 0 || i.any()
            });
            idle.release(0);
            searchers.stop();
            // If it may hide jobs the barrier on all processors follows, after which the job is seen.
            let seen = hides.load(SeqCst) && forked.load(Relaxed);
            let published = polls.join().unwrap();
            assert!(seen || published, "the job is hidden while a worker sleeps");
        });
    }

    /// A stack in a poll that began while nobody was hungry is asked for jobs while it has none, and forks
    /// later. Whether it said then that it hides none or not, its fork is seen by who goes idle, or sees him.
    #[test]
    fn the_first_fork_after_an_answer_is_seen_by_who_goes_idle_or_sees_him() {
        loom::model(|| {
            let idle = Arc::new(Idle::new(2));
            let searchers = Arc::new(Searchers::new());
            let hides = Arc::new(AtomicBool::new(true));
            let (forked, asked) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(AtomicBool::new(false)),
            );
            let (i, s) = (idle.clone(), searchers.clone());
            let (h, j, a) = (hides.clone(), forked.clone(), asked.clone());
            let polls = thread::spawn(move || {
                let is_hungry = || s.count() != 0 || i.any();
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
            searchers.start();
            idle.release(0);
            searchers.stop();
            asked.store(true, Relaxed);
            let mut seen = forked.load(Relaxed);
            if !seen && hides.load(SeqCst) {
                crate::protocol::fence::heavy();
                seen = forked.load(Relaxed);
            }
            let published = polls.join().unwrap();
            assert!(seen || published, "the job is hidden while a worker sleeps");
        });
    }
}
