//! Silence: what relief sees of a stack that was asked to check in.
//!
//! Relief (`relief.rs`) asks a stack to check in (CHECK_IN), and looks at it again at a later expiry. A stack that has
//! left the request unanswered for half a period is *silent*. What its thread has done meanwhile decides what becomes
//! of its worker, and the kernel knows: by the thread's processor time, and by its state if that says too little.
//!
//! A stack that answers each request is asked anew at each expiry. If its thread has run for most of the time since the
//! request before, it goes on to run, as a rule: it is no reason for another expiry soon, since each costs the
//! computations some 50 µs of processor time. If its thread has slept, it may sleep in a call that lasts.

use super::{relief::LONG, revoke::Seen};
use crate::{
    protocol::attention::CHECK_IN,
    sched::{core::ANSWER_TIME, job::Job, stack::Stack, worker::Worker},
    sys::{self, chaos, clock, primitives::atomic::Ordering},
};

/// A thread that ran for less than this between two looks, in nanoseconds, sleeps in the kernel or waits for its turn.
const HARDLY: u64 = 50_000;

/// A poll whose thread has had less than one part in so many of a processor is not known to be long.
const LEAST_SHARE: u64 = 8;

/// What a silent stack has done since it was asked to check in.
pub(super) enum Idleness {
    /// Its thread sleeps in the kernel.
    Blocked,
    /// It has run, for long.
    Long,
    /// The kernel has given its processor to another thread.
    Waits,
    /// It has run.
    Runs,
}

/// What has become of the last request to check in.
enum Request {
    /// It was answered, or there was none, and the stack is asked again. Whether its thread has run for most of the
    /// time since the last one.
    Anew { runs: bool },
    /// The stack has still time to answer.
    Pending,
    /// It was made half a period ago, at an expiry before this one, and is not answered.
    Unanswered,
}

impl Job {
    /// What a silent stack does. Otherwise: whether it must be looked at again soon, since it has still time to answer
    /// or has not run since it was asked.
    pub(super) fn look_at<'a>(&self, stack: &'a Stack) -> Result<(Idleness, Seen<'a>), bool> {
        // Before the look: a thread that sleeps inside the scheduler until it gets a worker may be in user code
        // when the look has ended.
        let visit = stack.attention.visit();
        match stack.request() {
            Request::Anew { runs } => return Err(!runs),
            Request::Pending => return Err(true),
            Request::Unanswered => {}
        }
        let visit = visit.ok_or(false)?;
        match stack.idleness() {
            Idleness::Waits => Err(true),
            idleness => Ok((idleness, Seen { stack, visit })),
        }
    }
}

impl Stack {
    /// Whether the stack was asked to check in half a period ago, at an expiry before this one, and has not answered.
    /// If it was not asked, it is now.
    pub(in crate::sched) fn is_silent(&self) -> bool {
        matches!(self.request(), Request::Unanswered)
    }

    /// Asks the stack to check in, if it is not asked already.
    pub(super) fn ask_to_check_in(&self) {
        let _ = self.request();
    }

    /// Whether a look must find that the stack is blocked: a request is old enough, and its thread sleeps, and has
    /// since it was looked at last.
    #[cfg(test)]
    pub(in crate::sched) fn must_be_found_blocked(&self) -> bool {
        let asked = self.check_in_asked_at.load(Ordering::Relaxed);
        let seen = self.seen_at.load(Ordering::Relaxed);
        let hardly_ran = |now: u64| now.saturating_sub(seen) < HARDLY;
        self.attention.is_pending(CHECK_IN)
            && clock::now().saturating_sub(asked) >= answer_time()
            && sys::thread::cpu_time(self.tid.load(Ordering::Relaxed)).is_some_and(hardly_ran)
            && self.sleeps()
    }

    fn request(&self) -> Request {
        let now = clock::now();
        if self.attention.is_pending(CHECK_IN) {
            let asked = self.check_in_asked_at.load(Ordering::Relaxed);
            return if now.saturating_sub(asked) >= answer_time() {
                Request::Unanswered
            } else {
                Request::Pending
            };
        }
        let ran = self.note_run_time();
        let since_asked = now.saturating_sub(self.check_in_asked_at.swap(now, Ordering::Relaxed));
        self.attention.request(CHECK_IN);
        Request::Anew {
            runs: is_most(ran, since_asked),
        }
    }

    /// What a silent stack has done since it was asked.
    fn idleness(&self) -> Idleness {
        let Some(now) = sys::thread::cpu_time(self.tid.load(Ordering::Relaxed)) else {
            return Idleness::Blocked;
        };
        let since_seen = now.saturating_sub(self.seen_at.swap(now, Ordering::Relaxed));
        let since_asked = now.saturating_sub(self.asked_at.load(Ordering::Relaxed));
        let asked = self.check_in_asked_at.load(Ordering::Relaxed);
        let runs = || is_most(since_asked, clock::now().saturating_sub(asked));
        if (since_seen < HARDLY || !runs()) && self.sleeps() {
            Idleness::Blocked
        } else if since_seen < HARDLY {
            Idleness::Waits
        } else if since_asked >= LONG.as_nanos() as u64 || chaos::one_in(2) {
            Idleness::Long
        } else {
            Idleness::Runs
        }
    }

    /// Whether the stack has a request to check in, and the kernel has hardly let its thread run since, as far as is
    /// known: what it does may be brief, however long it takes.
    pub(in crate::sched) fn may_be_stopped(&self) -> bool {
        self.attention.is_pending(CHECK_IN) && {
            let asked = self.check_in_asked_at.load(Ordering::Relaxed);
            let ran = self.run_time();
            let ran = ran.saturating_sub(self.asked_at.load(Ordering::Relaxed));
            let since_asked = clock::now().saturating_sub(asked);
            ran < HARDLY || !is_most(ran * LEAST_SHARE / 2, since_asked)
        }
    }

    /// How long the stack's thread has run, to compare with. Returns how long it has since this was noted last.
    fn note_run_time(&self) -> u64 {
        let ran = self.run_time();
        self.seen_at.store(ran, Ordering::Relaxed);
        ran.saturating_sub(self.asked_at.swap(ran, Ordering::Relaxed))
    }
}

/// Whether so many nanoseconds are at least half of so many ticks.
fn is_most(nanoseconds: u64, ticks: u64) -> bool {
    clock::ticks(2.0 * nanoseconds as f64) >= ticks
}

/// What a request may stay unanswered, in ticks.
pub(in crate::sched) fn answer_time() -> u64 {
    clock::ticks(ANSWER_TIME.as_nanos() as f64)
}

/// Whether what the worker does now, a brief poll, a search or a step inside of the scheduler, has lasted for so long
/// at `now` that its thread seems to wait for a processor.
pub(in crate::sched) fn seems_preempted(worker: &Worker, now: u64) -> bool {
    now.saturating_sub(worker.since()) >= answer_time()
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use crate::{Runtime, protocol::attention::Entered, sched::tests::revoked_at};

    /// Whether it has its worker or not, and whatever becomes of it then.
    #[test]
    fn a_stack_that_finds_its_worker_revoked_has_answered() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (binding, stack) = revoked_at(runtime.job(), 0);
        stack.ask_to_check_in();
        assert!(stack.attention.is_pending(CHECK_IN));
        assert!(matches!(binding.me().attention().enter(), Entered::Revoked));
        assert!(!stack.attention.is_pending(CHECK_IN));
    }
}
