//! Workers that are asked to leave their job.
//!
//! The core set marks a worker with a [`Leaving`]; the worker's holder finds it at the boundary that it names, and
//! goes. Until then it is a hint: a job that ends, and a worker that goes to another job by itself, leave one behind
//! that says nothing.
//!
//! Only the thread that decides marks workers. A holder takes a mark away without the turn to decide. (While it waited
//! for the turn, holders at scheduling points slept in the kernel for as long as a decision took, or for as long as the
//! deciding thread waited for a processor: 300 times a second with 64 jobs of a millisecond.)

use crate::{
    sched::{
        core::{Core, JobList},
        job::Job,
        worker::{NO_LEVEL, Worker},
    },
    sys::{clock, mutex::Mutex},
};
use std::sync::{Arc, Weak};
use urgency_policy::cores::Boundary;

/// Where a worker is asked to go, and at which boundary.
#[derive(Debug, Clone)]
pub(super) struct Leaving {
    pub(super) to: Destination,
    at: Boundary,
}

/// Where a worker is to go.
#[derive(Debug, Clone)]
pub(super) enum Destination {
    Job(Weak<Job>),
    /// To the idle set: its job has more than it may have.
    Idle,
}

impl Destination {
    pub(super) fn is(&self, job: &Job) -> bool {
        matches!(self, Destination::Job(to) if std::ptr::eq(to.as_ptr(), job))
    }
}

/// A worker's way out of its job.
pub(super) enum Exit {
    To(Arc<Job>),
    Idle,
}

impl Leaving {
    fn exit(&self) -> Option<Exit> {
        match &self.to {
            Destination::Job(job) => job.upgrade().map(Exit::To),
            Destination::Idle => Some(Exit::Idle),
        }
    }
}

/// A worker that is to leave.
pub(super) struct Going<'a> {
    pub(super) worker: &'a Worker,
    pub(super) from: Arc<Job>,
    pub(super) exit: Exit,
    pub(super) at: Boundary,
}

/// The marks of all workers. Under the lock of its mark a worker [is to leave](Worker::is_to_leave) if it has one.
/// Without that lock the worker's word may say so for a moment more.
#[derive(Debug)]
pub(super) struct Marks(Box<[Mutex<Option<Leaving>>]>);

impl Marks {
    pub(super) fn new(workers: usize) -> Self {
        Marks((0..workers).map(|_| Mutex::default()).collect())
    }

    /// The worker's mark, if it has one.
    pub(super) fn of(&self, worker: &Worker) -> Option<Leaving> {
        let is_marked = worker.is_to_leave();
        is_marked
            .then(|| self.0[worker.id].lock().clone())
            .flatten()
    }

    fn put(&self, worker: &Worker, to: Destination, at: Boundary) {
        let mut mark = self.0[worker.id].lock();
        *mark = Some(Leaving { to, at });
        worker.ask_to_leave(clock::now());
    }

    /// The worker's mark, for its holder, which is at this boundary.
    fn take_at(&self, worker: &Worker, at: Boundary) -> Option<Leaving> {
        let mut mark = self.0[worker.id].lock();
        let is_due = |leaving: &mut Leaving| leaving.at == Boundary::Point || leaving.at == at;
        let had_any = mark.is_some();
        let taken = mark.take_if(is_due);
        if taken.is_some() || !had_any {
            worker.stays();
        }
        taken
    }

    /// Drops the mark of a worker that was to go to a job that is gone, or serves it already.
    fn drop_if_stale(&self, worker: &Worker) {
        let is_stale = |leaving: &mut Leaving| match &leaving.to {
            Destination::Job(to) => to.strong_count() == 0 || worker.is_at(to.as_ptr()),
            Destination::Idle => false,
        };
        let mut mark = self.0[worker.id].lock();
        if mark.take_if(is_stale).is_some() {
            worker.stays();
        }
    }
}

impl Core {
    pub(super) fn send(&self, worker: &Worker, to: Destination, at: Boundary) {
        self.sharing.marks.put(worker, to, at);
    }

    /// Sends the worker of this job that serves its least urgent level, if any stays.
    pub(super) fn send_one_of(&self, job: &Job, to: Destination, at: Boundary) {
        let stays = |worker: &&Worker| worker.level() != NO_LEVEL && !self.is_leaving(worker);
        let worker = job.workers().filter(stays).max_by_key(|w| w.level());
        if let Some(worker) = worker {
            self.send(worker, to, at);
        }
    }

    /// So many workers have to leave, of the jobs that have most above what they were given.
    pub(super) fn send_superfluous(&self, count: usize, jobs: &JobList, at: Boundary) {
        let to_idle = |leaving: &Leaving| matches!(leaving.to, Destination::Idle);
        let leave = self.leaving().filter(to_idle).count();
        for _ in leave..count {
            let above = |job: &&Arc<Job>| {
                let staying = self.staying(job);
                let given = job.standing.entitled().unwrap_or(usize::MAX);
                (staying.saturating_sub(given), staying)
            };
            if let Some(job) = jobs.iter().max_by_key(above) {
                self.send_one_of(job, Destination::Idle, at);
            }
        }
    }

    /// How many workers of this job stay.
    pub(super) fn staying(&self, job: &Job) -> usize {
        let workers = job.workers();
        workers.filter(|worker| !self.is_leaving(worker)).count()
    }

    pub(super) fn is_leaving(&self, worker: &Worker) -> bool {
        worker.is_to_leave() && self.sharing.marks.of(worker).is_some()
    }

    /// All marks.
    pub(super) fn leaving(&self) -> impl Iterator<Item = Leaving> {
        let workers = self.workers.iter();
        workers.filter_map(|worker| self.sharing.marks.of(worker))
    }

    pub(super) fn drop_stale_marks(&self) {
        let marked = self.workers.iter().filter(|worker| worker.is_to_leave());
        marked.for_each(|worker| self.sharing.marks.drop_if_stale(worker));
    }

    /// The workers that are to go.
    pub(super) fn going<'a>(&'a self, jobs: &JobList) -> Vec<Going<'a>> {
        let going = |worker: &'a Worker| {
            let leaving = self.sharing.marks.of(worker)?;
            Some(Going {
                worker,
                from: jobs.iter().find(|job| worker.is_of(job))?.clone(),
                exit: leaving.exit()?,
                at: leaving.at,
            })
        };
        let workers = self.workers.iter();
        workers.filter_map(|worker| going(worker)).collect()
    }

    /// Where a worker is to go that serves `job`, for its holder, which is at this boundary.
    pub(super) fn exit_of(&self, worker: &Worker, job: &Job, at: Boundary) -> Option<Exit> {
        let leaving = self.sharing.marks.take_at(worker, at)?;
        leaving.exit().filter(|exit| match exit {
            Exit::To(to) => !std::ptr::eq(&**to, job),
            Exit::Idle => true,
        })
    }
}

#[cfg(all(test, not(miri), not(urgency_loom)))]
mod tests {
    use crate::{
        Runtime,
        embed::Host,
        join,
        sched::{
            rescue::revoke::Cause,
            tests::{LIMIT, until},
        },
    };
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::SeqCst},
            mpsc::{Receiver, channel},
        },
        thread,
        time::Duration,
    };
    use urgency_policy::cores::Demand;

    /// A runtime whose timer seems to be set, so that it never expires: what the tests call is all that happens.
    fn without_expiries(builder: crate::Builder) -> Runtime {
        let runtime = builder.build().unwrap();
        assert!(runtime.job().core.relief_timer.arm());
        runtime
    }

    /// Runs `wait` on a worker, in a closure that comes to no scheduling point, and that has begun.
    fn begun(runtime: &Runtime, wait: impl FnOnce() + Send + 'static) {
        let (begins, has_begun) = channel();
        let closure = move || {
            begins.send(()).unwrap();
            wait();
        };
        runtime.spawn_fn(closure).detach();
        has_begun.recv_timeout(LIMIT).unwrap();
    }

    /// Leaves a fork with each worker. The workers that have run theirs.
    fn left_with_each(runtime: &Runtime) -> Receiver<usize> {
        let (tell, told) = channel();
        Host::of(runtime).spawn_on_each(|worker| {
            let tell = tell.clone();
            move || {
                // A panic here would end the process.
                let _ = tell.send(worker);
            }
        });
        told
    }

    #[test]
    fn a_worker_that_is_revoked_for_the_idle_set_runs_the_fork_that_is_for_it_alone() {
        let runtime = without_expiries(Runtime::builder().workers(2));
        let end = Arc::new(AtomicBool::new(false));
        for _ in 0..2 {
            let end = end.clone();
            begun(&runtime, move || {
                while !end.load(SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let one = Demand {
            max_cores: 1,
            ..Demand::default()
        };
        runtime.set_demand(one).unwrap();
        let ran = left_with_each(&runtime);
        let core = &runtime.job().core;
        until(|| {
            assert!(core.share_workers(&core.jobs()).is_none());
            ran.try_recv().is_ok()
        });
        end.store(true, SeqCst);
    }

    #[test]
    fn a_worker_that_is_revoked_for_the_idle_set_asks_the_stacks_of_all_jobs_for_forks() {
        let one = without_expiries(Runtime::builder().workers(2));
        let other = Runtime::builder().share_workers_with(&one).build().unwrap();
        let [taken, end] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (its, ends) = (taken.clone(), end.clone());
        begun(&one, move || until(|| ends.load(SeqCst)));
        begun(&other, move || {
            let forks = || {
                while !its.load(SeqCst) {
                    join(|| (), || ());
                }
            };
            join(forks, || its.store(true, SeqCst));
        });
        let job = one.job();
        // The other one may have looked for work here before it found some there.
        let worker = job.workers().next().unwrap();
        let core = &job.core;
        let revoked = job.revoke_counted(worker, None, Cause::Job).unwrap();
        core.release_revoked(&core.jobs(), job, revoked);
        until(|| taken.load(SeqCst));
        end.store(true, SeqCst);
    }

    #[test]
    fn a_worker_whose_thread_sleeps_and_that_no_job_may_have_runs_the_fork_that_is_for_it_alone() {
        let one = without_expiries(Runtime::builder().workers(2));
        let demand = Demand {
            max_cores: 1,
            ..Demand::default()
        };
        let other = Runtime::builder().share_workers_with(&one).demand(demand);
        let other = other.build().unwrap();
        let (wakes, sleeps) = channel::<()>();
        begun(&one, move || sleeps.iter().for_each(drop));
        let end = Arc::new(AtomicBool::new(false));
        let its = end.clone();
        begun(&other, move || {
            while !its.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        other.spawn_fn(|| ()).detach();
        let ran = left_with_each(&one);
        let core = &one.job().core;
        until(|| {
            assert!(core.free_blocked(&core.jobs(), None).is_none());
            ran.try_recv().is_ok()
        });
        end.store(true, SeqCst);
        drop(wakes);
    }
}
