//! Jobs whose code comes to no scheduling point, beside jobs that are to have their workers.
//!
//! A worker that is to go to another job is asked for (`mod.rs`). If its holder leaves that unanswered for half a
//! relief period, the worker is revoked, and the holder's thread goes on without it: the stack *overruns*. With no more
//! than that, a request of a quiet job would wait for half a period or more at each piece of such a neighbour, and
//! share a processor with the piece. So there are three rules:
//!
//! 1. **A job is silent** if a stack that lost a worker to another job ran for half a relief period or more until it
//!    came to a scheduling point, and since then no two stacks have come sooner. From a silent job, and from a stack
//!    that overruns, a worker is revoked at once. What counts is the thread's processor time: a thread that waited for
//!    a processor could not answer.
//! 2. **The thread that lost its worker is lowered**, if its job is silent and the process may raise it again
//!    (`protocol/demotion.rs`), for as long as something brief may take: until it has its worker back, or until an
//!    expiry finds it without for four periods. From then on the kernel divides the processor between the two jobs,
//!    and what the thread runs is charged to its job (`protocol/beside.rs`).
//! 3. **The worker goes back to the stack** when it comes back to the job, before it begins anything new there, as it
//!    does after more urgent work (`rescue/revoke.rs`).
//!
//! By rule 3 a worker has one piece of work in progress in each job, as a rule. (A stack whose wait is over while the
//! worker is idle gets it directly, and endless loops lose theirs to equals.) So with P workers two jobs have some 2 P
//! in progress, and each further job has P more.
//!
//! The three are about the latency of others. What a job has of the cores is the policy's to say, and does not change.

use super::leaving::{Exit, Going};
use crate::{
    sched::{
        core::{Core, JobList},
        job::Job,
        rescue::revoke::Cause,
        stack::Stack,
        worker::Worker,
    },
    sys::primitives::atomic::Ordering,
};

impl Core {
    /// A worker is to go to another job that has none, or fewer than it was given. Rule 1: whether it has gone there.
    pub(super) fn takes_at_once(&self, jobs: &JobList, going: &Going<'_>) -> bool {
        let Exit::To(to) = &going.exit else {
            return false;
        };
        if !self.is_silent(&going.from, going.worker) {
            return false;
        }
        let Some(revoked) = self.revoke_for_other(&going.from, going.worker) else {
            return false;
        };
        if to.take_over(revoked) {
            to.start(revoked);
        } else {
            self.release_revoked(jobs, &going.from, revoked);
        }
        true
    }

    /// Whether nothing is to be expected of a request that the worker's holder, a stack of `from`, gives it away.
    pub(super) fn is_silent(&self, from: &Job, worker: &Worker) -> bool {
        let overruns = |stack: &Stack| stack.overruns.load(Ordering::Relaxed);
        from.standing.is_silent() || self.holder(worker).is_some_and(overruns)
    }

    /// Revokes a worker of `from` for another job, and lowers the thread that has lost it by rule 2.
    pub(super) fn revoke_for_other(&self, from: &Job, worker: &Worker) -> Option<&Worker> {
        let stack = self.holder(worker)?;
        let revoked = from.revoke_counted(worker, None, Cause::Job)?;
        if from.standing.is_silent() {
            from.lower_beside(&stack.arc());
        }
        Some(&self.workers[revoked.id])
    }

    /// Puts a worker that was revoked from a stack of `from` into the idle set. No stack holds it that would look once
    /// more, so the calling thread looks, and asks the stacks that run for forks. (When it did not, a job that may have
    /// the worker, and whose forks were private, ran on without it for good.)
    pub(super) fn release_revoked(&self, jobs: &JobList, from: &Job, worker: &Worker) {
        from.release(worker);
        for job in jobs.iter() {
            job.look_for_pinned(worker);
            if job.is_anything_left(None, worker) {
                job.start_idle();
            }
        }
    }
}

#[cfg(all(test, not(miri), not(urgency_loom)))]
mod tests {
    use crate::{
        Runtime, join,
        protocol::demotion::USUAL,
        sched::{
            core::Core,
            job::Job,
            tests::{LIMIT, until},
        },
        sys::{self, IDLE},
    };
    use std::{
        hint,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::SeqCst},
            mpsc::channel,
        },
        thread,
        time::Duration,
    };

    /// Two jobs that share one worker.
    fn two_jobs() -> [Runtime; 2] {
        let one = Runtime::builder().workers(1).build().unwrap();
        let other = Runtime::builder().share_workers_with(&one).build().unwrap();
        [one, other]
    }

    /// The same. The timer seems to be set, so that it never expires: what happens, happens at an event.
    fn two_without_expiries() -> [Runtime; 2] {
        let both = two_jobs();
        assert!(both[0].job().core.relief_timer.arm());
        both
    }

    /// Code that comes to no scheduling point until it is told to end.
    struct Loop(Arc<AtomicBool>);

    impl Loop {
        fn begin_on(runtime: &Runtime) -> Loop {
            let end = Arc::new(AtomicBool::new(false));
            let its = end.clone();
            let (begins, has_begun) = channel();
            let spins = move || {
                begins.send(()).unwrap();
                while !its.load(SeqCst) {
                    hint::spin_loop();
                }
            };
            runtime.spawn_fn(spins).detach();
            has_begun.recv_timeout(LIMIT).unwrap();
            Loop(end)
        }

        fn ends(&self) {
            self.0.store(true, SeqCst);
        }
    }

    impl Drop for Loop {
        fn drop(&mut self) {
            self.ends();
        }
    }

    /// The worker of a loop of `job` goes to `other`, which has nothing to do.
    fn goes_to(core: &Core, job: &Job, other: &Job) {
        let worker = job.workers().next().unwrap();
        let revoked = core.revoke_for_other(job, worker).unwrap();
        assert!(other.take_over(revoked));
        other.start(revoked);
    }

    #[test]
    #[cfg_attr(
        urgency_chaos,
        ignore = "chaos keeps a worker from a stack that it could go back to"
    )]
    fn a_worker_that_comes_back_to_a_job_goes_to_its_stack_before_it_begins_anything_new() {
        let [one, other] = two_without_expiries();
        let (job, core) = (one.job(), &one.job().core);
        job.standing.note_piece(true);
        let runs = Loop::begin_on(&one);
        let stack = core.holder(job.workers().next().unwrap()).unwrap();
        let begun = Arc::new(AtomicBool::new(false));
        let its = begun.clone();
        let next = one.spawn_fn(move || its.store(true, SeqCst));
        goes_to(core, job, other.job());
        until(|| !stack.attention.is_revoked());
        until(|| stack.demotion.class() == USUAL);
        assert!(!begun.load(SeqCst) && !stack.beside.has_begun());
        runs.ends();
        next.get().unwrap();
    }

    /// The worker was idle for a moment, and was claimed for what waits now. (Where the worker that had been claimed
    /// looked at no more than the stack, that waited for ever, in 14 of 200 runs.)
    #[test]
    fn work_behind_an_endless_loop_that_has_its_worker_back_is_served() {
        for _ in 0..10 {
            let [one, other] = two_jobs();
            let runs = Loop::begin_on(&one);
            other.spawn_fn(|| ()).get().unwrap();
            let end = runs.0.clone();
            let (done, is_done) = channel();
            let next = move || {
                end.store(true, SeqCst);
                let _ = done.send(());
            };
            one.spawn_fn(next).detach();
            is_done.recv_timeout(LIMIT).unwrap();
        }
    }

    #[test]
    fn a_silent_job_loses_its_worker_at_the_event() {
        let [one, other] = two_without_expiries();
        let _runs = Loop::begin_on(&one);
        one.job().standing.note_piece(true);
        let (done, is_done) = channel();
        other.spawn_fn(move || done.send(()).unwrap()).detach();
        is_done.recv_timeout(LIMIT).unwrap();
    }

    #[test]
    fn a_silent_job_loses_its_worker_at_the_expiry_that_decides() {
        let [one, other] = two_without_expiries();
        let _runs = Loop::begin_on(&one);
        // It is asked for the worker now, and has half a period to answer.
        let waits = other.spawn_fn(|| ());
        one.job().standing.note_piece(true);
        let core = &one.job().core;
        let moved = core.share_workers(&core.jobs());
        other
            .job()
            .start(moved.expect("the job has time to answer"));
        waits.get().unwrap();
    }

    #[test]
    fn a_job_is_silent_as_long_as_its_code_comes_to_no_scheduling_point_in_time() {
        let [one, other] = two_jobs();
        let is_silent = || one.job().standing.is_silent();
        let runs = Loop::begin_on(&one);
        let worker = one.job().workers().next().unwrap();
        let tid = one.job().core.holder(worker).unwrap().tid.load(SeqCst);
        other.spawn_fn(|| ()).get().unwrap();
        let ran = || sys::thread::cpu_time(tid).unwrap();
        let before = ran();
        until(|| ran() >= before + 2_000_000);
        assert!(!is_silent(), "its piece of work may end in time");
        runs.ends();
        until(is_silent);
        let end = Arc::new(AtomicBool::new(false));
        let ends = end.clone();
        let forks = one.spawn_fn(move || {
            while !ends.load(SeqCst) {
                join(|| (), || ());
            }
        });
        until(|| {
            other.spawn_fn(|| ()).get().unwrap();
            !is_silent()
        });
        end.store(true, SeqCst);
        forks.get().unwrap();
    }

    #[test]
    fn the_thread_of_a_silent_job_is_lowered_for_brief_work_of_another_and_for_no_longer() {
        for is_silent in [false, true] {
            let [one, other] = two_without_expiries();
            let (job, core) = (one.job(), &one.job().core);
            let _runs = Loop::begin_on(&one);
            job.standing.note_piece(is_silent);
            let worker = job.workers().next().unwrap();
            let stack = core.holder(worker).unwrap();
            let revoked = core.revoke_for_other(job, worker).unwrap();
            let lowered = match is_silent && sys::thread::can_raise() {
                true => IDLE,
                false => USUAL,
            };
            assert_eq!(stack.demotion.class(), lowered);
            // The other job keeps the worker.
            thread::sleep(Duration::from_millis(5));
            assert!(job.relieve(false).is_none());
            assert_eq!(stack.demotion.class(), USUAL);
            assert!(other.job().take_over(revoked));
            other.job().start(revoked);
        }
    }
}
