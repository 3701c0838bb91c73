//! How a job stands with the policy of its core set: what it asks for, what it was given, and what it has done.
//!
//! The policy's thread reads this at each decision, and writes what it gave. What has not changed is not written: at
//! most looks most jobs stay in the caches of all processors.

use crate::sys::{
    mutex::Mutex,
    primitives::atomic::{
        AtomicBool, AtomicU8, AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use std::sync::{Arc, Weak};
use urgency_policy::cores::Demand;

/// See the module's text.
#[derive(Debug)]
pub(in crate::sched) struct Standing {
    /// Tells the job apart from all others of the process, and from the earlier ones in its container.
    life: AtomicU64,
    demand: Arc<Mutex<Demand>>,
    /// How often the demand has changed.
    changes: AtomicU64,
    /// How many workers the policy last gave it; `usize::MAX` before, and while the job has no work.
    entitled: AtomicUsize,
    /// The policy knows that the job waits for a worker, and none has come yet.
    has_asked: AtomicBool,
    /// The policy last gave it more workers than it had then, or than were on their way.
    lacks: AtomicBool,
    /// How many pieces of work must end in time until the job is no longer silent; see `silent.rs`.
    silence: AtomicU8,
    /// When the last worker left, since nothing was to do, in ticks; 0 while one serves the job. A hint: a worker may
    /// come while this is written.
    quiet_since: AtomicU64,
    /// How often a worker came from another job.
    came: AtomicU64,
    /// How many iterations have ended, and how many of them after their deadlines; see `jobs/iterations.rs`.
    iterations: AtomicU64,
    late: AtomicU64,
}

/// What a job asks for, for a look under a lock. It keeps no job: with the last reference to a job goes what is the
/// program's, and its drop may call the library.
#[derive(Debug, Clone)]
pub(crate) struct DemandOf(Weak<Mutex<Demand>>);

impl DemandOf {
    /// `None`: the job is gone.
    pub(crate) fn now(&self) -> Option<Demand> {
        Some(*self.0.upgrade()?.lock())
    }

    /// Whether both are of the same job.
    pub(crate) fn is(&self, other: &DemandOf) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// One piece in time is no news: it may have been about to end.
const MOST_SILENCE: u8 = 2;

fn next_life() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed)
}

impl Standing {
    pub(in crate::sched) fn new(demand: Demand) -> Self {
        Standing {
            life: AtomicU64::new(next_life()),
            demand: Arc::new(Mutex::new(demand)),
            changes: AtomicU64::new(0),
            entitled: AtomicUsize::new(usize::MAX),
            has_asked: AtomicBool::new(false),
            lacks: AtomicBool::new(false),
            silence: AtomicU8::new(0),
            quiet_since: AtomicU64::new(0),
            came: AtomicU64::new(0),
            iterations: AtomicU64::new(0),
            late: AtomicU64::new(0),
        }
    }

    /// Another program has the job from now on: to the policy it is another job.
    pub(in crate::sched) fn begin_anew(&self) {
        self.life.store(next_life(), Relaxed);
        self.note_entitled(None);
        self.may_ask_again();
        self.is_quiet_no_more();
        self.note_lacks(false);
        self.silence.store(0, Relaxed);
    }

    pub(super) fn life(&self) -> u64 {
        self.life.load(Relaxed)
    }

    pub(super) fn demand(&self) -> Demand {
        *self.demand.lock()
    }

    pub(super) fn demand_of(&self) -> DemandOf {
        DemandOf(Arc::downgrade(&self.demand))
    }

    /// Calls this with the demand, which does not change meanwhile.
    pub(super) fn with_demand<R>(&self, call: impl FnOnce(&Demand) -> R) -> R {
        call(&self.demand.lock())
    }

    /// The demand is changed, and the next look at it sees that.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Demand) -> R) -> R {
        let mut its = self.demand.lock();
        self.changes.fetch_add(1, Release);
        change(&mut its)
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    /// How many workers the policy last gave it.
    pub(super) fn entitled(&self) -> Option<usize> {
        let entitled = self.entitled.load(Relaxed);
        (entitled != usize::MAX).then_some(entitled)
    }

    /// The policy has given it so many; `None`: it has no work.
    pub(super) fn note_entitled(&self, entitled: Option<usize>) {
        let entitled = entitled.unwrap_or(usize::MAX);
        if self.entitled.load(Relaxed) != entitled {
            self.entitled.store(entitled, Relaxed);
        }
    }

    /// Whether it has fewer workers than the policy gave it: a hint, without a look at the workers.
    pub(super) fn lacks(&self) -> bool {
        self.lacks.load(Relaxed)
    }

    pub(super) fn note_lacks(&self, lacks: bool) {
        if self.lacks() != lacks {
            self.lacks.store(lacks, Relaxed);
        }
    }

    /// Whether its code comes to no scheduling point when another job is to have a worker.
    pub(super) fn is_silent(&self) -> bool {
        self.silence.load(Relaxed) != 0
    }

    /// A piece of work that lost its worker to another job has ended: soon after that, or not.
    pub(in crate::sched) fn note_piece(&self, was_long: bool) {
        let before = self.silence.load(Relaxed);
        let silence = match was_long {
            true => MOST_SILENCE,
            false => before.saturating_sub(1),
        };
        if silence != before {
            self.silence.store(silence, Relaxed);
        }
    }

    /// The job asks for a worker. Whether it had not asked before.
    pub(super) fn asks(&self) -> bool {
        !self.has_asked.swap(true, Relaxed)
    }

    /// The policy knows that the job waits for a worker.
    pub(super) fn note_asked(&self) {
        if !self.has_asked.load(Relaxed) {
            self.has_asked.store(true, Relaxed);
        }
    }

    /// A worker serves the job from now on.
    #[inline]
    pub(in crate::sched) fn is_served(&self) {
        self.may_ask_again();
        self.is_quiet_no_more();
    }

    #[inline]
    pub(super) fn is_quiet_no_more(&self) {
        if self.quiet_since.load(Relaxed) != 0 {
            self.quiet_since.store(0, Relaxed);
        }
    }

    /// The job has no work and no worker from now on.
    pub(super) fn is_quiet(&self, now: u64) {
        self.quiet_since.store(now, Relaxed);
    }

    /// Since when the job has no worker, in ticks, if the last one left because nothing was to do.
    pub(super) fn quiet_since(&self) -> Option<u64> {
        Some(self.quiet_since.load(Relaxed)).filter(|&since| since != 0)
    }

    /// A worker has come, or the job has no work any more.
    #[inline]
    pub(super) fn may_ask_again(&self) {
        if self.has_asked.load(Relaxed) {
            self.has_asked.store(false, Relaxed);
        }
    }

    /// A worker has come from another job.
    pub(super) fn note_came(&self) {
        self.came.fetch_add(1, Relaxed);
    }

    pub(super) fn came(&self) -> u64 {
        self.came.load(Relaxed)
    }

    pub(super) fn iteration_ended(&self, was_late: bool) {
        self.iterations.fetch_add(1, Relaxed);
        if was_late {
            self.late.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn iterations(&self) -> u64 {
        self.iterations.load(Relaxed)
    }

    pub(super) fn late(&self) -> u64 {
        self.late.load(Relaxed)
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_silent_job_is_silent_no_more_after_two_pieces_that_end_in_time() {
        let standing = Standing::new(Demand::default());
        let after = |was_long| {
            standing.note_piece(was_long);
            standing.is_silent()
        };
        let pieces = [false, true, false, true, false, false, false];
        assert_eq!(
            pieces.map(after),
            [false, true, true, true, true, false, false]
        );
    }

    #[test]
    fn a_container_that_another_program_has_was_not_quiet_before() {
        let standing = Standing::new(Demand::default());
        standing.is_quiet(7);
        standing.note_lacks(true);
        standing.note_piece(true);
        standing.note_entitled(Some(2));
        assert_eq!(standing.quiet_since(), Some(7));
        standing.begin_anew();
        assert_eq!((standing.quiet_since(), standing.entitled()), (None, None));
        assert!(!standing.lacks() && !standing.is_silent());
        standing.is_quiet(8);
        standing.is_served();
        assert_eq!(standing.quiet_since(), None);
    }
}
