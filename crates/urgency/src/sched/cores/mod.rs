//! Which job a worker serves, where several share the workers of a core set.
//!
//! A plain runtime is a core set with one job, and comes here only to see that it has one job ([`Core::is_shared`]).
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
//!    another thread serves the other job.
//! 4. **It is revoked**, if the request is still unanswered half a relief period later: at the next expiry.
//!
//! # What decides
//!
//! [`EqualParts`] decides, at each expiry of the relief timer, which is armed whenever work of any job waits and no
//! worker is idle. It sees numbers only. Its decisions are hints: the worker's holder looks at the mark, and the mark
//! says nothing any more when the worker has gone to another job in another way.
//!
//! A fork for one certain worker (`pinned.rs`) brings that worker to the fork's job, whatever the parts.

mod equal;

use self::equal::{EqualParts, Seen};
use super::{
    core::{Core, JobList, RELIEF_PERIOD},
    job::Job,
    revoke::Cause,
    stack::Me,
    worker::{NO_LEVEL, Worker},
};
use crate::{protocol::attention::PREEMPT, sys::clock};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// How the jobs of a core set share its workers.
#[derive(Debug, Default)]
pub(crate) struct Sharing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    policy: EqualParts,
    /// Where the workers that are asked to leave are to go, by their numbers.
    leaving: Vec<(usize, Weak<Job>)>,
}

impl Sharing {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics under this lock")
    }
}

impl State {
    fn target_of(&self, worker: &Worker) -> Option<Arc<Job>> {
        let mut leaving = self.leaving.iter();
        leaving
            .find(|(id, _)| *id == worker.id)
            .and_then(|(_, job)| job.upgrade())
    }

    fn send(&mut self, worker: &Worker, to: &Arc<Job>) {
        self.leaving.retain(|(id, _)| *id != worker.id);
        self.leaving.push((worker.id, Arc::downgrade(to)));
    }
}

impl Core {
    /// The relief timer expired: ways 3 and 4 of the module's text.
    pub(super) fn share_workers(&self, jobs: &JobList) {
        if !self.is_shared() {
            return;
        }
        let moves = self.decide_moves(jobs);
        let half = clock::ticks(RELIEF_PERIOD.as_nanos() as f64 / 2.0);
        let now = clock::now();
        let pending = !moves.is_empty();
        for (worker, from, to) in moves {
            let since = worker.ask_to_leave(now);
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            if now.saturating_sub(since) < half || !stack.attention.is_pending(PREEMPT) {
                stack.attention.request(PREEMPT);
            } else if let Some(revoked) = from.revoke_counted(worker, None, Cause::Length) {
                revoked.serve(&to);
                to.start(revoked);
            }
        }
        if pending {
            self.arm_relief(RELIEF_PERIOD);
        }
    }

    /// The workers that are to go, from which job, and where.
    fn decide_moves<'a>(&'a self, jobs: &JobList) -> Vec<(&'a Worker, Arc<Job>, Arc<Job>)> {
        let mut state = self.sharing.lock();
        // Drops the marks of workers that have gone, and of workers that were to go to a job that is gone.
        state.leaving.retain(|(id, to)| {
            let worker = &self.workers[*id];
            worker.is_to_leave() && to.upgrade().is_some_and(|to| !worker.is_of(&to))
        });
        self.call_to_pinned(jobs, &mut state);
        let with_work = |job: &&Arc<Job>| job.workers().next().is_some() || job.has_demand();
        let jobs: Vec<_> = jobs.iter().filter(with_work).collect();
        if jobs.len() > 1 {
            let is_leaving = |worker: &Worker| state.leaving.iter().any(|(id, _)| *id == worker.id);
            let mut seen: Vec<_> = jobs
                .iter()
                .map(|job| {
                    let stay = job.workers().filter(|worker| !is_leaving(worker)).count();
                    let come = |(_, to): &&(usize, Weak<Job>)| to.as_ptr() == Arc::as_ptr(job);
                    let come = state.leaving.iter().filter(come).count();
                    Seen {
                        job: Arc::as_ptr(job).addr(),
                        workers: stay + come,
                        wants: job.demand().saturating_sub(come),
                    }
                })
                .collect();
            let now = clock::to_duration(clock::now()).as_nanos() as u64;
            for next in state.policy.decide(now, &mut seen) {
                let stays = |worker: &&Worker| {
                    worker.level() != NO_LEVEL
                        && !state.leaving.iter().any(|(id, _)| *id == worker.id)
                };
                let giver = jobs[next.from].workers().filter(stays);
                if let Some(worker) = giver.max_by_key(|worker| worker.level()) {
                    state.send(worker, jobs[next.to]);
                }
            }
            // Forks that a stack keeps to itself arm nothing, and the turns go round.
            self.arm_late();
        }
        let leaving = state.leaving.iter();
        leaving
            .filter_map(|(id, to)| {
                let worker = &*self.workers[*id];
                let from = jobs.iter().find(|job| worker.is_of(job))?;
                Some((worker, (*from).clone(), to.upgrade()?))
            })
            .collect()
    }

    /// A worker for which a job has something that no other may run goes there.
    fn call_to_pinned(&self, jobs: &JobList, state: &mut State) {
        for job in jobs.iter() {
            for worker in &self.workers {
                if job.has_pinned_for(worker)
                    && !worker.is_of(job)
                    && state.target_of(worker).is_none()
                {
                    state.send(worker, job);
                }
            }
        }
    }

    /// Where a worker is to go that serves `job`, for its holder.
    fn target_of(&self, worker: &Worker, job: &Job) -> Option<Arc<Job>> {
        worker.stays();
        let mut state = self.sharing.lock();
        let target = state.target_of(worker);
        state.leaving.retain(|(id, _)| *id != worker.id);
        target.filter(|target| !std::ptr::eq(&**target, job))
    }
}

impl Job {
    /// Whether the job could use one more worker.
    fn has_demand(&self) -> bool {
        self.demand() > 0
    }

    /// How many more workers the job could use at once, at least.
    fn demand(&self) -> usize {
        if self.core.idle.is_any_hungry() && !self.seats.waits() {
            // The job gets these workers.
            return 0;
        }
        let levels = 0..self.pools.len();
        let queued: usize = levels.map(|level| self.queued(level)).sum();
        let busy = self.workers().filter(|worker| worker.level() != NO_LEVEL);
        let forks = busy.filter(|worker| {
            let stack = self.core.holder(worker);
            stack.is_some_and(|stack| stack.is_of(self) && !stack.deque.seems_empty())
        });
        (queued + forks.count()).min(self.core.workers.len())
    }

    /// The caller holds `worker`, between two pieces of work, and is to go to another job with it. Whether the worker
    /// serves that job now.
    #[cold]
    pub(super) fn leave_for_other(&self, me: Me<'_>, worker: &Worker) -> bool {
        let Some(other) = self.core.target_of(worker, self) else {
            return false;
        };
        self.flush_ring(&me);
        worker.serve(&other);
        // What is ready here was left to this worker.
        self.watch_queued();
        true
    }

    /// The calling stack, at a scheduling point, gives its worker to another job if that is asked for.
    #[inline]
    pub(super) fn give_worker_to_other(&self, me: Me<'_>) {
        if me.worker().is_to_leave() {
            self.give_worker_to_other_cold(me);
        }
    }

    #[cold]
    fn give_worker_to_other_cold(&self, me: Me<'_>) {
        let worker = me.worker();
        let Some(other) = self.core.target_of(worker, self) else {
            return;
        };
        let spare = other.secure_spare(me, other.most_urgent_queued().unwrap_or(0));
        if spare.is_none() && !self.leaves_to_poller(me) {
            // No thread can be had: the worker is asked again later.
            return;
        }
        self.at(worker, me.level()).abandonments.add(1);
        self.give_up_worker(me, || {
            worker.serve(&other);
            match spare {
                Some(spare) => other.hand_over(me, worker, &spare),
                None => other.start(worker),
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
        for other in self.core.jobs().iter() {
            if std::ptr::eq(&**other, self) || !other.has_work_for(me, worker) {
                continue;
            }
            if let Some(claimed) = other.claim_exactly(worker.id) {
                return Some(&self.core.workers[claimed.id]);
            }
            other.start_unless_searched();
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
                other.start_unless_searched();
            }
        }
    }

    fn has_work_for(&self, me: Me<'_>, worker: &Worker) -> bool {
        self.has_pinned_for(worker) || self.is_anything_left(me, worker)
    }

    fn start_unless_searched(&self) {
        if self.searchers.count() == 0 || self.seats.waits() {
            self.start_idle();
        }
    }
}
