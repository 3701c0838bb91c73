//! Model of the way of a worker from job to job (`sched/cores/mod.rs`), put together from the protocols that take part:
//! no entry is forgotten because the worker that it counts on goes to another job at that moment.
//!
//! An entry is *seen to* if a worker takes it, or if the relief timer is set: an expiry looks at all jobs. And no entry
//! waits for an expiry beside an idle worker, unless its job may have no more workers.
//!
//! # Rules
//!
//! 1. *Inserter*: the entry is in the pool, the level is announced (a full barrier), and if no worker searches for the
//!    job, an idle worker is started. If there is none, or the job may have no more, the relief timer is set.
//! 2. *Worker that was started*: it takes one entry, and sets the timer if there are more.
//! 3. *Worker that is asked to leave*: it shows the other job, takes no entry, and sets the timer if any wait in the
//!    job that it leaves. Its inserter has left that to it.
//! 4. *Worker that finds nothing in its job*: it releases itself, looks at that job, and then at the other one. If it
//!    finds anything, a worker is started for that job, or the timer is set.
//! 5. *Expiry*: the timer is off, and then it looks at the jobs, as an inserter does.
//!
//! Each step was left out once, to see a test fail: the timer of rule 1 and the first look of rule 4 (the first test),
//! the second look of rule 4 (the second), the timer of rule 3 (the third), the look of rule 5 (the fourth).
//!
//! Each test has as few parties as its rule needs. A test with all of them at once (two workers, an inserter, the
//! policy and an expiry) passed without rule 3, with up to five preemptions, so there is none.

use super::{
    crew::Crew,
    idle::{Idle, Searchers},
    ready::Ready,
    relief_timer::ReliefTimer,
};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread,
};

/// What a worker shows that is idle.
const NO_JOB: usize = usize::MAX;
/// The job that the worker leaves.
const LEFT: usize = 0;
const OTHER: usize = 1;

struct Job {
    ready: Ready,
    entries: AtomicUsize,
    searchers: Searchers,
    crew: Crew,
}

struct Model {
    idle: Idle,
    relief_timer: ReliefTimer,
    jobs: [Job; 2],
    /// Which job each worker serves.
    shown: Vec<AtomicUsize>,
    /// Worker 0 is asked to leave.
    leaves: AtomicBool,
}

impl Model {
    /// So many workers without a job, not yet idle. The job that is left may have one of them.
    fn new(workers: usize) -> Arc<Self> {
        let job = |limit| {
            let crew = Crew::new(workers);
            crew.set_limit(limit);
            Job {
                ready: Ready::new(),
                entries: AtomicUsize::new(0),
                searchers: Searchers::new(),
                crew,
            }
        };
        Arc::new(Model {
            idle: Idle::new(workers, workers),
            relief_timer: ReliefTimer::new(),
            jobs: [job(1), job(workers)],
            shown: (0..workers).map(|_| AtomicUsize::new(NO_JOB)).collect(),
            leaves: AtomicBool::new(false),
        })
    }

    fn insert(&self, job: usize) {
        self.jobs[job].entries.fetch_add(1, Release);
        self.jobs[job].ready.announce(0);
        if self.jobs[job].searchers.count() == 0 {
            self.start_idle(job);
        }
    }

    /// The calling thread goes on as the worker, if there is one.
    fn start_idle(&self, job: usize) {
        let serving = || self.shown.iter().filter(|shown| shown.load(SeqCst) == job);
        let claim = || {
            let id = self.idle.claim(0)?;
            self.shown[id].store(job, SeqCst);
            Some(id)
        };
        let crew = &self.jobs[job].crew;
        match crew.admit(|| serving().count(), claim) {
            Some(id) => self.serve(id, job),
            None => self.watch(job),
        }
    }

    fn serve(&self, id: usize, job: usize) {
        if id == 0 && job == LEFT && self.leaves.load(SeqCst) {
            self.shown[id].store(OTHER, SeqCst);
        } else {
            let one_less = |entries: usize| entries.checked_sub(1);
            let _ = self.jobs[job]
                .entries
                .fetch_update(AcqRel, Acquire, one_less);
        }
        self.watch(job);
    }

    fn has_work(&self, job: usize) -> bool {
        let job = &self.jobs[job];
        job.ready.levels_after_writes() != 0 && job.entries.load(Acquire) != 0
    }

    fn watch(&self, job: usize) {
        if self.has_work(job) && !self.relief_timer.is_soon() {
            self.relief_timer.arm();
        }
    }

    /// Worker 0 gives up its search in its job.
    fn finds_nothing(&self) {
        self.shown[0].store(NO_JOB, SeqCst);
        self.jobs[LEFT].searchers.give_up(&self.idle, 0);
        let job = [LEFT, OTHER].into_iter().find(|job| self.has_work(*job));
        if let Some(job) = job {
            self.start_idle(job);
        }
    }

    /// The core policy asks worker 0 to go, if that worker shows the job.
    fn ask_to_leave(&self) {
        if self.shown[0].load(SeqCst) == LEFT {
            self.leaves.store(true, SeqCst);
        }
    }

    /// The relief timer expires, and the expiry looks at the job.
    fn expires(&self, job: usize) {
        self.relief_timer.expire();
        if self.has_work(job) {
            self.start_idle(job);
        }
    }

    #[track_caller]
    fn must_have_seen_to(&self, job: usize) {
        let waits = self.jobs[job].entries.load(Acquire) != 0;
        let is_set = self.relief_timer.is_soon();
        assert!(!waits || is_set, "an entry of job {job} sleeps");
    }
}

#[test]
fn a_worker_that_finds_nothing_in_its_job_forgets_no_entry_of_either_job() {
    loom::model(|| {
        let model = Model::new(1);
        model.shown[0].store(LEFT, SeqCst);
        model.jobs[LEFT].searchers.start(&model.idle);
        let (its, theirs) = (model.clone(), model.clone());
        let here = thread::spawn(move || its.insert(LEFT));
        let there = thread::spawn(move || theirs.insert(OTHER));
        model.finds_nothing();
        here.join().unwrap();
        there.join().unwrap();
        model.must_have_seen_to(LEFT);
        model.must_have_seen_to(OTHER);
    });
}

/// Its own job has no entry: the worker looks at the other one behind its release, and does not leave that to relief.
#[test]
fn no_worker_goes_idle_beside_an_entry_of_another_job() {
    loom::model(|| {
        let model = Model::new(1);
        model.shown[0].store(LEFT, SeqCst);
        model.jobs[LEFT].searchers.start(&model.idle);
        let theirs = model.clone();
        let there = thread::spawn(move || theirs.insert(OTHER));
        model.finds_nothing();
        there.join().unwrap();
        assert!(!model.idle.contains(0), "the worker sleeps");
        assert_eq!(model.jobs[OTHER].entries.load(Acquire), 0);
    });
}

/// No expiry looks: the entry has been left to the worker alone.
#[test]
fn an_entry_whose_worker_is_asked_to_leave_as_it_comes_is_seen_to() {
    loom::model(|| {
        let model = Model::new(1);
        model.idle.release(0);
        let its = model.clone();
        let inserter = thread::spawn(move || its.insert(LEFT));
        model.ask_to_leave();
        inserter.join().unwrap();
        model.must_have_seen_to(LEFT);
    });
}

/// The entry waits and its worker comes, is asked to leave, and does, while relief looks.
#[test]
fn an_expiry_beside_a_worker_that_leaves_forgets_no_entry() {
    loom::model(|| {
        let model = Model::new(2);
        model.idle.release(1);
        model.shown[0].store(LEFT, SeqCst);
        model.leaves.store(true, SeqCst);
        model.relief_timer.arm();
        model.jobs[LEFT].entries.store(1, SeqCst);
        model.jobs[LEFT].ready.announce(0);
        let theirs = model.clone();
        let relief = thread::spawn(move || theirs.expires(LEFT));
        model.serve(0, LEFT);
        relief.join().unwrap();
        model.must_have_seen_to(LEFT);
    });
}
