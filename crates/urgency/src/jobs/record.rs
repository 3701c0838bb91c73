//! What a job is to its set, its handle and its own code, without the type of its result.
//!
//! `record/telling.rs` has what a container hears of its job's demand, `record/waits.rs` the waits of jobs for jobs,
//! with their races.
//!
//! # Races
//!
//! - *Cancel against start*: see `protocol/cancel.rs`. One sees the other, and closes the container. (A container that
//!   was closed before the root was in counted as the container of a job that is over.)
//! - *The root against the other tasks.* A job ends in two parts, in any order: its last task leaves the table, and its
//!   root's result is where the handle finds it. The thread of the later part gives back what the job has of its set,
//!   then fills the promise for which its waiters wait. So a drain that is over finds each job over, and code that has
//!   a result finds the job's place free. (All was given back after the first part: `drain` returned before up to three
//!   of four jobs were over; and after it: a job that followed another was refused the only place.)
//! - *Cancel against the end.* A cancel closes the container under the lock of the stage. (It did not: a cancel that
//!   came when the job ended cancelled the container's next job.)
//! - *A look at the accounts against the end.* The last accounts are taken under the lock of the stage, under which
//!   each look is. So none comes after them that shows more. (They were taken before that lock. The last closure's
//!   thread still runs then, and a look in between showed its time: 4 ms of a job that had 0.3 in the end.)
//! - *An overrun against the end.* What overran is noted when its thread comes to the scheduler, and the job may be
//!   over by then. So the root's overrun is noted as the root ends, and the one of the last task before the last
//!   accounts are taken. (They were in no job's accounts.)

mod telling;
mod waits;

pub(super) use self::waits::Waits;
use self::waits::{Awaited, Waiter};
use super::{JobErrorKind, JobTimes, set::Set};
use crate::{
    BuildError, Stats,
    life::Local,
    protocol::{cancel::Cancel, turn::Turn},
    runtime::Handle,
    sched::{job::Job, serve::run::with_current_task},
    sync::promise::{Filler, Promise, promise},
    sys::{chaos, mutex::Mutex},
    tasks::TaskRef,
};
use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{
            AtomicU8, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};
use urgency_policy::cores::Demand;

/// The job whose code this is.
static CURRENT: Local<Current> = Local::new();

struct Current(Arc<Record>);

/// The name of a job, among all of the process: the same from its submission on.
///
/// A core policy knows jobs by names of its own table ([`policy::cores::JobId`](crate::policy::cores::JobId)), which a
/// job gets anew each time it has work again. Whose job it is, the policy sees by its
/// [group](super::JobBuilder::group).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(u64);

impl JobId {
    pub(super) const FIRST: JobId = JobId(1);
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How far a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits for its turn, or for the cores that it needs at least. Or it was cancelled meanwhile, and what it
    /// captured is about to be dropped.
    Queued,
    /// It has started, and not all of its tasks have ended.
    Running,
    /// Nothing of it runs.
    Over,
}

/// What a job reported of its progress: see [`report`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many parts are done.
    pub done: u64,
    /// Of how many; 0 if the job has not said.
    pub total: u64,
}

/// Code of a job tells how far the job is. Outside of a job this does nothing.
///
/// ```
/// use urgency::jobs::{self, CoreSet};
///
/// let cores = CoreSet::builder().cores(1).build()?;
/// let job = cores.spawn_fn(|| jobs::report(3, 4))?;
/// while !job.is_over() {
///     std::thread::yield_now();
/// }
/// assert_eq!((job.progress().done, job.progress().total), (3, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn report(done: u64, total: u64) {
    if let Some(current) = CURRENT.get() {
        current.0.done.store(done, Relaxed);
        current.0.total.store(total, Relaxed);
    }
}

/// Whether the calling code is of a job that is to end: the job was cancelled, or its root has ended. A closure that
/// computes for long looks now and then, and returns.
///
/// ```
/// use urgency::jobs::{self, CoreSet};
///
/// let cores = CoreSet::builder().cores(1).build()?;
/// let job = cores.spawn_fn(|| {
///     while !jobs::is_cancelled() {
///         urgency::scheduling_point();
///     }
///     "tidied up"
/// })?;
/// job.cancel();
/// // A job that had not started yet never starts.
/// assert!(job.get().map_or(true, |tidied| tidied == "tidied up"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn is_cancelled() -> bool {
    CURRENT.get().is_some_and(|current| current.0.is_to_end())
}

/// The job whose code calls this.
pub(super) fn current() -> Option<Arc<Record>> {
    CURRENT.get().map(|current| current.0.clone())
}

/// Whether code of a job of this set calls this, or other code in such a job's container.
pub(super) fn is_in_job_of(set: &Arc<Set>) -> bool {
    let job = Waiter::current(Some(set)).and_then(|waiter| waiter.job());
    let its = job.and_then(|job| job.set.upgrade());
    its.is_some_and(|its| Arc::ptr_eq(&its, set))
}

/// See the module's text.
pub(super) struct Record {
    pub(super) id: JobId,
    pub(super) name: Option<Arc<str>>,
    /// It is there as long as the job is queued or runs: a control that the program keeps does not keep it.
    pub(super) set: Weak<Set>,
    /// What the program asks for.
    demand: Mutex<Demand>,
    /// For the thread that tells the container, or changes the stage. Of the program's code only the core policy's is
    /// called meanwhile. See `telling.rs`.
    tells: Turn<()>,
    stage: Mutex<Stage>,
    /// Against the root's way into the container.
    pub(super) cancel: Cancel,
    /// Of a job that is not over, the time of its end says nothing.
    times: Mutex<JobTimes>,
    done: AtomicU64,
    total: AtomicU64,
    /// Why it was never started.
    refusal: Mutex<Option<JobErrorKind>>,
    /// What this job waits for; once for each wait.
    awaits: Mutex<Vec<Awaited>>,
    /// What waits for this one; once for each wait.
    awaited_by: Mutex<Vec<Waiter>>,
    pub(super) over: Promise<()>,
    /// Of [`Record::tasks_ended`] and [`Record::root_ended`], how many are to come.
    parts: AtomicU8,
    filler: Mutex<Option<Filler<()>>>,
    /// What is done between the end of the last part and the moment when the waiters have the result.
    leave: Mutex<Option<Leave>>,
}

/// The job gives back what it has of its set. Returns what follows when its waiters have the result.
pub(super) type Leave = Box<dyn FnOnce() -> Box<dyn FnOnce()> + Send>;

enum Stage {
    Queued,
    /// In this container, whose accounts were these when the job began.
    Running(Handle, Option<Box<Stats>>),
    Over(Option<Box<Stats>>),
}

impl Stage {
    fn stats(&self) -> Option<Stats> {
        match self {
            Stage::Queued => None,
            Stage::Running(handle, before) => {
                let now = Stats::of(handle.job());
                Some(match before {
                    Some(before) => now.since(before),
                    None => now,
                })
            }
            Stage::Over(stats) => stats.as_deref().cloned(),
        }
    }
}

impl Record {
    pub(super) fn new(set: Weak<Set>, name: Option<Arc<str>>, demand: Demand) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(JobId::FIRST.0);
        let (filler, over) = promise();
        Arc::new(Record {
            id: JobId(NEXT.fetch_add(1, Relaxed)),
            name,
            set,
            demand: Mutex::new(demand),
            tells: Turn::new(()),
            stage: Mutex::new(Stage::Queued),
            cancel: Cancel::new(),
            times: Mutex::new(JobTimes::now()),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            refusal: Mutex::new(None),
            awaits: Mutex::default(),
            awaited_by: Mutex::default(),
            over,
            parts: AtomicU8::new(2),
            filler: Mutex::new(Some(filler)),
            leave: Mutex::default(),
        })
    }

    /// The job has this container, which asks for `asked`, and whose accounts are `before`.
    ///
    /// # Errors
    ///
    /// The job asks for something else meanwhile, which cannot be had. Then it is as it was.
    pub(super) fn enter(
        &self,
        handle: Handle,
        before: Option<Box<Stats>>,
        asked: Demand,
    ) -> Result<(), BuildError> {
        let telling = self.tells.take();
        let demand = self.asked();
        let changes = (demand != asked).then(|| handle.clone());
        let begin = || {
            self.times.lock().started = Some(Instant::now());
            *self.stage.lock() = Stage::Running(handle, before);
            self.tells.give_back(telling);
        };
        match changes {
            Some(container) => container.job().set_demand_and(demand, begin)?,
            None => begin(),
        }
        self.tell_news();
        Ok(())
    }

    /// Calls `start`, which starts the root in the container that the job has, as code of the job.
    pub(super) fn run(self: &Arc<Self>, start: impl FnOnce()) {
        chaos::delay();
        self.as_its_code(start);
        if self.cancel.begun() {
            self.end();
        }
    }

    /// Calls code of the program as the job's own. The end of its set, or of the job itself, is nothing that it can
    /// wait for.
    pub(super) fn as_its_code(self: &Arc<Self>, call: impl FnOnce()) {
        CURRENT.alone(Current(self.clone())).run(call);
    }

    /// All tasks of the job have ended, on their side of the scheduler, and this is left to do.
    pub(super) fn tasks_ended_and(&self, leave: Leave) {
        *self.leave.lock() = Some(leave);
        self.tasks_ended();
    }

    fn tasks_ended(&self) {
        let telling = self.tells.take();
        let before = {
            let mut stage = self.stage.lock();
            if let Stage::Running(container, _) = &*stage {
                container.job().note_overrun_at_end();
            }
            let stats = stage.stats().map(|stats| Box::new(stats.over()));
            std::mem::replace(&mut *stage, Stage::Over(stats))
        };
        // No container is left that is to hear news.
        drop(telling);
        drop(before);
        self.part_ended();
    }

    /// Whether the job runs, in a container for which this holds.
    pub(super) fn is_in(&self, holds: impl Fn(&Job) -> bool) -> bool {
        match &*self.stage.lock() {
            Stage::Running(handle, _) => holds(handle.job()),
            _ => false,
        }
    }

    fn container(&self) -> Option<Handle> {
        match &*self.stage.lock() {
            Stage::Running(handle, _) => Some(handle.clone()),
            _ => None,
        }
    }

    /// The root's result is where the handle finds it.
    pub(super) fn root_ended(&self) {
        self.part_ended();
    }

    fn part_ended(&self) {
        // Before the job counts as over.
        self.times.lock().over = Some(Instant::now());
        if self.parts.fetch_sub(1, SeqCst) == 1 {
            let leave = self.leave.lock().take();
            let then = leave.map(|leave| leave());
            let filler = self.filler.lock().take();
            filler.into_iter().for_each(|filler| filler.fill(()));
            then.into_iter().for_each(|then| then());
        }
    }

    /// The job is never started.
    pub(super) fn refuse(&self, why: JobErrorKind) {
        *self.refusal.lock() = Some(why);
        self.tasks_ended();
        self.root_ended();
    }

    pub(super) fn take_refusal(&self) -> Option<JobErrorKind> {
        self.refusal.lock().take()
    }

    pub(super) fn cancel(&self) {
        self.cancel.ask();
        let is_unqueued = self.set.upgrade().is_some_and(|set| set.unqueue(self));
        if !is_unqueued && self.cancel.has_begun() {
            self.end();
        }
    }

    /// Ends the job if it runs. It gives its container up under the same lock, so what ends is no other job's. The
    /// caller may be a task of the job: it is marked as well, and is dropped when it waits.
    fn end(&self) {
        let tasks = match &*self.stage.lock() {
            Stage::Running(container, _) => {
                chaos::delay();
                close(container)
            }
            Stage::Queued | Stage::Over(_) => Vec::new(),
        };
        tasks.iter().for_each(TaskRef::cancel);
    }

    fn is_to_end(&self) -> bool {
        self.cancel.is_asked()
            || match &*self.stage.lock() {
                Stage::Queued => false,
                Stage::Running(handle, _) => handle.job().tasks.live.is_closed(),
                // Code of the job may run in other runtimes.
                Stage::Over(_) => true,
            }
    }

    pub(super) fn state(&self) -> JobState {
        match &*self.stage.lock() {
            Stage::Queued => JobState::Queued,
            Stage::Running(..) => JobState::Running,
            Stage::Over(_) if self.parts.load(SeqCst) != 0 => JobState::Running,
            Stage::Over(_) => JobState::Over,
        }
    }

    pub(super) fn times(&self) -> JobTimes {
        let is_over = self.state() == JobState::Over;
        let times = *self.times.lock();
        JobTimes {
            over: times.over.filter(|_| is_over),
            ..times
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            done: self.done.load(Relaxed),
            total: self.total.load(Relaxed),
        }
    }

    pub(super) fn stats(&self) -> Option<Stats> {
        self.stage.lock().stats()
    }

    /// The container outlives the call, and no lock is held while the policy is asked.
    pub(super) fn period(&self) -> Option<Duration> {
        self.container()?.period()
    }

    pub(super) fn demand(&self) -> Demand {
        *self.demand.lock()
    }

    /// What the container is to ask for.
    pub(super) fn asked(&self) -> Demand {
        self.inherited(self.demand())
    }
}

/// Is dropped when the root of a job ends.
pub(super) struct Root(Handle);

impl Root {
    pub(super) fn of(handle: &Handle) -> Self {
        Root(handle.clone())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // The root is one of the tasks, so the container is still the job's.
        self.0.job().note_overrun_at_end();
        cancel_others(close(&self.0));
    }
}

/// Nothing new starts in this container. What there is.
fn close(container: &Handle) -> Vec<TaskRef> {
    container.job().tasks.live.close()
}

/// Cancels these, but the calling task goes on: a root that has ended has a result.
fn cancel_others(tasks: Vec<TaskRef>) {
    let me = with_current_task(|task| task.map(TaskRef::id));
    for task in tasks {
        if Some(task.id()) != me {
            task.cancel();
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests;
