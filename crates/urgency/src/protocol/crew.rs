//! The crew of a job: how many workers serve it, and how many may.
//!
//! One word has the number of workers that serve the job (the lower 16 bits) and of those that ever came (the rest).
//!
//! # Invariants
//!
//! 1. Each worker that serves the job is counted once: the thread that takes it counts first, and the thread that gives
//!    it away, to another job or the idle set, takes it out of the count first.
//! 2. [`Crew::try_join`] never counts beyond the limit. A limit that falls, and a worker that comes for work of its own
//!    ([`Crew::join`]), leave more there for a while: the core set asks them to leave.
//!
//! # Protocol (no lost wake-up under a limit)
//!
//! - Inserter: 1. put the entry into the pool, with a full barrier; 2. count a worker; 3. claim one.
//! - Worker that gives up: 1. take itself out of the count; 2. release itself to the idle set (a full barrier); 3. look
//!   for entries once more.
//! - An inserter that has counted and finds no idle worker takes its count back, *then* looks at the idle set again: a
//!   second inserter may have met the limit because of that count, while a worker became idle ([`Crew::claim`]).
//!
//! So an entry is seen by the worker that gives up, or its inserter gets a worker, or the job has as many as it may.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst, fence},
};

/// One worker that came; the bits below count those that serve.
const CAME: u64 = 1 << 16;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Crew {
    word: AtomicU64,
    limit: AtomicUsize,
}

impl Crew {
    /// No worker, of at most so many.
    pub(crate) fn new(limit: usize) -> Self {
        Crew {
            word: AtomicU64::new(0),
            limit: AtomicUsize::new(limit),
        }
    }

    /// Counts one more worker, unless the job has as many as it may.
    fn try_join(&self) -> bool {
        let limit = self.limit() as u64;
        let more = |word: u64| (word % CAME < limit).then_some(word + CAME + 1);
        self.word.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// Counts one more worker, whatever the limit.
    pub(crate) fn join(&self) {
        self.word.fetch_add(CAME + 1, SeqCst);
    }

    /// One worker is about to serve the job no more.
    pub(crate) fn leave(&self) {
        let old = self.word.fetch_sub(1, SeqCst);
        debug_assert_ne!(old % CAME, 0, "a worker left twice");
    }

    /// Claims a worker for the job, which is counted then, unless the job has as many as it may. `claim` takes one out
    /// of the idle set; `may_be_idle` says whether it is worth another attempt.
    pub(crate) fn claim<W>(
        &self,
        claim: impl Fn() -> Option<W>,
        may_be_idle: impl Fn() -> bool,
    ) -> Option<W> {
        while self.try_join() {
            chaos::delay();
            if let Some(claimed) = claim() {
                return Some(claimed);
            }
            self.word.fetch_sub(CAME + 1, SeqCst);
            fence(SeqCst);
            if !may_be_idle() {
                break;
            }
        }
        None
    }

    /// How many workers serve the job.
    pub(crate) fn serving(&self) -> usize {
        (self.word.load(SeqCst) % CAME) as usize
    }

    /// How many workers ever came, and how many went.
    pub(crate) fn came_and_went(&self) -> (u64, u64) {
        let word = self.word.load(SeqCst);
        (word / CAME, word / CAME - word % CAME)
    }

    /// Whether more workers serve the job than may.
    pub(crate) fn is_over(&self) -> bool {
        self.serving() > self.limit()
    }

    /// How many workers may serve the job.
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(SeqCst)
    }

    /// So many may from now on. Whether these are more than before: then what waits is the caller's to look at.
    pub(crate) fn set_limit(&self, limit: usize) -> bool {
        self.limit.swap(limit, SeqCst) < limit
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::idle::Idle;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicUsize as Entries, Ordering::*},
        },
        thread,
    };

    struct Model {
        crew: Crew,
        idle: Idle,
        entries: Entries,
    }

    impl Model {
        /// Inserts an entry. Whether a worker was claimed for it.
        fn insert(&self) -> bool {
            self.entries.fetch_add(1, Release);
            fence(SeqCst);
            self.claim()
        }

        fn claim(&self) -> bool {
            let claimed = self
                .crew
                .claim(|| self.idle.claim(0), || self.idle.contains_any());
            claimed.is_some()
        }

        /// The worker gives up, and looks. Whether it goes on.
        fn give_up(&self) -> bool {
            self.crew.leave();
            self.idle.release(0);
            self.entries.load(Acquire) != 0 && self.claim()
        }
    }

    fn model(limit: usize) -> Arc<Model> {
        Arc::new(Model {
            crew: Crew::new(limit),
            idle: Idle::new(1, 1),
            entries: Entries::new(0),
        })
    }

    /// The only worker that the job may have gives up while an entry comes.
    #[test]
    fn no_entry_sleeps_because_the_worker_that_gives_up_still_counts() {
        loom::model(|| {
            let model = model(1);
            model.crew.join();
            let other = model.clone();
            let inserter = thread::spawn(move || other.insert());
            let goes_on = model.give_up();
            let started = inserter.join().unwrap();
            assert!(goes_on || started, "the entry sleeps with the worker");
            assert!(model.crew.serving() <= 1);
        });
    }

    /// The core set's worker served another job, and becomes idle, while two entries come to a job that may have one.
    #[test]
    fn no_entry_sleeps_because_of_a_count_that_found_no_worker() {
        loom::model(|| {
            let model = model(1);
            let inserters = [model.clone(), model.clone()];
            let inserters = inserters.map(|model| thread::spawn(move || model.insert()));
            // Of the other job: it looks here, too.
            model.idle.release(0);
            let comes = model.entries.load(Acquire) != 0 && model.claim();
            let started = inserters.map(|inserter| inserter.join().unwrap());
            let claims = usize::from(comes) + started.iter().filter(|&&is| is).count();
            assert_eq!(claims, 1, "one worker for a job that may have one");
            assert_eq!(model.crew.serving(), 1);
        });
    }
}
