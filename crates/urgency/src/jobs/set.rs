//! `CoreSet`: the cores, the jobs that run, the queue in front of them, and the containers.
//!
//! `set/turns.rs` says when a job starts, `set/queue.rs` in which order, `set/places.rs` how many
//! there may be, and `set/end.rs` how a program ends them.
//!
//! A container is a runtime on the set's workers. When its job is over it is *parked* (`set/parked.rs`). A later job of
//! the same shape has it, if nothing but the set keeps the container. (A thread that has just run the job, or a task's
//! handle that the program keeps, still does.) So no code of an old job can reach a new one.
//!
//! The *keeper* keeps the workers: a runtime without tasks, or the runtime that the program wants the jobs beside.

mod builder;
mod end;
mod parked;
mod pinned;
mod places;
mod queue;
mod turns;

pub use self::builder::CoreSetBuilder;
use self::{
    builder::{MOST_QUEUED, MOST_RUNNING},
    parked::Parked,
    queue::Queue,
};
pub(super) use self::{places::Place, turns::Pending};
use super::{JobBuilder, JobErrorKind, JobHandle, JobId, SubmitError, record::Record};
use crate::{
    Builder, Runtime,
    protocol::trial::Trial,
    sync::{Notify, Semaphore},
    sys::mutex::Mutex,
};
use std::{
    collections::{BTreeSet, HashMap},
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};

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

/// What a core set did so far, and has now; see [`CoreSet::stats`]. Each job that was accepted runs, is queued, or is
/// over: at each moment `running`, `queued` and `over` are `submitted` together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreSetStats {
    /// How many jobs run.
    pub running: usize,
    /// How many jobs are queued.
    pub queued: usize,
    /// How long the oldest of them has been queued; `None` if none is.
    pub oldest_queued: Option<Duration>,
    /// How many containers wait for a job.
    pub parked: usize,
    /// How many containers were ever built.
    pub built: u64,
    /// How many jobs were ever accepted.
    pub submitted: u64,
    /// How many of them are over, or were cancelled or refused before they started.
    pub over: u64,
}

/// What the clones of a [`CoreSet`], its jobs and its descriptions share.
pub(super) struct Set {
    keeper: Runtime,
    most_running: usize,
    most_queued: usize,
    /// One permit for each place that no job needs, and that is not reserved.
    places: Arc<Semaphore>,
    state: Mutex<State>,
    /// Notified when a job is over and no other runs or is queued.
    drained: Notify,
}

#[derive(Default)]
struct State {
    running: Vec<Arc<Record>>,
    queue: Queue,
    /// Of the first one in the queue, which is not there meanwhile (`set/turns.rs`).
    trial: Trial<Arc<Record>>,
    /// How many places the jobs have.
    places: usize,
    parked: Parked,
    /// No job is accepted any more.
    is_closed: bool,
    built: u64,
    submitted: u64,
    over: u64,
    /// The jobs that are never started, and still have what they captured, or waiters that do not know.
    refused: BTreeSet<JobId>,
    /// Of these, the ones that no thread has begun to refuse.
    to_refuse: HashMap<JobId, (Pending, JobErrorKind)>,
}

debug_struct!(CoreSet, |it| stats: it.stats());

impl CoreSet {
    /// Starts to describe a set of cores.
    pub fn builder() -> CoreSetBuilder {
        CoreSetBuilder::new()
    }

    /// The cores of a runtime: its jobs share them with the runtime, which goes on as it is. How many jobs may run and
    /// be queued is as usual; [`CoreSetBuilder::build_beside`] says other numbers.
    ///
    /// The set, its clones and its descriptions of jobs keep the runtime alive, as a [`Runtime`] does. So a task of the
    /// runtime that has one keeps its own runtime: end that by [`Runtime::shutdown`], not by a drop.
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
            places: places::places(most_running, most_queued),
            state: Mutex::default(),
            drained: Notify::new(),
        };
        let set = Arc::new(set);
        let hears: Weak<Set> = Arc::downgrade(&set);
        set.keeper.job().core.tell(hears);
        CoreSet {
            set,
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
            self.set.keeper.job().core.request(number);
        }
    }

    /// What the set did so far, and has now.
    ///
    /// ```
    /// use urgency::jobs::{CoreSet, CoreSetStats};
    ///
    /// let cores = CoreSet::builder().cores(1).most_running(1).build()?;
    /// let endless = cores.spawn(std::future::pending::<()>())?;
    /// let waits = cores.spawn_fn(|| ())?;
    /// let stats: CoreSetStats = cores.stats();
    /// assert_eq!((stats.running, stats.queued), (1, 1));
    /// assert!(stats.oldest_queued <= Some(waits.times().queued()));
    /// endless.cancel();
    /// waits.get()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> CoreSetStats {
        let state = self.set.state.lock();
        CoreSetStats {
            running: state.running.len(),
            queued: state.queue.len(),
            oldest_queued: state.queue.oldest().map(|at| at.elapsed()),
            parked: state.parked.len(),
            built: state.built,
            submitted: state.submitted,
            over: state.over,
        }
    }
}

impl State {
    fn is_drained(&self) -> bool {
        self.running.is_empty() && self.queue.is_empty() && self.refused.is_empty()
    }
}
