//! What a job asks for of the workers that it shares, and whether it can have that.
//!
//! All demands of a core set hold at once: each is checked as if every job had work. The check and the entry of a new
//! job into the table are one step under the lock of the core set's policy, so that two that come together cannot be
//! promised the same worker.
//!
//! What was refused may be had when another demand has changed (`hearers.rs`).

use super::{
    DemandOf, Report,
    division::{Asked, Done, Seen},
};
use crate::{
    sched::{
        core::{Core, JobList, RELIEF_PERIOD},
        job::Job,
        poll_context,
        worker::{NO_LEVEL, Worker},
    },
    sys::clock,
};
use std::{
    mem, ptr,
    sync::{Arc, atomic::Ordering},
};
use urgency_policy::cores::{Cores, Demand, JobId, Refusal, Unpartitioned};

/// What a job has of the workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) serving: usize,
    pub(crate) entitled: Option<usize>,
    pub(crate) came: u64,
    pub(crate) iterations: u64,
    pub(crate) late: u64,
    pub(crate) policy: Report,
}

impl Core {
    /// Whether the calling code is the policy's, in a decision: it may wait for no thread that waits for the turn.
    pub(crate) fn is_deciding(&self) -> bool {
        self.sharing.decider.is_me()
    }

    /// Calls `then` if this demand can be kept beside all others but `except`'s. No demand that promises a core changes
    /// meanwhile. `then` is gone, whether it was called or not, before what follows from this: that calls code of the
    /// program.
    pub(crate) fn admit<R>(
        &self,
        demand: Demand,
        except: Option<&Job>,
        then: impl FnOnce() -> R,
    ) -> Result<R, Refusal> {
        if self.threads.are_provided() && demand != Demand::default() {
            return Err(Refusal::Own(
                "a runtime with provided threads has all of them for itself: leave `demand` out",
            ));
        }
        if self.is_deciding() {
            return Err(Refusal::Deciding);
        }
        if demand.min_cores == 0 && !self.sharing.refuses.load(Ordering::Relaxed) {
            demand.check()?;
            return Ok(then());
        }
        // Let go of after the lock.
        let jobs;
        let mut state = self.sharing.turn.take();
        jobs = self.jobs();
        let others = Core::demands_but(&jobs, except);
        let admit = || state.division.admit(demand, &others).map(|()| then());
        let admitted = self.sharing.decider.is_me_in(admit);
        self.sharing.turn.give_back(state);
        self.decide_news();
        admitted
    }

    /// What all jobs but this one ask for.
    fn demands_but(jobs: &JobList, except: Option<&Job>) -> Vec<Demand> {
        let is_other = |job: &&Arc<Job>| {
            !job.closing.load(Ordering::SeqCst) && !except.is_some_and(|it| ptr::eq(&***job, it))
        };
        let mut others = Vec::with_capacity(jobs.len());
        others.extend(jobs.iter().filter(is_other).map(|job| job.demand()));
        others
    }

    /// Whether a job could have this demand if no other job had any. The policy is not asked: it decides when the job
    /// starts.
    pub(crate) fn could_keep(&self, demand: Demand) -> Result<(), Refusal> {
        Cores::new(self.workers.len()).start(&mut Unpartitioned, JobId(0), demand)
    }
}

impl Job {
    /// What the job asks for.
    pub(crate) fn demand(&self) -> Demand {
        self.standing.demand()
    }

    /// As [`Job::demand`], at each look.
    pub(crate) fn demand_of(&self) -> DemandOf {
        self.standing.demand_of()
    }

    /// The job asks for this from now on. Whether more workers may serve it than before.
    fn put_demand(&self, demand: Demand) -> bool {
        self.standing.change(|its| {
            *its = demand;
            self.set_limit(its)
        })
    }

    /// What the limit follows from may have changed ([`Job::limit_for`]). Whether more workers may serve the job than
    /// before.
    pub(in crate::sched) fn limit_anew(&self) -> bool {
        self.standing.with_demand(|its| self.set_limit(its))
    }

    /// With the lock of the demand; see `protocol/crew.rs`.
    fn set_limit(&self, its: &Demand) -> bool {
        self.crew.set_limit(self.limit_for(its))
    }

    /// How many workers may serve the job, which asks for this: what it asks for at most, if the policy allows it.
    /// While threads of the job run beside its workers it may have no more than the policy gave it: the processors of
    /// idle workers are not idle. (At each moment at which a worker of another job found nothing, the job began one
    /// more piece that no other job could stop.)
    ///
    /// Under a strict policy a job of which the policy does not know has none. Its first work asks for one, and so has
    /// the policy decide ([`Job::ask_for_worker`]).
    ///
    /// Where the policy has no word, as about a job that has become the only one, it limits nothing. All may serve a
    /// job of a core set that closes. (A job that was cancelled, and to which the policy gave none, did not end, and no
    /// more did the shutdown that had cancelled it.)
    fn limit_for(&self, its: &Demand) -> usize {
        let core = &self.core;
        if core.closing.load(Ordering::SeqCst) {
            return usize::MAX;
        }
        let part = match self.standing.entitled() {
            _ if !core.is_policy_asked() => usize::MAX,
            entitled if core.sharing.is_strict() => entitled.unwrap_or(0),
            Some(entitled) if self.runs_beside() => entitled,
            _ => usize::MAX,
        };
        // What is left of a job that is to end may have one worker, to unwind, whatever the policy says.
        let least = usize::from(self.tasks.live.is_closed());
        part.min(its.max_cores).max(least)
    }

    /// The period that a task has to keep, in nanoseconds: the policy's, whichever jobs have work, or else the one that
    /// the task would like. `None` for a job that is no task, and in code of a policy.
    pub(crate) fn period(&self) -> Option<u64> {
        let demand = self.demand();
        let liked = demand.task?.period;
        if poll_context::decides() || !self.core.process.is_this() {
            return None;
        }
        // Let go of after the lock.
        let jobs;
        let sharing = &self.core.sharing;
        let state = sharing.turn.take();
        jobs = self.core.jobs();
        let others = Core::demands_but(&jobs, Some(self));
        let available = self.core.workers.len() - self.core.idle.in_reserve();
        let ask = || state.division.period(demand, &others, available);
        let kept = sharing.decider.is_me_in(ask);
        sharing.turn.give_back(state);
        self.core.decide_news();
        kept.or(Some(liked))
    }

    /// An iteration of the real-time task that the job is has ended.
    pub(crate) fn iteration_ended(&self, was_late: bool) {
        self.standing.iteration_ended(was_late);
    }

    /// How many more workers the job could use at once, at least.
    pub(super) fn could_use(&self) -> usize {
        let levels = 0..self.pools.len() as u8;
        let queued: usize = levels.map(|level| self.queued(level)).sum();
        let busy = self.workers().filter(|worker| worker.level() != NO_LEVEL);
        let forks = busy.filter(|worker| {
            let stack = self.core.holder(worker);
            stack.is_some_and(|stack| stack.is_of(self) && !stack.deque.seems_empty())
        });
        (queued + forks.count()).min(self.core.workers.len())
    }

    /// Whether a worker that the job could use comes by itself.
    fn gets_by_itself(&self, serving: usize) -> bool {
        self.core.idle.is_any_hungry() && !self.seats.waits() && self.crew.has_room(|| serving)
    }

    /// A worker has left. If it was the last, and there is no work, the job rests from now on: looks come seldom.
    #[inline]
    pub(in crate::sched) fn notes_if_quiet(&self, worker: &Worker) {
        // Otherwise the policy does not know of it as of a job with work.
        if self.standing.entitled().is_some()
            && self.workers().next().is_none()
            && self.levels_queued() == 0
        {
            self.standing.is_quiet(worker.since());
        }
    }

    /// The policy has given it so many workers, and moves are on their way.
    pub(super) fn hears_of(&self, given: usize, seen: &Seen) {
        let are_coming = seen.wants > 0 || seen.workers > seen.serving;
        if seen.serving == 0 || seen.serving < given && are_coming {
            // The policy has just heard of it: work that it shows again is no news.
            self.standing.note_asked();
        } else {
            self.standing.may_ask_again();
        }
        // Where it has none, its first work brings it the first one.
        let lacks = seen.workers < given && given > 1;
        self.standing.note_lacks(lacks);
        if lacks {
            // Its next forks bring it another worker.
            self.seats.all_are_missed();
        }
    }

    /// Since when the job rests, in ticks, if it does at a look at `now` or did until just now: for a relief period at
    /// least, so that brief pauses cost no decisions. It says so once.
    pub(super) fn rested_since(&self, seen: Option<&Seen>, now: u64) -> Option<u64> {
        // The policy knows of it as of a job with work.
        self.standing.entitled()?;
        let since = self.standing.quiet_since()?;
        let is_long = || clock::to_duration(now.saturating_sub(since)) >= RELIEF_PERIOD;
        let has_rested = seen.is_none_or(|its| its.serving == 0 && is_long());
        if !has_rested {
            return None;
        }
        self.standing.is_quiet_no_more();
        Some(since)
    }

    /// What the job has done until `now`, in ticks.
    fn done(&self, now: u64) -> Done {
        let levels = 0..self.pools.len() as u8;
        let workers = self.core.workers.iter();
        let each = workers.flat_map(|w| levels.clone().map(|l| self.run_ticks_of(w, l, now)));
        Done {
            ran: clock::to_duration(each.sum()).as_nanos() as u64,
            beside: self.beside_workers(),
            late: self.standing.late(),
        }
    }

    /// The job asks for this from now on.
    pub(crate) fn set_demand(&self, demand: Demand) -> Result<(), Refusal> {
        self.set_demand_and(demand, || ())
    }

    /// As [`Job::set_demand`]. `then` is called with the change, and gone before what follows from it, as for
    /// [`Core::admit`].
    pub(crate) fn set_demand_and(
        &self,
        demand: Demand,
        then: impl FnOnce(),
    ) -> Result<(), Refusal> {
        let put = || {
            let is_raised = self.put_demand(demand);
            then();
            is_raised
        };
        let is_raised = self.core.admit(demand, Some(self), put)?;
        if is_raised {
            self.may_have_more();
        }
        self.ask_after_change();
        Ok(())
    }

    /// The job is over, and asks for nothing from now on. The policy is not asked whether it may, and hears of the end
    /// when the last worker has left. An admission that still sees the old demand promises too little to another job,
    /// and [`Core::demands_changed`] comes afterwards.
    pub(crate) fn give_demand_back(&self) {
        self.put_demand(Demand::default());
    }

    /// The job is as urgent as this from now on, because code that is so waits for it, or does no more. The policy is
    /// not asked whether it may be: what the job was promised stays as it is. So this is never refused. `then` is
    /// called before what follows from the change.
    pub(crate) fn set_priority_and(&self, priority: u8, then: impl FnOnce()) {
        let before = self
            .standing
            .change(|its| mem::replace(&mut its.priority, priority));
        then();
        if before != priority {
            self.ask_after_change();
        }
    }

    /// Whether more workers serve the job than may.
    pub(super) fn has_too_many(&self) -> bool {
        let limit = self.crew.limit();
        limit < self.core.workers.len() && self.workers().count() > limit
    }

    /// What the job has of the workers.
    pub(crate) fn share_of_workers(&self) -> Share {
        let standing = &self.standing;
        Share {
            serving: self.workers().count(),
            entitled: standing.entitled(),
            came: standing.came(),
            iterations: standing.iterations(),
            late: standing.late(),
            policy: self.core.sharing.report(self.core.process),
        }
    }
}

/// The jobs that have work, at this time in ticks.
pub(super) struct BusyJobs<'a>(pub(super) &'a [&'a Arc<Job>], pub(super) u64);

impl Asked for BusyJobs<'_> {
    fn demand(&self, place: usize) -> Demand {
        self.0[place].demand()
    }

    fn done(&self, place: usize) -> Done {
        self.0[place].done(self.1)
    }
}

impl Core {
    /// What a decision has to know of a job that has work, or workers.
    pub(super) fn see(&self, job: &Job) -> Option<Seen> {
        let (serving, could_use) = (job.workers().count(), job.could_use());
        // A stack that goes on without its worker will want one.
        if serving == 0 && could_use == 0 && !job.is_any_overrunning() {
            return None;
        }
        let come = self.leaving().filter(|leaving| leaving.to.is(job)).count();
        let wants = match job.gets_by_itself(serving) {
            true => 0,
            false => could_use.saturating_sub(come),
        };
        Some(Seen {
            life: job.standing.life(),
            changes: job.standing.changes(),
            serving,
            workers: self.staying(job) + come,
            wants,
        })
    }
}

impl Core {
    /// The core set closes, or one job is left, and no policy decides any more. The last decision may have left a job
    /// no worker. (What was left of it waited for good, and so did the only job, with all that was spawned there.)
    pub(in crate::sched) fn lift_limits(&self) {
        let may_have_more = |job: &&Arc<Job>| job.limit_anew();
        let jobs = self.jobs();
        jobs.iter()
            .filter(may_have_more)
            .for_each(|job| job.may_have_more());
    }
}

#[cfg(all(test, not(any(miri, urgency_loom))))]
mod tests {
    use crate::{Runtime, sched::tests::until};
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    };
    use urgency_policy::cores::{CorePolicy, Cores, Decision, DecisionError, Demand, Event};

    /// Limits no job, and waits inside of each decision about a request until it is told to go on.
    #[derive(Clone)]
    struct Waits(Sender<()>, Arc<Mutex<Receiver<()>>>);

    impl CorePolicy for Waits {
        fn decide(
            &mut self,
            event: Event,
            _: &Cores,
            _: &mut Decision,
        ) -> Result<(), DecisionError> {
            if let Event::Request(_) = event {
                let _ = self.0.send(());
                let _ = self.1.lock().unwrap().recv();
            }
            Ok(())
        }

        fn is_work_conserving(&self) -> bool {
            true
        }

        fn refuses(&self) -> bool {
            false
        }
    }

    /// The other job is hidden, so that the decision does not keep it.
    #[test]
    fn a_demand_that_rises_during_a_decision_holds_when_the_other_jobs_are_gone_before_its_end() {
        let ((waits, is_waiting), (goes_on, go_on)) = (channel(), channel());
        let most = |max_cores| Demand {
            max_cores,
            ..Demand::default()
        };
        let policy = Waits(waits, Arc::new(Mutex::new(go_on)));
        let builder = Runtime::builder().workers(2).demand(most(1));
        let one = builder.core_policy(policy).build().unwrap();
        let other = Runtime::builder().share_workers_with(&one).build().unwrap();
        let core = &one.job().core;
        core.hide(other.job());
        let end = Arc::new(AtomicBool::new(false));
        let ends = end.clone();
        let works = one.spawn_fn(move || {
            while !ends.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        });
        until(|| one.job().workers().next().is_some());
        std::thread::scope(|threads| {
            let decider = threads.spawn(|| core.request(1));
            is_waiting.recv().unwrap();
            one.job().set_demand(most(2)).unwrap();
            drop(other);
            until(|| !core.is_shared());
            drop(goes_on);
            decider.join().unwrap();
        });
        end.store(true, Ordering::SeqCst);
        works.get().unwrap();
        assert_eq!(one.job().crew.limit(), usize::MAX);
    }

    /// The thread that inserted the task was refused a worker, and the policy had heard of that.
    #[test]
    fn a_job_that_a_policy_left_no_worker_has_its_work_run_when_the_other_jobs_are_gone() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let other = Runtime::builder().share_workers_with(&runtime);
        let other = other.build().unwrap();
        let job = runtime.job();
        assert!(job.core.relief_timer.arm());
        job.standing.note_asked();
        job.crew.set_limit(0);
        let task = runtime.spawn(async {});
        assert_eq!(job.queued(0), 1);
        drop(other);
        until(|| task.is_finished());
    }

    /// Under a policy that is not strict the first of the two limits is the one that rises. The thread that inserted
    /// the task was refused a worker, and no expiry of relief starts one after the end.
    #[test]
    fn a_job_that_a_policy_left_no_worker_has_its_work_run_when_its_core_set_closes() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let job = runtime.job();
        // Relief seems to be armed, so that it never expires.
        assert!(job.core.relief_timer.arm());
        job.crew.set_limit(0);
        let task = runtime.spawn(async {});
        assert_eq!(job.queued(0), 1);
        job.core.closing.store(true, Ordering::SeqCst);
        job.core.lift_limits();
        until(|| task.is_finished());
    }
}
