//! In which pools a stack's deque has an entry.
//!
//! Thieves find public forks by an entry for their deque in the pool of the forks' level. One entry is enough, and each
//! fork that is made public asks for one. So the stack has a word with a bit for each level: set, an entry is there, or
//! a thread is about to put it there.
//!
//! # Rules
//!
//! 1. A thread that has made a fork public, *then* [`enter`](Pooled::enter)s its level. If that is news, this thread
//!    puts the entry into the pool.
//! 2. A thread that has taken the entry out of the pool [`leave`](Pooled::leave)s the level, *then* looks into the
//!    deque.
//! 3. A stack that takes up another job says which, *then* [`clear`](Pooled::clear)s the word: entries in the pools of
//!    the job before are stale. A thread that has entered a level, *then* looks which job the stack is of. If that is
//!    another one than it thought, it leaves the level, looks into the deque, and begins anew with that job.
//!
//! # Named races
//!
//! - *Publish under take*: an owner finds the level entered, and makes no entry, while a thief that has taken the entry
//!   sees no fork. Both change the same word. If the owner comes first, the thief's step reads what the owner's wrote,
//!   and the fork is there. If the thief comes first, the owner's step is news.
//! - *Enter under clear*: a thread puts the entry into the pool of the job before, and the owner's fork for the next
//!   job finds the level entered. If the thread enters behind the clearing, its step reads what that wrote, and it sees
//!   the next job. If it enters before, its bit is cleared.
//!
//! A level that is left for a stale entry may have a good one. Then it gets a second one, which costs a look in vain.

use crate::sys::primitives::atomic::{AtomicU64, Ordering};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Pooled(AtomicU64);

impl Pooled {
    pub(crate) fn new() -> Self {
        Pooled(AtomicU64::new(0))
    }

    /// Whether the caller has to put an entry into the pool of `level`: rules 1 and 3.
    #[inline]
    pub(crate) fn enter(&self, level: u8) -> bool {
        self.0.fetch_or(1 << level, Ordering::AcqRel) & 1 << level == 0
    }

    /// The entry in the pool of `level` is there no more, or was not put there: rules 2 and 3.
    #[inline]
    pub(crate) fn leave(&self, level: u8) {
        self.0.fetch_and(!(1 << level), Ordering::Acquire);
    }

    /// The stack has taken up another job: rule 3.
    pub(crate) fn clear(&self) {
        // A store would do. Loom does not know that a store cannot come between the two halves of `enter`.
        self.0.swap(0, Ordering::Release);
    }

    /// Whether there is an entry in the pool of `level`, as far as one can see without ordering.
    pub(crate) fn has(&self, level: u8) -> bool {
        self.0.load(Ordering::Relaxed) >> level & 1 == 1
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering::*},
        },
        thread,
    };

    const LEVEL: u8 = 3;

    #[test]
    fn a_fork_that_is_published_as_the_entry_is_taken_has_an_entry_or_is_seen() {
        loom::model(|| {
            let pooled = Arc::new(Pooled::new());
            let public = Arc::new(AtomicBool::new(false));
            assert!(pooled.enter(LEVEL) && pooled.has(LEVEL));
            let (its, fork) = (pooled.clone(), public.clone());
            let owner = thread::spawn(move || {
                fork.store(true, Relaxed);
                its.enter(LEVEL)
            });
            pooled.leave(LEVEL);
            let seen = public.load(Relaxed);
            let entered = owner.join().unwrap();
            assert!(seen || entered, "the fork is in no pool");
            assert_eq!(pooled.has(LEVEL), entered);
        });
    }

    /// A stack, its forks and its jobs' pools.
    struct Model {
        pooled: Pooled,
        job: AtomicUsize,
        public: AtomicBool,
        /// How many entries each job's pool has.
        entries: [AtomicUsize; 2],
    }

    impl Model {
        /// As `Job::insert_deque_as`, by a thread that thinks that the stack is of this job.
        fn insert(&self, job: usize) {
            if !self.pooled.enter(LEVEL) {
                return;
            }
            let now = self.job.load(Relaxed);
            if now == job {
                self.entries[job].fetch_add(1, Relaxed);
                return;
            }
            self.pooled.leave(LEVEL);
            if self.public.load(Relaxed) {
                self.insert(now);
            }
        }
    }

    #[test]
    fn a_fork_of_the_next_job_is_in_its_pool_though_a_thread_enters_the_level_for_the_job_before() {
        loom::model(|| {
            let model = Arc::new(Model {
                pooled: Pooled::new(),
                job: AtomicUsize::new(0),
                public: AtomicBool::new(false),
                entries: [AtomicUsize::new(0), AtomicUsize::new(0)],
            });
            let theirs = model.clone();
            let late = thread::spawn(move || theirs.insert(0));
            model.job.store(1, Relaxed);
            model.pooled.clear();
            model.public.store(true, Relaxed);
            model.insert(1);
            late.join().unwrap();
            assert_ne!(model.entries[1].load(Relaxed), 0, "the fork is in no pool");
        });
    }
}
