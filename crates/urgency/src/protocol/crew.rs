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
//!
//! # Protocol (no lost rise of the limit)
//!
//! The limit follows from other state: what the job asks for, what the policy gave it, whether the policy has a word at
//! all. The last thread that changes any of it may leave no older limit.
//!
//! - Thread that changes the state: 1. change it; 2. lock the job's demand; 3. find the limit anew, from all of the
//!   state as it is now, and set it; 4. unlock; 5. if the limit has risen, look for entries, behind a full barrier.
//! - Inserter that is refused a worker: its entry is in, with a full barrier, before it reads the limit.
//!
//! Of two threads the second one to lock sees the change of the first, and its limit stays. A limit that was found
//! before the lock would not do: a decision that was late left the job no worker, after the last other job had gone
//! and the policy had lost its word. No decision followed.

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

    /// So many may from now on. With the lock under which the caller found the limit. Whether these are more than
    /// before: then the caller looks at what waits, without the lock.
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
            Arc, Mutex,
            atomic::{AtomicBool, Ordering::*, fence},
        },
        thread,
    };

    /// Workers that show whether they serve the job, and whether entries wait.
    struct Model {
        crew: Crew,
        /// The lock under which the limit is found, and whether another job gives the policy a word.
        demand: Mutex<()>,
        is_shared: AtomicBool,
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
                demand: Mutex::new(()),
                is_shared: AtomicBool::new(true),
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

        /// The policy gives the job no worker, as long as it has a word. Whether a worker was claimed for an entry.
        fn limit_anew(&self) -> bool {
            let has_risen = {
                let _locked = self.demand.lock().unwrap();
                let limit = match self.is_shared.load(SeqCst) {
                    true => 0,
                    false => UNLIMITED,
                };
                self.crew.set_limit(limit)
            };
            fence(SeqCst);
            has_risen && self.entries.load(Acquire) != 0 && self.claim()
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

    /// The last other job goes while a decision ends and an entry comes.
    #[test]
    fn a_late_decision_keeps_no_worker_from_the_only_job() {
        for limit in [0, UNLIMITED] {
            loom::model(move || {
                let model = Model::new(limit);
                model.idle.release(0);
                let (decides, inserts) = (model.clone(), model.clone());
                let decider = thread::spawn(move || decides.limit_anew());
                let inserter = thread::spawn(move || inserts.insert());
                model.is_shared.store(false, SeqCst);
                let started = model.limit_anew();
                let started = decider.join().unwrap() | inserter.join().unwrap() | started;
                assert_eq!(model.crew.limit(), UNLIMITED, "the rise is lost");
                assert!(started, "the entry sleeps");
            });
        }
    }
}
