//! Rule 1 of relief (`relief.rs`) between jobs: a worker whose thread sleeps in the kernel goes to a job in which work
//! waits, whatever the core policy gave that job.
//!
//! The policy counts workers, and does not see what their threads do. Suppose that a job takes a lock that the runtime
//! does not know, that more urgent jobs get all workers, and that their threads sleep until the lock is free. To the
//! policy all is well, and without this rule nothing would run again.
//!
//! A job in which work waits frees its own workers by itself (`Job::relieve`). What a thread wants that lost its worker
//! here, it asks for at its next scheduling point: then it waits, and the policy hears of it.

use crate::sched::{
    core::{Core, JobList, RELIEF_PERIOD},
    job::Job,
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
        if !self.is_shared() {
            return moved;
        }
        let mut waiting: Vec<_> = jobs.iter().filter(waits).collect();
        if waiting.is_empty() {
            return moved;
        }
        waiting.sort_by_cached_key(|job| (job.demand().priority, !job.has_less_than_given()));
        let pieces = waiting
            .into_iter()
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
                match pieces.next() {
                    Some(to) if to.take_over(revoked) => self.brings(to, revoked, &mut moved),
                    _ => from.release(revoked),
                }
            }
        }
        if asked {
            self.arm_relief(RELIEF_PERIOD);
        }
        moved
    }
}

/// Whether work waits in the job that a worker of another job can come for.
fn waits(job: &&Arc<Job>) -> bool {
    job.levels_queued() != 0
}
