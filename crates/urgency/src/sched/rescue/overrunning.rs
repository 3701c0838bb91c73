//! Overruns: stacks that lost their worker in user code and have not come to a scheduling point since.
//!
//! Such a stack goes on without a worker, beside the workers. It is listed from the revoking (`revoke.rs`) until an
//! expiry of the relief timer finds that it has come back. The list says what relief (`relief.rs`) and the core policy
//! must know: whether any stack overruns, at which levels, and how many are ahead of their equals.
//!
//! # Beside more urgent work
//!
//! An expiry lowers the thread of a listed stack (`protocol/demotion.rs`) if some worker serves a more urgent level. So
//! there must be an expiry after the worker has come to that level, and after the revoking: the revoking arms the
//! timer, and a worker that comes to a level arms it if a stack below is listed that is not lowered. (The worker did
//! not. If the expiry came while it was on its way, or if an idle worker ran the urgent work, the stack's thread had
//! the share of an equal for as long as that work ran.)
//!
//! *Named race, "arrive under expiry"*: the worker shows its level, *then* looks at the count of overruns and at the
//! timer. The revoking counts the stack, *then* arms the timer. An expiry switches the timer off, *then* looks at the
//! levels and the list.
//!
//! *Named race, "count under return"*: the thread that has revoked the worker may be late with its count. The stack has
//! come back meanwhile, and its thread may serve another job: it takes from the count at its next scheduling point
//! there. So all jobs of a core set have one count. (With one count for each job both were wrong for good.)
//!
//! # How an overrun is named
//!
//! A stack whose worker relief took says so at its next scheduling point, on its own thread. It names what it runs, by
//! the type of its closure or future, which contains the name of the function around it, and how long it went on
//! without a worker (`Stats::overruns`). For a stack that checks in, nothing is noted.

use super::revoke::Cause;
use crate::{
    account::overruns::{Name, Overruns},
    sched::{
        core::{ANSWER_TIME, Core},
        job::Job,
        stack::{Me, Stack},
        worker::Worker,
    },
    sys::{
        self, clock,
        mutex::Mutex,
        primitives::atomic::{AtomicU64, Ordering},
    },
};
use std::sync::Arc;

/// Stacks whose worker was revoked and that have not checked in since.
#[derive(Debug, Default)]
pub(crate) struct Overrunning {
    /// With each, for what its worker was revoked last.
    stacks: Mutex<Vec<(Arc<Stack>, Cause)>>,
    pub(crate) overruns: Overruns,
    /// How long threads ran beside the workers that decisions about cores had left the job, in nanoseconds, as far as
    /// it was taken from the stacks (`protocol/beside.rs`).
    beside: AtomicU64,
}

impl Overrunning {
    /// Once, however often its worker was revoked and restored since the last expiry.
    pub(super) fn add(&self, stack: &Arc<Stack>, cause: Cause) {
        let mut stacks = self.stacks.lock();
        match stacks.iter_mut().find(|(it, _)| Arc::ptr_eq(it, stack)) {
            Some((_, listed)) => *listed = cause,
            None => stacks.push((stack.clone(), cause)),
        }
    }

    fn take_beside_at(&self, stack: &Stack, time: u64, is_over: bool) {
        let more = if is_over {
            stack.beside.end(time)
        } else {
            stack.beside.take(time)
        };
        self.beside.fetch_add(more, Ordering::Relaxed);
    }

    /// The worker that the stack lent for a turn, or for more urgent work, has gone to another job.
    pub(in crate::sched) fn no_longer_lent(&self, stack: &Arc<Stack>) {
        let mut stacks = self.stacks.lock();
        let listed = stacks.iter_mut().find(|(it, _)| Arc::ptr_eq(it, stack));
        if let Some((_, cause)) = listed {
            *cause = Cause::Job;
        }
    }
}

impl Core {
    /// Whether any stack overruns, in any job.
    #[inline]
    pub(in crate::sched) fn does_any_overrun(&self) -> bool {
        // A plain load on most processors; see "arrive under expiry".
        self.overruns.load(Ordering::SeqCst) != 0
    }

    /// The stack has lost its worker. It may have come back by now, and its thread may serve another job.
    pub(super) fn begins_to_overrun(&self, stack: &Stack) {
        if !stack.overruns.swap(true, Ordering::Relaxed) {
            self.overruns.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The stack, which overran, has come to a scheduling point.
    pub(super) fn no_longer_overruns(&self, stack: &Stack) {
        if stack.overruns.swap(false, Ordering::Relaxed) {
            self.overruns.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether a listed stack still overruns in this job. It may have come back, and serve another job.
fn overruns_in(job: &Job, stack: &Stack) -> bool {
    stack.attention.is_revoked() && stack.is_of(job)
}

impl Job {
    /// Looks at the stacks that have lost their workers and not checked in since, and for what. Under the lock: what
    /// asks the kernel, or may have a worker revoked, takes them out first.
    fn overrun<R>(
        &self,
        look: impl FnOnce(&mut dyn Iterator<Item = &(Arc<Stack>, Cause)>) -> R,
    ) -> R {
        let stacks = self.overrunning.stacks.lock();
        look(&mut stacks.iter().filter(|(stack, _)| overruns_in(self, stack)))
    }

    /// Looks at the stacks whose worker was revoked before the last expiry.
    pub(super) fn look_at_overrunning(&self) {
        let taken = {
            let mut stacks = self.overrunning.stacks.lock();
            stacks.retain(|(stack, _)| overruns_in(self, stack));
            stacks.clone()
        };
        for (stack, cause) in taken {
            // It may not come back for long; what it forked must not wait for it.
            self.show_forks(&stack);
            let level = stack.level();
            if self.is_turn_of(level) {
                stack.raise_thread();
            } else if self.workers().any(|worker| worker.level() < level) {
                self.lower(&stack);
            } else if cause == Cause::Job {
                self.raise_after_brief(&stack);
            }
        }
    }

    /// A worker has shown that it serves `level`: an expiry of relief must lower what overruns below.
    #[inline]
    pub(in crate::sched) fn watch_overrunning(&self, level: u8) {
        if self.core.does_any_overrun() && !self.core.relief_timer.is_set() {
            self.watch_overrunning_cold(level);
        }
    }

    #[cold]
    fn watch_overrunning_cold(&self, level: u8) {
        let is_below =
            |(stack, _): &&(Arc<Stack>, Cause)| stack.level() > level && self.is_to_lower(stack);
        if self.overrun(|stacks| stacks.filter(is_below).count()) != 0 {
            self.arm_late();
        }
    }

    /// A worker has run dry, or begins something long: an expiry of relief must soon find what the stacks that overrun
    /// have forked and keep to themselves.
    #[inline]
    pub(in crate::sched) fn look_soon_at_overrunning(&self) {
        if self.core.does_any_overrun() {
            self.arm_relief();
        }
    }

    /// Whether some stack has lost its worker and not checked in since.
    pub(in crate::sched) fn is_any_overrunning(&self) -> bool {
        self.overrun(|stacks| stacks.next().is_some())
    }

    /// Of each stack that has lost its worker and not checked in since, whether its thread sleeps in the kernel.
    pub(in crate::sched) fn sleep_without_worker(&self) -> Vec<bool> {
        let overrun: Vec<_> = self.overrun(|stacks| stacks.cloned().collect());
        overrun.iter().map(|(stack, _)| stack.sleeps()).collect()
    }

    /// How many threads go on without their workers after they had run for long.
    pub(in crate::sched) fn ahead(&self) -> usize {
        let overrun: Vec<_> = self.overrun(|stacks| {
            stacks
                .filter(|(_, cause)| matches!(cause, Cause::Length | Cause::Job))
                .cloned()
                .collect()
        });
        let is_ahead = |(stack, _): &&(Arc<Stack>, Cause)| !stack.sleeps();
        overrun.iter().filter(is_ahead).count()
    }

    /// How many stacks have lost their workers for turns, and not checked in since.
    pub(in crate::sched) fn lent_for_turns(&self) -> usize {
        self.overrun(|stacks| stacks.filter(|(_, cause)| *cause == Cause::Turn).count())
    }

    /// The worker comes from another job, or from the idle set. It is to go back to stacks that it was revoked from for
    /// another job, or that it was not restored to before it went there; to the most urgent one first. A worker beyond
    /// the most that the job may have comes for one thing only.
    #[inline]
    pub(in crate::sched) fn has_back(&self, worker: &Worker) {
        if self.core.does_any_overrun() && self.crew.has_room(|| self.workers().count()) {
            self.has_back_cold(worker);
        }
    }

    #[cold]
    fn has_back_cold(&self, worker: &Worker) {
        let is_its = |(stack, cause): &&(Arc<Stack>, Cause)| {
            *cause == Cause::Job && stack.attention.is_revoked_from(worker.id)
        };
        let mut its: Vec<_> = self.overrun(|stacks| {
            let its = stacks.filter(is_its);
            its.map(|(stack, _)| stack.clone()).collect()
        });
        its.sort_by_cached_key(|stack| std::cmp::Reverse(stack.level()));
        its.into_iter()
            .for_each(|stack| worker.push_revoked_from(stack));
    }

    /// The levels of the stacks that had not checked in at the last expiry since their worker was revoked. They are
    /// in no pool.
    pub(crate) fn levels_overrunning(&self) -> u64 {
        self.overrun(|stacks| stacks.fold(0, |levels, (stack, _)| levels | 1 << stack.level()))
    }

    /// A stack comes to a scheduling point and finds its worker revoked; it is in the middle of `what`, or at its end.
    pub(crate) fn note_overrun(&self, me: Me<'_>, what: Name) {
        let since = me.relieved_at.swap(0, Ordering::Relaxed);
        if since != 0 {
            let ticks = clock::now().saturating_sub(since);
            self.overrunning.overruns.note(what, me.level(), ticks);
            if let Some(begun) = me.beside.take_begun() {
                let time = me.run_time();
                self.overrunning.take_beside_at(&me, time, true);
                let ran = time.saturating_sub(begun);
                self.standing
                    .note_piece(ran >= ANSWER_TIME.as_nanos() as u64);
            }
        }
    }

    /// The calling code ends a task of this job, whose accounts may be closed before its stack comes to a scheduling
    /// point. If it overran, that is noted now.
    pub(crate) fn note_overrun_at_end(&self) {
        Stack::with_current(|me| {
            if let Some(me) = me.filter(|me| me.is_of(self)) {
                self.note_overrun(me, me.what());
            }
        });
    }

    /// How long threads ran until now beside the workers that decisions about cores have left the job, in nanoseconds.
    pub(in crate::sched) fn beside_workers(&self) -> u64 {
        if self.core.does_any_overrun() {
            let has_begun = |(stack, _): &&(Arc<Stack>, Cause)| stack.beside.has_begun();
            let beside: Vec<_> = self.overrun(|stacks| stacks.filter(has_begun).cloned().collect());
            for (stack, _) in &beside {
                self.take_beside(stack, false);
            }
        }
        self.overrunning.beside.load(Ordering::Relaxed)
    }

    /// Whether a thread of the job runs beside its workers.
    pub(in crate::sched) fn runs_beside(&self) -> bool {
        self.core.does_any_overrun()
            && self.overrun(|stacks| stacks.filter(|(_, cause)| *cause == Cause::Job).count()) != 0
    }

    /// Accounts for what the thread of a stack of this job ran beside its workers.
    pub(super) fn take_beside(&self, stack: &Stack, is_over: bool) {
        if !stack.beside.has_begun() {
            return;
        }
        // Before it is charged; see the protocol.
        self.overrunning
            .take_beside_at(stack, stack.run_time(), is_over);
    }
}

impl Stack {
    /// For how long its thread has run, in nanoseconds.
    pub(super) fn run_time(&self) -> u64 {
        sys::thread::cpu_time(self.tid.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Whether its thread sleeps in the kernel.
    pub(in crate::sched) fn sleeps(&self) -> bool {
        sys::thread::is_blocked(self.tid.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use crate::{
        Runtime,
        protocol::demotion::USUAL,
        sched::{
            machine::claim::Want,
            stack::Binding,
            tests::{fork, revoked_at, stack_of},
            worker::{Worker, runs::Runs},
        },
    };
    use std::{
        thread,
        time::{Duration, Instant},
    };

    /// Two jobs on one worker, and a stack of the second, which the calling thread is.
    fn stack_of_second() -> ([Runtime; 2], Binding, Arc<Stack>) {
        let first = Runtime::builder().workers(1).build().unwrap();
        let second = Runtime::builder().share_workers_with(&first);
        let second = second.build().unwrap();
        let (binding, stack) = stack_of(second.job());
        ([first, second], binding, stack)
    }

    /// It came back, and its thread serves another job now, which has revoked its worker again.
    #[test]
    fn a_stack_that_has_gone_to_another_job_does_not_overrun_in_the_first() {
        let (runtimes, binding, stack) = stack_of_second();
        let jobs = [0, 1].map(|place| runtimes[place].job());
        binding.me().attention().leave(0, 8);
        assert_eq!(stack.attention.revoke(None), Some(0));
        for job in jobs {
            job.overrunning.add(&stack, Cause::Length);
        }
        assert_eq!(jobs.map(|job| job.levels_overrunning()), [0, 1]);
        assert_eq!(jobs.map(|job| job.is_any_overrunning()), [false, true]);
        jobs[0].look_at_overrunning();
        assert!(jobs[0].overrunning.stacks.lock().is_empty());
    }

    /// Named race "count under return": the revoking thread is late.
    #[test]
    fn a_stack_that_overran_in_one_job_and_comes_back_in_another_is_counted_in_neither() {
        let (runtimes, binding, stack) = stack_of_second();
        let jobs = [0, 1].map(|place| runtimes[place].job());
        jobs[0].core.begins_to_overrun(&stack);
        jobs[1].no_longer_overruns(binding.me(), || || "a test");
        assert_eq!(jobs.map(|job| job.core.does_any_overrun()), [false; 2]);
    }

    /// It counted as lent for as long as its code ran, and P such loops ended all turns of their job.
    #[test]
    fn a_stack_whose_worker_goes_to_another_job_has_not_lent_it_for_a_turn() {
        let (runtimes, binding, stack) = stack_of_second();
        let [first, second] = [0, 1].map(|place| runtimes[place].job());
        binding.me().attention().leave(0, 8);
        assert_eq!(stack.attention.revoke(None), Some(0));
        second.overrunning.add(&stack, Cause::Turn);
        let worker = second.claim(Want::Any).unwrap();
        worker.push_revoked_from(stack);
        assert_eq!((second.lent_for_turns(), second.ahead()), (1, 0));
        worker.serve(first);
        assert_eq!((second.lent_for_turns(), second.ahead()), (0, 1));
        first.release(worker);
    }

    crate::levels! { Order: Urgent > Usual > Idle }

    /// An expiry comes while the worker that was revoked for urgent work is on its way to a thread: it shows no level.
    /// The urgent work is in no pool any more, so that expiry arms no other one.
    #[test]
    #[cfg_attr(miri, ignore = "miri has no classes of the kernel's scheduler")]
    fn a_stack_that_an_expiry_saw_before_the_urgent_worker_arrived_is_lowered() {
        // The thread that makes the stack is the one that is lowered.
        let lowers = || {
            let runtime = Runtime::builder().workers(1).levels::<Order>();
            let runtime = runtime.build().unwrap();
            let job = runtime.job();
            let (_binding, stack) = revoked_at(job, 1);
            job.core.begins_to_overrun(&stack);
            job.overrunning.add(&stack, Cause::Urgency);
            job.look_at_overrunning();
            assert_eq!(stack.demotion.class(), USUAL, "no worker is above");
            let worker = job.claim(Want::Any).unwrap();
            worker.set_level(0);
            job.shows(worker, 0);
            let limit = Instant::now() + Duration::from_secs(20);
            while stack.demotion.class() != 9 {
                assert!(Instant::now() < limit, "no expiry has lowered it");
                thread::sleep(Duration::from_millis(1));
            }
            job.core.no_longer_overruns(&stack);
            job.release(worker);
        };
        thread::spawn(lowers).join().unwrap();
    }

    /// It notices at once, ends, and has taken up a job with more levels when the thread that revokes its worker looks
    /// at its level, or the thread to which that worker goes.
    #[test]
    fn a_stack_that_goes_to_another_job_as_its_worker_is_revoked_has_a_level_of_the_first() {
        let runtime = Runtime::builder().workers(1).levels::<Order>();
        let runtime = runtime.build().unwrap();
        let job = runtime.job();
        while job.core.pollers.enter(2) {}
        let (binding, _stack) = stack_of(job);
        let (me, worker) = (binding.me(), job.claim(Want::Any).unwrap());
        me.hold(worker);
        worker.set_level(2);
        me.attention().leave(worker.id, 8);
        me.set_level(5);
        let worker = job.revoke(worker, None, Cause::Urgency).unwrap();
        thread::scope(|threads| {
            threads.spawn(|| {
                let (binding, _stack) = stack_of(job);
                binding.me().hold(worker);
                job.restore(binding.me(), worker);
            });
        });
        job.core.no_longer_overruns(&me);
    }

    #[test]
    fn a_stack_whose_worker_is_revoked_again_and_again_is_looked_at_once() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let overrunning = Overrunning::default();
        let [often, once] = [(); 2].map(|()| Stack::new(&runtime.job().core));
        overrunning.add(&once, Cause::Urgency);
        for _ in 0..100 {
            overrunning.add(&often, Cause::Urgency);
        }
        assert_eq!(overrunning.stacks.lock().len(), 2);
    }

    /// A stack that has a fork loses its worker for a turn. Calls `then` with that worker. No thread waits in the
    /// poller, so no expiry comes.
    fn with_revoked(job: &Arc<Job>, then: impl FnOnce(&Worker)) {
        while job.core.pollers.enter(2) {}
        let (binding, _stack) = stack_of(job);
        let (me, worker) = (binding.me(), job.claim(Want::Any).unwrap());
        me.hold(worker);
        fork(me);
        worker.set_level(0);
        worker.set_runs(Runs::Long);
        me.attention().leave(worker.id, 8);
        then(job.revoke(worker, None, Cause::Turn).unwrap());
        job.core.no_longer_overruns(&me);
    }

    #[test]
    fn forks_of_a_stack_that_lost_its_worker_to_an_event_are_looked_for_soon_once_a_worker_lacks_them()
     {
        let (one, two) = (1, 2);
        for workers in [two, one] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let job = runtime.job();
            let is_soon = || job.core.relief_timer.is_soon();
            with_revoked(job, |worker| {
                assert_eq!(is_soon(), workers == two, "the second worker is idle");
                thread::scope(|threads| {
                    threads.spawn(|| {
                        let (binding, _stack) = stack_of(job);
                        binding.me().hold(worker);
                        job.go(binding.me(), 0);
                    });
                });
                assert!(is_soon(), "what runs now may be long");
            });
        }
    }

    #[test]
    fn a_worker_that_runs_dry_has_the_forks_of_stacks_that_overrun_looked_for_soon() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let job = runtime.job();
        with_revoked(job, |worker| {
            assert!(!job.core.relief_timer.is_soon());
            thread::scope(|threads| {
                threads.spawn(|| {
                    let (binding, _stack) = stack_of(job);
                    binding.me().hold(worker);
                    assert!(job.find_cold(binding.me(), worker, None).is_none());
                });
            });
            assert!(job.core.relief_timer.is_soon());
        });
    }
}
