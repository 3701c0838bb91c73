//! The crew of a job: how many workers may serve it.
//!
//! A job without a limit takes a worker out of the idle set as if there were no crew: it pays one load of a word that
//! seldom changes. A job with a limit counts its workers first, under a lock. The count is no word of its own: each
//! worker shows the job that it serves, and the count looks at all of them.
//!
//! # Invariants
//!
//! 1. The thread that takes a worker for a limited job lets the worker show the job before it unlocks. So two threads
//!    cannot both take the last worker that the job may have.
//! 2. A limit that falls, and a worker that comes for work that only it may run ([`Crew::admit`] is not asked), leave
//!    more workers there for a while: the core set asks them to leave.
//!
//! # Protocol (no lost wake-up under a limit)
//!
//! - Inserter: 1. put the entry into the pool, with a full barrier; 2. lock and count; 3. claim an idle worker, which
//!   shows the job; 4. unlock.
//! - Worker that gives up: 1. show the job no more; 2. release itself to the idle set (a full barrier); 3. look for
//!   entries once more.
//!
//! An inserter that counts the worker that gives up has put its entry before that worker's look. So the worker sees the
//! entry, or the inserter gets a worker, or the job has as many workers as it may.

use crate::sys::{
    chaos,
    mutex::Mutex,
    primitives::atomic::{AtomicUsize, Ordering::SeqCst},
};

/// The limit of a job that may have all workers.
const UNLIMITED: usize = usize::MAX;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Crew {
    /// How many workers there are.
    workers: usize,
    limit: AtomicUsize,
    entrance: Mutex<()>,
}

impl Crew {
    /// For a job that may have all of so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Crew {
            workers,
            limit: AtomicUsize::new(UNLIMITED),
            entrance: Mutex::new(()),
        }
    }

    /// Takes a worker for the job with `take`, unless as many as it may have are `serving` it. `take` lets the worker
    /// show the job.
    #[inline]
    pub(crate) fn admit<W>(
        &self,
        serving: impl FnOnce() -> usize,
        take: impl FnOnce() -> Option<W>,
    ) -> Option<W> {
        if self.limit() == UNLIMITED {
            take()
        } else {
            self.admit_counted(serving, take)
        }
    }

    #[cold]
    fn admit_counted<W>(
        &self,
        serving: impl FnOnce() -> usize,
        take: impl FnOnce() -> Option<W>,
    ) -> Option<W> {
        let _entered = self.entrance.lock();
        chaos::delay();
        self.has_room(serving).then(take).flatten()
    }

    /// Whether [`Crew::admit`] would take a worker now. A thread that finds no room need not ask again: the worker that
    /// makes room looks for entries itself, and so does the caller of [`Crew::set_limit`].
    #[inline]
    pub(crate) fn has_room(&self, serving: impl FnOnce() -> usize) -> bool {
        let limit = self.limit();
        limit == UNLIMITED || serving() < limit
    }

    /// How many workers may serve the job; [`usize::MAX`] if all may.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(SeqCst)
    }

    /// So many may from now on. Whether these are more than before: then the caller looks at what waits.
    pub(crate) fn set_limit(&self, limit: usize) -> bool {
        let limit = if limit < self.workers {
            limit
        } else {
            UNLIMITED
        };
        // Most looks change nothing, and leave the word in the caches of all processors.
        self.limit() != limit && self.limit.swap(limit, SeqCst) < limit
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::idle::Idle;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::*, fence},
        },
        thread,
    };

    /// Workers that show whether they serve the job, and whether entries wait.
    struct Model {
        crew: Crew,
        idle: Idle,
        shows: [AtomicBool; 2],
        entries: AtomicUsize,
    }

    impl Model {
        fn new(limit: usize) -> Arc<Self> {
            let crew = Crew::new(2);
            crew.set_limit(limit);
            Arc::new(Model {
                crew,
                idle: Idle::new(2, 2),
                shows: [AtomicBool::new(false), AtomicBool::new(false)],
                entries: AtomicUsize::new(0),
            })
        }

        fn serving(&self) -> usize {
            self.shows.iter().filter(|shows| shows.load(SeqCst)).count()
        }

        /// Inserts an entry. Whether a worker was claimed for it.
        fn insert(&self) -> bool {
            self.entries.fetch_add(1, Release);
            fence(SeqCst);
            self.claim()
        }

        fn claim(&self) -> bool {
            let take = || {
                let id = self.idle.claim(0)?;
                self.shows[id].store(true, SeqCst);
                fence(SeqCst);
                Some(())
            };
            self.crew.admit(|| self.serving(), take).is_some()
        }

        /// Worker 0 gives up, and looks. Whether it goes on.
        fn give_up(&self) -> bool {
            self.shows[0].store(false, SeqCst);
            self.idle.release(0);
            self.entries.load(Acquire) != 0 && self.claim()
        }
    }

    /// The only worker that the job may have gives up while an entry comes.
    #[test]
    fn no_entry_sleeps_because_the_worker_that_gives_up_still_counts() {
        loom::model(|| {
            let model = Model::new(1);
            model.shows[0].store(true, SeqCst);
            let other = model.clone();
            let inserter = thread::spawn(move || other.insert());
            let goes_on = model.give_up();
            let started = inserter.join().unwrap();
            assert!(goes_on || started, "the entry sleeps with the worker");
            assert!(model.serving() <= 1);
        });
    }

    /// Two entries come to a job that may have one worker, while both workers are idle.
    #[test]
    fn two_inserters_do_not_both_take_the_last_worker() {
        loom::model(|| {
            let model = Model::new(1);
            model.idle.release(0);
            model.idle.release(1);
            let other = model.clone();
            let inserter = thread::spawn(move || other.insert());
            let mine = model.insert();
            assert!(inserter.join().unwrap() != mine, "one of two");
            assert_eq!(model.serving(), 1);
        });
    }
}
