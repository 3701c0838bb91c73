//! Rule 1 of relief (`relief.rs`) between jobs: a worker whose thread sleeps in the kernel goes to a job in which work
//! waits, whatever the core policy gave that job.
//!
//! The policy counts workers, and does not see what their threads do. Suppose that a job takes a lock that the runtime
//! does not know, that more urgent jobs get all workers, and that their threads sleep until the lock is free. To the
//! policy all is well, and without this rule nothing would run again.
//!
//! A job in which work waits frees its own workers by itself (`Job::relieve`). What a thread wants that lost its worker
//! here, it asks for at its next scheduling point: then it waits, and the policy hears of it.
//!
//! # Beyond the policy's word
//!
//! Under a strict policy a job may have no more than it was given. Suppose that everything with a core sleeps until a
//! job without one has done something: nothing would run until a job starts or ends. So if all workers are idle, no job
//! with work may have one, and a thread sleeps in user code, a worker goes to a job without a core. As it is one too
//! many there, the core set asks it to leave at the next expiry, and the next job has its turn: which of them has what
//! the thread sleeps for, nothing knows. While something runs that the policy allows, and while no thread sleeps, its
//! word is kept.

use crate::sched::{
    core::{Core, JobList, RELIEF_PERIOD},
    job::Job,
    machine::claim::Want,
    worker::Worker,
};
use std::sync::Arc;

impl Core {
    /// The relief timer expired. As [`Core::share_workers`], which has `moved` this worker: the first one is the
    /// calling thread's, and more of them are started.
    pub(in crate::sched) fn free_blocked<'a>(
        &'a self,
        jobs: &JobList,
        mut moved: Option<&'a Worker>,
    ) -> Option<&'a Worker> {
        if !self.is_policy_asked() {
            return moved;
        }
        let mut waiting: Vec<_> = jobs.iter().filter(waits).collect();
        if waiting.is_empty() {
            return moved;
        }
        waiting.sort_by_cached_key(|job| (job.demand().priority, !job.has_less_than_given()));
        let pieces = waiting
            .iter()
            .flat_map(|job| std::iter::repeat_n(job, job.could_use()));
        let mut pieces = pieces.peekable();
        let mut asked = false;
        for from in jobs.iter().filter(|job| !waits(job)) {
            for worker in from.workers() {
                if pieces.peek().is_none() {
                    break;
                }
                let revoked = match from.revoke_from_blocked(worker) {
                    Ok(revoked) => revoked,
                    Err(is_asked) => {
                        asked |= is_asked;
                        continue;
                    }
                };
                match pieces.find(|to| to.take_over(revoked)) {
                    Some(to) => self.brings(to, revoked, &mut moved),
                    None => self.release_revoked(jobs, from, revoked),
                }
            }
        }
        if asked {
            self.arm_relief(RELIEF_PERIOD);
        }
        if let Some((to, worker)) = self.claim_beyond(jobs, &waiting) {
            self.brings(to, worker, &mut moved);
        }
        moved
    }

    /// If nothing runs, and a thread sleeps: a worker, for a job that may have none.
    fn claim_beyond<'a>(
        &'a self,
        jobs: &JobList,
        waiting: &[&'a Arc<Job>],
    ) -> Option<(&'a Arc<Job>, &'a Worker)> {
        if !self.workers.iter().all(|w| self.idle.contains(w.id))
            || waiting.iter().any(|job| job.crew.limit() > 0)
        {
            return None;
        }
        let mut without_worker = jobs.iter().flat_map(|job| job.sleep_without_worker());
        if !(without_worker.next()? && without_worker.all(|sleeps| sleeps)) {
            return None;
        }
        let mut state = self.sharing.turn.take();
        let turn = |job: &&&Arc<Job>| {
            let life = job.standing.life();
            (life <= state.beyond, life)
        };
        let next = *waiting.iter().min_by_key(turn)?;
        state.beyond = next.standing.life();
        self.sharing.turn.give_back(state);
        self.decide_news();
        let worker = next.claim(Want::Beyond(0))?;
        self.arm_relief(RELIEF_PERIOD);
        Some((next, worker))
    }
}

/// Whether work waits in the job that a worker of another job can come for.
fn waits(job: &&Arc<Job>) -> bool {
    job.levels_queued() != 0
}
