//! Migrating a poll whose thread has lost its processor.
//!
//! The kernel takes a processor from a worker's thread for another process, or for another thread of ours,
//! when it likes, and for milliseconds. If the thread is in the middle of a poll, that one task waits as
//! long; the others go on with the other workers. With 64 connections and a client on the same machine that
//! is one request in a hundred, and so the 99th percentile. The kernel would move the thread to a processor without
//! work, but there is none: the other workers have more to do. The workers know what the kernel does not: the work that
//! they would do next is no older.
//!
//! So a worker that looks for events between two polls (`poll_mode.rs`) looks at the other workers, too:
//!
//! 1. A poll that began [`STALLED`] ago is looked at: how long has its thread run?
//! 2. If it has not run since the look before, the thread is called to this processor, where it competes only with the
//!    thread that looks, and
//! 3. the looking thread yields to it, once. The looking thread holds no task then, only a place in the queue.
//!
//! Long polls that run are not touched; relief is for them. A poll is migrated once: if it is preempted again, or
//! sleeps in the kernel, another call would not help. Nor is a thread called if it may not run here, or only on one
//! processor.
//!
//! All of it is a hint: [`StalledPoll`] is written by every worker that looks, two may look at once, and the poll may
//! end at any time. Then a thread that is about to do something else changes its processor. The thread may run
//! everywhere again right after the call. Code that sets its own thread's processors within those two system calls
//! would lose the setting, but such code does not run then.

use super::{
    job::Job,
    worker::{NO_LEVEL, Worker},
};
use crate::sys::primitives::atomic::{AtomicU64, Ordering};
use crate::sys::{self, clock};

/// A poll that began so long ago may be stuck, in nanoseconds: ten times a usual one, and a thirtieth of a time slice.
const STALLED: f64 = 100_000.0;

/// What was seen of a worker's poll. See the module's text.
#[derive(Debug, Default)]
pub(crate) struct StalledPoll {
    /// When the poll that was looked at began, in ticks.
    since: AtomicU64,
    /// How long its thread had run, in nanoseconds, or [`MIGRATED`].
    ran: AtomicU64,
}

const MIGRATED: u64 = u64::MAX;

impl StalledPoll {
    /// A look at a poll that began at `since`, and whose thread has run for `ran`. `true`, once: it has not
    /// run since the last look.
    fn look(&self, since: u64, ran: u64) -> bool {
        let before = self.ran.load(Ordering::Relaxed);
        let is_known = self.since.swap(since, Ordering::Relaxed) == since;
        let is_stalled = is_known && before == ran;
        if !is_known || before != MIGRATED {
            let seen = if is_stalled { MIGRATED } else { ran };
            self.ran.store(seen, Ordering::Relaxed);
        }
        is_stalled
    }
}

impl Job {
    /// The look of `worker`, between two polls, at the polls of the others: of one group of workers, another one each
    /// time.
    pub(crate) fn migrate_stalled(&self, worker: &Worker) {
        let begun = clock::now().saturating_sub(clock::ticks(STALLED));
        // The time changes more often than workers look.
        let group = self.serving.in_turn((begun >> 16) as usize);
        let others = self.core.workers[group].iter().map(|other| &**other);
        for other in others.filter(|other| other.is_of(self)) {
            if other.id != worker.id
                && other.level() != NO_LEVEL
                && other.is_brief()
                && other.since() < begun
            {
                self.migrate_if_stalled(worker, other);
            }
        }
    }

    #[cold]
    fn migrate_if_stalled(&self, worker: &Worker, other: &Worker) {
        let (since, level) = (other.since(), other.level());
        let Some(stack) = self.core.holder(other) else {
            return;
        };
        let tid = stack.tid.load(Ordering::Relaxed);
        let is_stalled =
            sys::thread::cpu_time(tid).is_some_and(|ran| other.stalled_poll.look(since, ran));
        if !is_stalled || level == NO_LEVEL || !sys::thread::bring_here(tid) {
            return;
        }
        self.at(worker, level).fetches.add(1);
        // What yields is not stuck.
        worker.set_level(NO_LEVEL);
        std::thread::yield_now();
        worker.counters.scheduling.add(worker.lap());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_stalled_once_when_its_thread_has_not_run_between_two_looks() {
        let stalled_poll = StalledPoll::default();
        let looks = [
            (1, 10, false), // a poll
            (1, 11, false), // it runs
            (1, 11, true),  // no longer
            (1, 11, false), // fetched
            (1, 12, false), // it runs again
            (1, 12, false),
            (2, 12, false), // the next poll
            (2, 12, true),
            (3, 13, false),
        ];
        for (since, ran, expected) in looks {
            assert_eq!(stalled_poll.look(since, ran), expected, "{since} {ran}");
        }
    }
}
