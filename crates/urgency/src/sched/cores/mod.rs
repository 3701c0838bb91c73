//! Which job a worker serves, where several share the workers of a core set.
//!
//! A plain runtime is a core set with one job, of which the policy has no word to say ([`Core::is_policy_asked`]).
//!
//! # How a worker gets from job to job
//!
//! 1. **It finds nothing.** After the worker's release, which is a full barrier, its thread looks at the other jobs as
//!    it looks at its own job: at what is ready, and for forks that stacks keep to themselves. If another job has any,
//!    the worker is claimed back, for that job. So the rule for an insertion (claim an idle worker, or a worker will
//!    look) holds between jobs as within one. A thread with nothing on its stack goes on to serve the other job itself.
//! 2. **An insertion claims it** while it is idle, for its own job.
//! 3. **It is asked to leave.** The worker has a mark, and its holder a request for attention (PREEMPT). The holder
//!    looks at the mark between two pieces of work and at each scheduling point. Between two pieces of work its thread
//!    goes along with the worker. At a scheduling point its stack goes into the mugging queue of its own job, and
//!    another thread serves the other job. A worker whose job has more workers than it may have leaves for the idle set
//!    in the same way. So does a worker beyond the number that the process may use (`entitled.rs`). Under a policy with
//!    the steal boundary there is no request, and the holder goes only when it has no work of its own (`manner.rs`).
//! 4. **Its thread sleeps in the kernel**, and work of another job waits: it goes there (`blocked.rs`).
//! 5. **It is revoked**, if the request is still unanswered half a relief period later: at the next expiry. From a job
//!    whose code leaves such requests unanswered it is revoked at once (`silent.rs`).
//!
//! # What decides
//!
//! The core set's [`CorePolicy`] decides: at once when a job that has no worker, or fewer than it was given, has
//! work for one, when the last worker leaves a job while several others wait, and when a demand changes
//! (`at_once.rs`); and at expiries of the relief timer. The timer is armed whenever work of any job waits and no
//! worker is idle, and while several jobs have workers or work (`division.rs`). The policy sees numbers only. Its
//! decisions are hints: the worker's holder looks at the mark, and the mark says nothing any more when the worker
//! has gone to another job in another way.
//!
//! # How many a job may have
//!
//! A job may have at most its `max_cores`; under a policy that is not work-conserving also at most what the policy gave
//! it, which is nothing before the policy knows of it. Under such a policy a job that is alone is looked at, too: what
//! it may have is the policy's word about the jobs that have work, whether others exist or not. So is it under any
//! policy for a job whose threads run beside its workers (`protocol/beside.rs`). These limits are no hints: a thread
//! that takes a worker for a limited job counts the job's workers first (`crew.rs`). Three things bring a worker to a
//! job whatever the policy says: a fork for one certain worker (`pinned.rs`), that all sleep for a job without one
//! (`blocked.rs`), and the job's own end: what is left of it may have one, to unwind (`demand.rs`).

mod at_once;
mod blocked;
mod demand;
mod division;
mod hearers;
mod leaving;
mod manner;
mod plans;
mod silent;
mod standing;

pub use self::plans::PartitionReport;
pub(super) use self::standing::Standing;
pub(crate) use self::{
    division::Report,
    hearers::Hearer,
    plans::{Carries, Plans},
    standing::DemandOf,
};

use self::{
    demand::BusyJobs,
    division::Division,
    hearers::Hearers,
    leaving::{Destination, Exit, Going, Marks},
    plans::Desk,
};
use super::{
    core::{Core, JobList, RELIEF_PERIOD},
    job::Job,
    machine::claim::Want,
    policy_code::Decider,
    rescue::silence,
    stack::{Delivery, Me},
    worker::Worker,
};
use crate::{
    protocol::{attention::PREEMPT, turn::Turn},
    sys::{
        clock,
        fork::Process,
        mutex::{Mutex, MutexGuard},
    },
};
use crossbeam_queue::SegQueue;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
#[cfg(doc)]
use urgency_policy::cores::CorePolicy;
use urgency_policy::cores::{Boundary, BoxedPolicy};

/// How the jobs of a core set share its workers.
#[derive(Debug)]
pub(crate) struct Sharing {
    turn: Turn<State>,
    marks: Marks,
    /// What code of the program asks the policy, and the policy has not heard yet.
    requests: SegQueue<u64>,
    decider: Decider,
    /// How the policy did; a lock of its own, for a policy that looks at a runtime's `Stats`.
    report: Mutex<Report>,
    /// The policy may leave a worker without a job.
    is_strict: AtomicBool,
    /// The policy may refuse a demand without least cores.
    refuses: AtomicBool,
    /// Where what the policy says of cache and bandwidth waits to be carried out, if anything does that.
    desk: Option<Arc<Desk>>,
    hearers: Hearers,
    /// One of the two: each job that has work is looked at, though none waits.
    looks_always: AtomicBool,
}

#[derive(Debug)]
struct State {
    division: Division,
    /// What carries out the policy's word about cache and bandwidth, if anything does.
    plans: Option<Plans>,
    /// The life of the job that last had a worker beyond the policy's word (`blocked.rs`).
    beyond: u64,
}

impl Sharing {
    /// With `plans` the policy's word about cache and bandwidth is carried out, too.
    pub(crate) fn new(workers: usize, policy: BoxedPolicy, plans: Option<Plans>) -> Self {
        let mut division = Division::new(workers, policy);
        if let Some(plans) = &plans {
            division = division.with_controls(plans.controls());
        }
        Sharing {
            looks_always: AtomicBool::new(division.manner.is_strict || plans.is_some()),
            is_strict: AtomicBool::new(division.manner.is_strict),
            refuses: AtomicBool::new(division.manner.refuses),
            desk: plans.as_ref().map(Plans::desk),
            report: Mutex::default(),
            hearers: Hearers::default(),
            decider: Decider::default(),
            requests: SegQueue::new(),
            marks: Marks::new(workers),
            turn: Turn::new(State {
                division,
                plans,
                beyond: 0,
            }),
        }
    }

    /// Whether somebody has to look at each job that has work, though no work waits.
    #[inline]
    pub(super) fn looks_always(&self) -> bool {
        self.looks_always.load(Ordering::Relaxed)
    }

    /// Whether a job may have no more workers than the policy gave it.
    fn is_strict(&self) -> bool {
        self.is_strict.load(Ordering::Relaxed)
    }

    /// How the policy did; nothing, if the lock is lost in a child of `fork`.
    pub(crate) fn report(&self, process: Process) -> Report {
        let report = self.report.lock_in(process);
        report.map_or_else(Report::default, |report| *report)
    }
}

impl Core {
    /// The relief timer expired: ways 3 and 5 of the module's text. Returns a worker that serves another job now: the
    /// calling thread runs already, and a thread that it woke might wait for a processor. More of them are started.
    pub(super) fn share_workers(&self, jobs: &JobList) -> Option<&Worker> {
        if !self.is_to_divide(jobs) {
            return None;
        }
        self.sharing.turn.tell();
        let Some(state) = self.sharing.turn.take_for_news() else {
            // Another thread decides, and about this news as well. What it asks for is looked at when it has had time.
            self.arm_relief(RELIEF_PERIOD);
            return None;
        };
        let moves = self.decide_moves_in(jobs, state);
        self.decide_news();
        let answer_time = silence::answer_time();
        let now = clock::now();
        let pending = moves.iter().any(|going| going.at == Boundary::Point);
        let mut until_next = RELIEF_PERIOD;
        let mut moved: Option<&Worker> = None;
        for Going {
            worker,
            from,
            exit,
            at,
        } in moves
        {
            let since = worker.ask_to_leave(now);
            let Some(stack) = self.holder(worker).filter(|_| at == Boundary::Point) else {
                continue;
            };
            let left = answer_time.saturating_sub(now.saturating_sub(since));
            let may_answer = left > 0 || !stack.attention.is_pending(PREEMPT);
            if may_answer && !self.is_silent(&from, worker) {
                stack.attention.request(PREEMPT);
                if left > 0 {
                    until_next = until_next.min(clock::to_duration(left));
                }
            } else if let Some(revoked) = self.revoke_for_other(&from, worker) {
                match exit {
                    Exit::To(to) if to.take_over(revoked) => self.brings(&to, revoked, &mut moved),
                    Exit::To(_) | Exit::Idle => self.release_revoked(jobs, &from, revoked),
                }
            }
        }
        if pending {
            self.arm_relief(until_next);
        }
        moved
    }

    /// The worker serves `to` from now on. The first such worker is the calling thread's, `moved`; others are started.
    fn brings<'a>(&'a self, to: &Job, worker: &Worker, moved: &mut Option<&'a Worker>) {
        match moved {
            None => *moved = Some(&self.workers[worker.id]),
            Some(_) => to.start(worker),
        }
    }

    /// The workers that are to go, from which job, and where.
    fn decide_moves_in<'a>(
        &'a self,
        jobs: &JobList,
        mut state: MutexGuard<'_, State>,
    ) -> Vec<Going<'a>> {
        self.drop_stale_marks();
        self.call_to_pinned(jobs);
        let (raised, is_to_look) = if state.hear(&self.sharing.requests) || self.is_policy_asked() {
            let ask = || self.ask_policy(jobs, &mut state);
            self.sharing.decider.is_me_in(ask)
        } else {
            (Vec::new(), false)
        };
        let at = state.division.manner.leaves_at();
        for job in jobs.iter() {
            let over = self.staying(job).saturating_sub(job.crew.limit());
            (0..over).for_each(|_| self.send_one_of(job, Destination::Idle, at));
        }
        self.send_superfluous(self.superfluous(), jobs, at);
        let moves = self.going(jobs);
        self.sharing.turn.give_back(state);
        // Without the turn: a thread that this starts has its name from code of the program.
        if is_to_look {
            self.arm_late();
        }
        raised.into_iter().for_each(|job| job.may_have_more());
        moves
    }

    /// Notes the moves that the policy wants. Returns the jobs that may have more workers than before, and whether an
    /// expiry of the timer is to look again: forks that a stack keeps to itself arm nothing, and the turns go round.
    fn ask_policy(&self, jobs: &JobList, state: &mut State) -> (Vec<Arc<Job>>, bool) {
        let (mut busy, mut seen) = (
            Vec::with_capacity(jobs.len()),
            Vec::with_capacity(jobs.len()),
        );
        let (mut quiet, mut rested) = (Vec::new(), Vec::new());
        let ticks = clock::now();
        let nanos = |ticks| clock::to_duration(ticks).as_nanos() as u64;
        for job in jobs.iter() {
            let its = self.see(job);
            if let Some(since) = job.rested_since(its.as_ref(), ticks) {
                rested.push((nanos(since), job.standing.life()));
            }
            match its {
                Some(its) => {
                    busy.push(job);
                    seen.push(its);
                }
                None => quiet.push(job),
            }
        }
        let available = self.workers.len() - self.idle.in_reserve();
        let now = nanos(ticks);
        state.division.have_rested(rested);
        let asked = BusyJobs(&busy, ticks);
        for next in state.division.decide(now, available, &mut seen, &asked) {
            let to = Destination::Job(Arc::downgrade(busy[next.to]));
            let at = state.division.manner.leaves_at();
            self.send_one_of(busy[next.from], to, at);
        }
        let lives = quiet.iter().map(|job| job.standing.life());
        state.division.forget_ended(lives);
        state.plan(self, &busy);
        let sharing = &self.sharing;
        *sharing.report.lock() = state.division.report;
        let is_strict = state.division.manner.is_strict;
        sharing.is_strict.store(is_strict, Ordering::Relaxed);
        let refuses = state.division.manner.refuses;
        sharing.refuses.store(refuses, Ordering::Relaxed);
        let looks_always = is_strict || sharing.desk.is_some();
        sharing.looks_always.store(looks_always, Ordering::Relaxed);
        let others_have_more = state.division.has_any_too_many(&seen);
        let mut raised = Vec::new();
        for (place, (job, seen)) in busy.iter().zip(&seen).enumerate() {
            let entitled = state.division.entitled(place);
            job.standing.note_entitled(Some(entitled));
            // Workers that are idle come by themselves.
            let given = match others_have_more {
                true => entitled,
                false => 0,
            };
            job.hears_of(given, seen);
            if job.limit_anew() {
                raised.push((*job).clone());
            }
        }
        for job in quiet {
            job.standing.may_ask_again();
            job.standing.note_entitled(None);
            if job.limit_anew() {
                raised.push(job.clone());
            }
        }
        let is_to_look = busy.len() > 1 || looks_always && !busy.is_empty();
        (raised, is_to_look)
    }

    /// A worker for which a job has something that no other may run goes there.
    fn call_to_pinned(&self, jobs: &JobList) {
        for job in jobs.iter().filter(|job| job.pinned.any()) {
            for worker in &self.workers {
                if job.has_pinned_for(worker) && !worker.is_of(job) && !self.is_leaving(worker) {
                    let to = Destination::Job(Arc::downgrade(job));
                    self.send(worker, to, Boundary::Point);
                }
            }
        }
    }
}

impl Job {
    /// More workers may serve the job than before: a thread that was refused one has left its work to this call.
    pub(super) fn may_have_more(&self) {
        if self.levels_queued() != 0 {
            self.start_idle();
        }
    }

    /// The worker of another job serves this one from now on, unless that would be too many.
    fn take_over(&self, worker: &Worker) -> bool {
        let serve = || {
            worker.serve(self);
            self.standing.note_came();
            Some(())
        };
        let taken = if self.has_pinned_for(worker) {
            serve()
        } else {
            self.crew.admit(|| self.workers().count(), serve)
        };
        taken.is_some()
    }

    /// The caller holds `worker`, between two pieces of work, and is to leave the job with it. `Some(true)`: the worker
    /// serves another job now. `Some(false)`: it is idle.
    #[cold]
    pub(super) fn leave_for_other(&self, me: Me<'_>, worker: &Worker) -> Option<bool> {
        let at = match me.ring.is_empty() {
            true => Boundary::Steal,
            false => Boundary::Point,
        };
        let exit = self.core.exit_of(worker, self, at)?;
        self.flush_ring(&me);
        let goes_along = matches!(&exit, Exit::To(other) if other.take_over(worker));
        if !goes_along {
            self.release(worker);
            self.look_for_pinned(worker);
            self.start_other(me, worker);
        }
        // What is ready here was left to this worker.
        self.watch_queued();
        Some(goes_along)
    }

    /// The calling stack, at a scheduling point, gives its worker away if that is asked for.
    #[inline]
    pub(super) fn give_worker_to_other(&self, me: Me<'_>) {
        if me.worker().is_to_leave() {
            self.give_worker_to_other_cold(me);
        }
    }

    #[cold]
    fn give_worker_to_other_cold(&self, me: Me<'_>) {
        let worker = me.worker();
        let Some(exit) = self.core.exit_of(worker, self, Boundary::Point) else {
            return;
        };
        let Exit::To(other) = exit else {
            self.at(worker, me.level()).abandonments.add(1);
            return self.give_up_worker(me, || {
                self.release_and_look(me, worker);
                // This thread does not go into the poller, as a spare would.
                self.core.recall_poller();
            });
        };
        let spare = other.secure_spare(me, other.most_urgent_queued().unwrap_or(0));
        if spare.is_none() && !self.leaves_to_poller(me) {
            // No thread can be had: the worker is asked again later.
            return;
        }
        self.at(worker, me.level()).abandonments.add(1);
        self.give_up_worker(me, || match (other.take_over(worker), spare) {
            (true, Some(spare)) => other.hand_over(me, worker, &spare),
            (true, None) => other.start(worker),
            (false, spare) => {
                self.release_and_look(me, worker);
                if let Some(spare) = spare {
                    spare.deliver(Delivery::Look);
                }
            }
        });
    }

    /// The calling thread has released `worker`, after it found nothing in this job. For a thread with nothing on its
    /// stack: the worker, if another job has work for it.
    #[inline]
    pub(super) fn claim_for_other(&self, me: Me<'_>, worker: &Worker) -> Option<&Worker> {
        if self.core.is_shared() {
            self.claim_for_other_cold(me, worker)
        } else {
            None
        }
    }

    #[cold]
    fn claim_for_other_cold(&self, me: Me<'_>, worker: &Worker) -> Option<&Worker> {
        let jobs = self.core.jobs();
        let others = || jobs.iter().filter(|job| !std::ptr::eq(&***job, self));
        let waits = |job: &&Arc<Job>| job.has_work_for(me, worker);
        let waiting = others().filter(waits).take(2).count();
        if waiting == 0 {
            return None;
        }
        if waiting > 1 || self.core.sharing.is_strict() {
            self.ask_after_exit();
        }
        // The policy's choice is asked first: it has work, so hardly another job is asked.
        let (chosen, rest): (Vec<_>, Vec<_>) = others().partition(|job| job.has_less_than_given());
        for other in chosen.into_iter().chain(rest).filter(waits) {
            if let Some(claimed) = other.claim(Want::This(worker.id)) {
                return Some(&self.core.workers[claimed.id]);
            }
            other.start_unless_searched(me);
        }
        None
    }

    /// As [`Job::claim_for_other`], for a thread that is going to wait: others serve with the worker.
    #[inline]
    pub(super) fn start_other(&self, me: Me<'_>, worker: &Worker) {
        if self.core.is_shared() {
            self.start_other_cold(me, worker);
        }
    }

    #[cold]
    fn start_other_cold(&self, me: Me<'_>, worker: &Worker) {
        for other in self.core.jobs().iter() {
            if !std::ptr::eq(&**other, self) && other.has_work_for(me, worker) {
                other.look_for_pinned(worker);
                other.start_unless_searched(me);
            }
        }
    }

    fn has_work_for(&self, me: Me<'_>, worker: &Worker) -> bool {
        self.has_pinned_for(worker) || self.is_anything_left(Some(me), worker)
    }

    /// The calling thread, of another job, is about to sleep.
    fn start_unless_searched(&self, me: Me<'_>) {
        if self.searchers.count() == 0 || self.seats.waits() {
            self.start_idle_by(
                |worker| self.start_here(me, worker),
                || self.arm_for_queued(),
            );
        }
    }
}
