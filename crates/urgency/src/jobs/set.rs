//! `CoreSet`: the cores, the jobs that run, the queue in front of them, and the containers.
//!
//! A container is a runtime on the set's workers. When its job is over it is *parked* (`set/parked.rs`). A later job of
//! the same shape has it, if nothing but the set keeps the container. (A thread that has just run the job, or a task's
//! handle that the program keeps, still does.) So no code of an old job can reach a new one.
//!
//! The *keeper* keeps the workers: a runtime without tasks, or the runtime that the program wants the jobs beside.

mod builder;
mod parked;
mod pinned;

pub use self::builder::CoreSetBuilder;
use self::{
    builder::{MOST_QUEUED, MOST_RUNNING},
    parked::{Container, Parked},
};
use super::{
    JobBuilder, JobErrorKind, JobHandle, SubmitError,
    record::{self, Record},
};
use crate::{
    BuildError, Builder, LevelId, Runtime, Stats,
    runtime::Handle,
    sched::switch::block::block_on,
    sync::Notify,
    sys::{
        fork::Process,
        mutex::{Mutex, MutexGuard},
    },
    tasks::{contained, discard_payload},
};
use std::{
    collections::VecDeque,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
};
use urgency_policy::cores::{Demand, Refusal};

/// A set of cores, for any number of jobs. Clones are the same set.
///
/// The jobs of a set whose last clone was dropped go on, the queued ones as well; then its threads end.
///
/// ```
/// use urgency::jobs::CoreSet;
///
/// let cores = CoreSet::builder().cores(2).most_running(4).build()?;
/// let squares: Vec<_> = (1..=10)
///     .map(|n| cores.spawn_fn(move || n * n))
///     .collect::<Result<_, _>>()?;
/// let squares: Result<Vec<u32>, _> = squares.into_iter().map(|job| job.get()).collect();
/// assert_eq!(squares?.into_iter().sum::<u32>(), 385);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CoreSet {
    set: Arc<Set>,
    shape: Arc<Builder>,
}

/// What a core set did so far, and has now; see [`CoreSet::stats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreSetStats {
    /// How many jobs run.
    pub running: usize,
    /// How many jobs are queued.
    pub queued: usize,
    /// How many containers wait for a job.
    pub parked: usize,
    /// How many containers were ever built.
    pub built: u64,
    /// How many jobs were ever accepted.
    pub submitted: u64,
    /// How many of them are over.
    pub over: u64,
}

/// What the clones of a [`CoreSet`], its jobs and its descriptions share.
pub(super) struct Set {
    keeper: Runtime,
    most_running: usize,
    most_queued: usize,
    state: Mutex<State>,
    /// Notified when a job is over and no other runs or is queued.
    drained: Notify,
}

#[derive(Default)]
struct State {
    running: Vec<Arc<Record>>,
    queue: VecDeque<Pending>,
    parked: Parked,
    built: u64,
    submitted: u64,
    over: u64,
}

/// A job that has not started.
pub(super) struct Pending {
    pub(super) record: Arc<Record>,
    pub(super) shape: Arc<Builder>,
    pub(super) level: Option<LevelId>,
    /// Starts the root.
    pub(super) start: Box<dyn FnOnce(&Handle) + Send>,
}

impl Pending {
    /// The job is never started. What it captured, which is the program's, is gone before its waiters go on.
    fn refuse(self, why: JobErrorKind) {
        contained(|| drop(self.start));
        self.record.refuse(why);
    }
}

debug_struct!(CoreSet, |it| stats: it.stats());

impl CoreSet {
    /// Starts to describe a set of cores.
    pub fn builder() -> CoreSetBuilder {
        CoreSetBuilder::new()
    }

    /// The cores of a runtime: its jobs share them with the runtime, which goes on as it is.
    ///
    /// ```
    /// use urgency::{Runtime, jobs::CoreSet};
    ///
    /// let service = Runtime::builder().workers(2).build()?;
    /// let backup = CoreSet::beside(&service).job().priority(1).spawn_fn(|| "saved")?;
    /// assert_eq!(service.block_on(async { backup.await })?, "saved");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn beside(runtime: &Runtime) -> CoreSet {
        CoreSet::on(runtime.clone(), MOST_RUNNING, MOST_QUEUED)
    }

    fn on(keeper: Runtime, most_running: usize, most_queued: usize) -> CoreSet {
        let set = Set {
            keeper,
            most_running,
            most_queued,
            state: Mutex::default(),
            drained: Notify::new(),
        };
        CoreSet {
            set: Arc::new(set),
            shape: Arc::new(Runtime::builder()),
        }
    }

    /// Starts to describe a job: with one level, the weight 1, and all that is usual.
    pub fn job(&self) -> JobBuilder {
        JobBuilder::new(self.set.clone(), self.shape.clone())
    }

    /// Submits a future as the root of a usual job.
    ///
    /// # Errors
    ///
    /// As [`JobBuilder::spawn`].
    pub fn spawn<F>(&self, future: F) -> Result<JobHandle<F::Output>, SubmitError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.job().spawn(future)
    }

    /// As [`spawn`](Self::spawn), of a closure.
    ///
    /// # Errors
    ///
    /// As [`JobBuilder::spawn`].
    pub fn spawn_fn<F, T>(&self, closure: F) -> Result<JobHandle<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.job().spawn_fn(closure)
    }

    /// Asks the core policy something that it and its user have agreed on: it hears
    /// [`Request::Own`](crate::policy::cores::Request::Own), and its decision is carried out as any other. It has heard
    /// when this returns, unless another thread decides at the moment, or the policy itself asks: then it hears soon.
    /// The built-in policies take no notice.
    ///
    /// ```
    /// use urgency::{
    ///     jobs::CoreSet,
    ///     policy::cores::{CorePolicy, Cores, Decision, DecisionError, Event, Request},
    /// };
    ///
    /// /// All cores are the oldest job's, until somebody asks for the newest.
    /// #[derive(Clone, Default)]
    /// struct First {
    ///     is_newest: bool,
    /// }
    ///
    /// impl CorePolicy for First {
    ///     fn decide(
    ///         &mut self,
    ///         event: Event,
    ///         cores: &Cores,
    ///         decision: &mut Decision,
    ///     ) -> Result<(), DecisionError> {
    ///         if let Event::Request(Request::Own(number)) = event {
    ///             self.is_newest = number == 1;
    ///         }
    ///         let job = match self.is_newest {
    ///             true => cores.jobs().last(),
    ///             false => cores.jobs().first(),
    ///         };
    ///         let id = job.map(|job| job.id());
    ///         cores.available().try_for_each(|core| decision.give(core, id))
    ///     }
    /// }
    ///
    /// let cores = CoreSet::builder().cores(2).core_policy(First::default()).build()?;
    /// let job = cores.spawn_fn(|| "done")?;
    /// cores.request(1);
    /// assert_eq!(job.get()?, "done");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// In a child of `fork` it does nothing.
    pub fn request(&self, number: u64) {
        if self.set.process().is_this() {
            self.set.keeper.shared().core.request(number);
        }
    }

    /// Cancels all jobs that run or are queued now; see [`JobControl::cancel`](super::JobControl::cancel).
    pub fn cancel_all(&self) {
        if !self.set.process().is_this() {
            return;
        }
        let state = self.set.state.lock();
        let queued = state.queue.iter().map(|pending| &pending.record);
        let all: Vec<_> = queued.chain(&state.running).cloned().collect();
        drop(state);
        all.iter().for_each(|job| job.cancel());
    }

    /// Waits until no job runs or is queued.
    ///
    /// ```
    /// use urgency::jobs::CoreSet;
    ///
    /// let cores = CoreSet::builder().cores(2).build()?;
    /// for file in 0..3 {
    ///     cores.spawn_fn(move || println!("file {file} is indexed"))?.detach();
    /// }
    /// cores.drain();
    /// assert_eq!(cores.stats().over, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If code of a job of this set calls it: the job would wait for itself. In a child of `fork`.
    pub fn drain(&self) {
        self.set.process().must_be_this();
        assert!(
            !record::current_set().is_some_and(|set| Arc::ptr_eq(&set, &self.set)),
            "a job called `CoreSet::drain` of its own core set, and would wait for itself: call it from outside of the jobs"
        );
        block_on(async {
            loop {
                let drained = self.set.drained.notified();
                if self.set.state.lock().is_drained() {
                    return;
                }
                drained.await;
            }
        });
    }

    /// What the set did so far, and has now.
    pub fn stats(&self) -> CoreSetStats {
        let state = self.set.state.lock();
        CoreSetStats {
            running: state.running.len(),
            queued: state.queue.len(),
            parked: state.parked.len(),
            built: state.built,
            submitted: state.submitted,
            over: state.over,
        }
    }
}

impl State {
    fn is_drained(&self) -> bool {
        self.running.is_empty() && self.queue.is_empty()
    }

    fn take_queued(&mut self, record: &Record) -> Option<Pending> {
        let is_it = |pending: &Pending| std::ptr::eq(&*pending.record, record);
        let place = self.queue.iter().position(is_it)?;
        self.queue.remove(place)
    }
}

impl Set {
    /// The process that has the cores.
    pub(super) fn process(&self) -> Process {
        self.keeper.shared().core.process
    }

    /// Whether the calling code is the core policy's, in a decision.
    pub(super) fn is_deciding(&self) -> bool {
        self.keeper.shared().core.is_deciding()
    }

    /// Whether a job could ever have this demand. What a job in the queue lacks, it may have later.
    pub(super) fn could_keep(&self, demand: Demand) -> Result<(), Refusal> {
        self.keeper.shared().core.could_keep(demand)
    }

    /// Starts the job, or queues it.
    pub(super) fn submit(self: &Arc<Self>, pending: Pending) -> Result<(), SubmitError> {
        let demand = pending.record.demand();
        self.could_keep(demand).map_err(BuildError::Demand)?;
        let levels = pending.shape.level_count();
        if let Some(level) = pending.level
            && usize::from(level.rank()) >= levels
        {
            return Err(BuildError::NoSuchLevel { level, levels }.into());
        }
        let mut state = self.state.lock();
        let (running, queued) = (state.running.len(), state.queue.len());
        if running >= self.most_running || queued > 0 {
            if queued >= self.most_queued {
                return Err(SubmitError::Full { running, queued });
            }
            state.submitted += 1;
            state.queue.push_back(pending);
            return Ok(());
        }
        // Before it runs: it may be over before the return.
        state.submitted += 1;
        state.running.push(pending.record.clone());
        drop(state);
        self.start(pending).map_err(|(pending, error)| {
            self.no_longer_runs(&pending.record).submitted -= 1;
            self.start_next();
            error.into()
        })
    }

    /// Starts a job that counts as running.
    fn start(self: &Arc<Self>, pending: Pending) -> Result<(), (Pending, BuildError)> {
        let demand = pending.record.asked();
        // Schedules and orders may be code of the program.
        let container = catch_unwind(AssertUnwindSafe(|| self.container(&pending.shape, demand)));
        let container = container.unwrap_or_else(|payload| {
            discard_payload(payload);
            Err(BuildError::Panicked)
        });
        let (container, before) = match container {
            Ok(container) => container,
            Err(error) => return Err((pending, error)),
        };
        let handle = container.runtime.handle().clone();
        let (set, record) = (self.clone(), pending.record.clone());
        let over = move || set.job_is_over(&record, container);
        handle.shared().tasks.when_empty(Box::new(over));
        pending.record.run_in(handle, before, demand, pending.start);
        Ok(())
    }

    /// A container of this shape, for a job with this demand; with its accounts, if an earlier job had it.
    fn container(
        &self,
        shape: &Arc<Builder>,
        demand: Demand,
    ) -> Result<(Container, Option<Box<Stats>>), BuildError> {
        let (parked, spoilt) = {
            let parked = &mut self.state.lock().parked;
            (parked.take(shape), parked.take_spoilt())
        };
        drop(spoilt);
        if let Some(container) = parked {
            let job = container.runtime.shared();
            if demand != Demand::default() {
                job.set_demand(demand)?;
            }
            shape.restore_schedule(&container.runtime);
            job.begin_anew();
            let before = Box::new(Stats::with_open_spans(job));
            return Ok((container, Some(before)));
        }
        let shape = shape.clone();
        let builder = Builder::clone(&shape).share_workers_with(&self.keeper);
        let runtime = builder.demand(demand).build()?;
        self.state.lock().built += 1;
        Ok((Container { runtime, shape }, None))
    }

    /// Called when the last task of a job has ended, on the thread that ended it.
    fn job_is_over(self: &Arc<Self>, record: &Arc<Record>, container: Container) {
        record.tasks_ended();
        let job = container.runtime.shared();
        let is_usual = !job.is_spoilt()
            && (job.demand() == Demand::default() || job.set_demand(Demand::default()).is_ok());
        let surplus = {
            let mut state = self.state.lock();
            state.over += 1;
            match is_usual {
                true => state.parked.put(container, self.most_running),
                false => Some(container),
            }
        };
        drop(surplus);
        drop(self.no_longer_runs(record));
        self.start_next();
    }

    fn no_longer_runs(&self, record: &Arc<Record>) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        let running = &mut state.running;
        if let Some(place) = running.iter().position(|job| Arc::ptr_eq(job, record)) {
            running.swap_remove(place);
        }
        state
    }

    /// Starts queued jobs for as long as more may run.
    fn start_next(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            if state.is_drained() {
                drop(state);
                return self.drained.notify_waiters();
            }
            if state.running.len() >= self.most_running {
                return;
            }
            let Some(pending) = state.queue.pop_front() else {
                return;
            };
            state.running.push(pending.record.clone());
            drop(state);
            let Err((pending, error)) = self.start(pending) else {
                continue;
            };
            let mut state = self.no_longer_runs(&pending.record);
            let record = &pending.record;
            let is_cancelled = record.is_cancelled.load(Ordering::SeqCst);
            // A wait that began meanwhile has not found it in the queue, and may be a wait of the only running job.
            if !state.running.is_empty() && !is_cancelled && !record.is_awaited() {
                // Other jobs have what it needs: it has its turn when one of them is over.
                state.queue.push_front(pending);
                return;
            }
            state.over += 1;
            drop(state);
            // A cancel that came meanwhile has not found it in the queue.
            pending.refuse(match is_cancelled {
                true => JobErrorKind::Cancelled,
                false => JobErrorKind::Refused(error),
            });
        }
    }

    /// A running job waits for this one: if it is queued it starts now, beyond the number that may run.
    pub(super) fn start_awaited(self: &Arc<Self>, record: &Arc<Record>) {
        let mut state = self.state.lock();
        let Some(pending) = state.take_queued(record) else {
            return;
        };
        state.running.push(record.clone());
        drop(state);
        if let Err((pending, error)) = self.start(pending) {
            // It may need the cores of the job that waits.
            self.no_longer_runs(record).over += 1;
            pending.refuse(JobErrorKind::Refused(error));
            // A job that ended meanwhile found this one in a place that is free now.
            self.start_next();
        }
    }

    /// Cancels a job that is in the queue. Whether it was there.
    pub(super) fn unqueue(&self, record: &Record) -> bool {
        let mut state = self.state.lock();
        let Some(pending) = state.take_queued(record) else {
            return false;
        };
        state.over += 1;
        let is_drained = state.is_drained();
        drop(state);
        pending.refuse(JobErrorKind::Cancelled);
        if is_drained {
            self.drained.notify_waiters();
        }
        true
    }
}
