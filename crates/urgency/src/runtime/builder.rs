//! Building a runtime: its numbers, their ranges, and what is wrong with a bad one.
//!
//! A method of [`Builder`] only notes what the program asks for. [`Builder::build`] checks it, then makes the core set
//! or takes a place in another runtime's, and makes the job. Parts of the builder that are one subject have files of
//! their own: `workers.rs`, `threads.rs`, `pinning.rs`, `sharing.rs`, `partitioning.rs`, and Tokio's names in
//! `shape.rs`.

use super::{
    BuildError, GLOBAL, Runtime, partitioning::OncePartition, pinning::Pinning, sharing::MakePolicy,
};
use crate::{
    inherit::record,
    rank::{LevelId, LevelTable, Levels, OneLevel},
    sched::{
        core::Core, cores::Sharing, doors::capacities::Capacities, job::Job, order::pool::Pool,
        serve::run, switch::thread_options::ThreadOptions,
    },
    tasks::PanicPolicy,
};
use std::{path::Path, sync::Arc};
use urgency_policy::{
    cores::Demand,
    level::{Criterion, Schedule},
    pool::{AnyOrder, Layout},
};

/// The most workers that a runtime can have.
///
/// ```
/// let builder = urgency::Runtime::builder().workers(urgency::MAX_WORKERS + 1);
/// assert!(builder.build().is_err());
/// ```
pub const MAX_WORKERS: usize = 1024;

/// How many threads a runtime may have if its builder says nothing: as many stacks can wait at once.
const DEFAULT_THREAD_LIMIT: usize = 16_384;

/// Builds a [`Runtime`]; see [`Runtime::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    pub(super) workers: Option<usize>,
    /// No more of them run than the process may use.
    pub(super) is_most: bool,
    pub(super) pinning: Option<Pinning>,
    pub(super) partition: Option<OncePartition>,
    /// Where the kernel's files are.
    pub(super) root: &'static Path,
    pub(super) threads: ThreadOptions,
    pub(super) levels: LevelTable,
    real_time: bool,
    lowers_threads: bool,
    schedule: Schedule,
    pool: AnyOrder,
    pools: Vec<(LevelId, AnyOrder)>,
    recorded_steps: Option<usize>,
    capacities: Vec<(LevelId, u32)>,
    on_panic: PanicPolicy,
    pub(super) start_paused: bool,
    pub(super) is_current_thread: bool,
    pub(super) demand: Demand,
    pub(super) core_policy: MakePolicy,
    /// The runtime whose workers it is to share.
    pub(super) shares_with: Option<Arc<Job>>,
    /// A setting of the workers and threads that was made here.
    pub(super) of_workers: Option<&'static str>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Builder {
            workers: None,
            is_most: true,
            pinning: None,
            partition: None,
            root: Path::new("/"),
            threads: ThreadOptions::new(DEFAULT_THREAD_LIMIT),
            levels: LevelTable::of::<OneLevel>(),
            real_time: false,
            lowers_threads: true,
            schedule: Schedule::Prompt,
            pool: AnyOrder::default(),
            pools: Vec::new(),
            recorded_steps: None,
            capacities: Vec::new(),
            on_panic: PanicPolicy::propagate(),
            start_paused: false,
            is_current_thread: false,
            demand: Demand::default(),
            core_policy: MakePolicy::default(),
            shares_with: None,
            of_workers: None,
        }
    }

    /// The number of workers: how many stacks run at a time. The default is the number of CPUs that
    /// the process may use (its affinity mask and its cgroup's quota included).
    ///
    /// By default the runtime follows, within a second or two, if the process may use fewer CPUs later, or again as
    /// many: [`WorkerShare::usable`](crate::WorkerShare::usable) says how many workers run. With a number it has that
    /// many, whatever the process may use. See [`most_workers`](Builder::most_workers) for a process that may come to
    /// use more CPUs than at first.
    pub fn workers(mut self, workers: usize) -> Self {
        self.of_workers = Some("workers");
        self.workers = Some(workers);
        self.is_most = false;
        self
    }

    /// As [`workers`](Builder::workers), but no more of them run than the process may use at the time. For a process
    /// whose affinity, cpuset or quota may grow while it runs. A worker that does not run costs some kilobytes.
    ///
    /// ```
    /// use urgency::Runtime;
    ///
    /// let runtime = Runtime::builder().most_workers(64).build()?;
    /// let entitled = std::thread::available_parallelism().unwrap().get();
    /// assert_eq!(runtime.stats().share.usable, entitled.min(64));
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn most_workers(mut self, workers: usize) -> Self {
        self.of_workers = Some("most_workers");
        self.workers = Some(workers);
        self.is_most = true;
        self
    }

    /// The kernel's files are below this directory.
    #[cfg(all(test, not(miri)))]
    pub(crate) fn root(mut self, root: &'static Path) -> Self {
        self.root = root;
        self
    }

    /// The levels, as declared by [`levels!`](crate::levels). The default is one level.
    pub fn levels<L: Levels>(mut self) -> Self {
        self.levels = LevelTable::of::<L>();
        self
    }

    /// Shares the workers between the levels: each level is entitled to its part of their time, in rounds of
    /// 5 ms, and what a level does not use goes to the most urgent one that has work. A level that has used
    /// little of its share need not wait for a round of its own: it comes first, for up to a round and a half
    /// of time at once. Without a criterion urgent work goes first without limit. See [`Criterion`] for
    /// shares and tolerated stretches, and [`Runtime::set_fairness`] for a change while the runtime runs.
    /// (Fairness in Responsive Parallelism, section 3.)
    ///
    /// ```
    /// use urgency::{Criterion, Runtime};
    /// urgency::levels! { App: Interactive > Query > Batch }
    ///
    /// // Queries take at most 4 times as long as alone, batches 10 times; interactive work gets the rest.
    /// let criterion = Criterion::from_stretches(&[f64::INFINITY, 4.0, 10.0])?;
    /// let runtime = Runtime::builder().levels::<App>().fairness(criterion).build()?;
    /// # drop(runtime);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fairness(self, criterion: Criterion) -> Self {
        self.schedule(criterion)
    }

    /// How the workers are shared between the levels; see [`policy`](crate::policy) for the choice. The default is
    /// [`Schedule::Prompt`]: the most urgent level that has work.
    ///
    /// ```
    /// use urgency::{Runtime, policy::{Adaptive, FixedShares, Otherwise, Parameters}};
    /// urgency::levels! { App: Interactive > Batch }
    ///
    /// // Two workers, one for each level, come what may.
    /// let stages = FixedShares::of_workers(&[1, 1], Otherwise::Wait);
    /// let builder = Runtime::builder().workers(2).levels::<App>();
    /// let staged = builder.clone().schedule(stages).build()?;
    ///
    /// // As many as each level has shown that it uses.
    /// let adaptive = builder.schedule(Adaptive::new(2, Parameters::default())?).build()?;
    /// # drop((staged, adaptive));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule(mut self, schedule: impl Into<Schedule>) -> Self {
        self.schedule = schedule.into();
        self
    }

    /// In which order the ready contexts of a level come, for all levels; see [`policy`](crate::policy) for
    /// the choice: a [`Kind`](crate::policy::Kind), or a [`PoolOrder`](crate::policy::PoolOrder) of your own. The
    /// default is [`Kind::Aging`](crate::policy::Kind::Aging): as they became ready, over all workers; and among code
    /// that runs for long, polls and stacks whose wait is over have turns. Under any other order there are no turns,
    /// and a level has the queues that the order's [`Layout`](crate::policy::Layout) names, each with a lock.
    ///
    /// ```
    /// use urgency::{Runtime, policy::{Kind, Order, Plan}};
    ///
    /// let by_name = Runtime::builder().pool("slot".parse::<Kind>()?).build()?;
    /// let by_plan = Runtime::builder()
    ///     .pool(Kind::Queues(Plan::FIFO.in_order(Order::Mix { newest: 20 })))
    ///     .build()?;
    /// assert_eq!(by_plan.spawn(async { 42 }).get()?, 42);
    /// # drop(by_name);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool(mut self, order: impl Into<AnyOrder>) -> Self {
        self.pool = order.into();
        self
    }

    /// As [`Builder::pool`], for one level.
    ///
    /// ```
    /// use urgency::{Runtime, policy::Kind};
    /// urgency::levels! { App: Interactive > Batch }
    ///
    /// let builder = Runtime::builder().levels::<App>().pool_at(Batch, "lifo".parse::<Kind>()?);
    /// # drop(builder.build()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool_at(mut self, level: impl Into<LevelId>, order: impl Into<AnyOrder>) -> Self {
        self.pools.push((level.into(), order.into()));
        self
    }

    /// A runtime that was built by this has the schedule again with which it was built.
    pub(crate) fn restore_schedule(&self, runtime: &Runtime) {
        let is_usual = matches!(self.schedule, Schedule::Prompt);
        if !is_usual || runtime.job().seats.is_on() {
            runtime.job().set_schedule(self.schedule.clone());
        }
    }

    /// Whether a job with this description could ever be built, on so many workers. Schedules and orders may be code of
    /// the program.
    ///
    /// # Errors
    ///
    /// It says something that the job says itself, or the set does; or it is wrong in itself.
    pub(crate) fn could_be_a_jobs(&self, workers: usize) -> Result<(), BuildError> {
        let demand = (self.demand != Demand::default()).then_some("demand");
        let sharing = self.shares_with.as_ref().map(|_| "share_workers_with");
        if let Some(setting) = demand.or(sharing).or(self.of_workers) {
            return Err(BuildError::OfSharedWorkers(setting));
        }
        self.check(workers)
    }

    /// Whether what it says of levels, capacities, schedule and orders fits.
    fn check(&self, workers: usize) -> Result<(), BuildError> {
        let levels = self.levels.len();
        for &(level, _) in &self.capacities {
            if usize::from(level.rank()) >= levels {
                return Err(BuildError::NoSuchLevel { level, levels });
            }
        }
        self.schedule.check(levels, workers)?;
        self.orders().map(drop)
    }

    /// How many levels the runtime will have.
    pub(crate) fn level_count(&self) -> usize {
        self.levels.len()
    }

    /// The order of each level, by rank, with the layout that was checked: an order is asked for it once.
    fn orders(&self) -> Result<Vec<(&AnyOrder, Layout)>, BuildError> {
        let levels = self.levels.len();
        let mut orders = vec![&self.pool; levels];
        for (level, order) in &self.pools {
            let (level, known) = (*level, orders.get_mut(usize::from(level.rank())));
            *known.ok_or(BuildError::NoSuchLevel { level, levels })? = order;
        }
        let orders = orders.into_iter();
        orders
            .map(|order| Ok((order, order.checked_layout()?)))
            .collect()
    }

    /// The pool of each level, by rank.
    fn level_pools(&self, workers: usize) -> Result<Box<[Pool]>, BuildError> {
        let orders = self.orders()?;
        let pools = orders.iter().enumerate();
        Ok(pools
            .map(|(level, order)| Pool::new(*order, level, workers))
            .collect())
    }

    /// Puts the thread that waits for events into the real-time class while it waits, and while it polls the tasks that
    /// the events were for. Closures and forks never run there. It needs a permission (`CAP_SYS_NICE` or an
    /// `RLIMIT_RTPRIO`); without it nothing happens, and `Stats::real_time` says so. The default is off: the thread
    /// asks for short time slices, which needs no permission.
    pub fn real_time_polling(mut self, on: bool) -> Self {
        self.of_workers = Some("real_time_polling");
        self.real_time = on;
        self
    }

    /// Whether a thread whose worker was revoked for more urgent work is lowered in the kernel's scheduler, so that it
    /// does not compete with that work. The default is `true`.
    ///
    /// A thread that does not come to a scheduling point goes on when its worker is gone. The kernel sees two threads
    /// of one weight, and gives each half of the processor. So the first is lowered: to the idle class
    /// (`SCHED_IDLE`) if it runs the least urgent level, to a niceness between 0 and 19 if it runs one between, and
    /// not at all in a runtime of one level. *Other* processes come before a lowered thread; beside processes that keep
    /// all processors busy it hardly runs. Choose `false` if less urgent work is to go on beside them, or give it a
    /// share: under a schedule that owes levels shares ([`Builder::fairness`]) a thread is in its usual class while its
    /// level has its turn, and none is lowered where none may come back.
    ///
    /// # Permission
    ///
    /// None is needed. But to come back to the usual class the kernel asks for `CAP_SYS_NICE`, or an `RLIMIT_NICE`
    /// that permits the thread's niceness: 20 for the usual 0 (`ulimit -e 20`, `LimitNICE=+0` in a unit of
    /// systemd). [`Stats::can_raise`](crate::Stats::can_raise) tells. With it a thread comes back when it begins
    /// more urgent work, or has kept its worker for 16 ms while nothing more urgent ran. Without it a lowered thread
    /// runs less urgent work for as long as it lives, and others run the more urgent work.
    ///
    /// # Threads and processes that the program makes
    ///
    /// inherit the class of the thread that makes them, for good; the kernel's flag `SCHED_RESET_ON_FORK`
    /// does not change that. So where less urgent code makes them: let more urgent code or a thread of the
    /// program's own do that, or, with the permission, let them leave the class first (`sched_setscheduler` with
    /// `SCHED_OTHER` at the beginning of the thread, or in
    /// [`pre_exec`](std::os::unix::process::CommandExt::pre_exec) of a process; `chrt --other 0 COMMAND`). With the
    /// permission a [`process::Command`](crate::process::Command) sees to that itself.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().lower_threads(false).build()?;
    /// assert_eq!(runtime.stats().lowerings, 0);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn lower_threads(mut self, on: bool) -> Self {
        self.of_workers = Some("lower_threads");
        self.lowers_threads = on;
        self
    }

    /// Records what the runtime runs, at most so many steps of tasks: [`Runtime::recording`] gives it as a
    /// computation that `urgency sim --trace` takes as input, to try other schedulers and machines on it, and
    /// checks the papers' bounds on. A recorded step costs some microseconds; a runtime that does not record
    /// pays nothing.
    ///
    /// A step is what a task runs between two points where it spawns, wakes another task, takes a result or waits.
    /// Fork-join within a closure is part of its step.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(2).record(1_000_000).build()?;
    /// runtime.spawn(async { urgency::spawn(async { 42 }).await }).get()??;
    /// let recording = runtime.recording().expect("it was asked for");
    /// assert_eq!(recording.threads(), 2);
    /// assert!(recording.to_json().contains("spawned_by"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn record(mut self, steps: usize) -> Self {
        self.recorded_steps = Some(steps);
        self
    }

    /// How many tasks of a level can be [admitted](crate::life::admit) at once. The default is any number. The limit
    /// binds code that asks for admission; the plain `spawn` forms do not ask.
    ///
    /// ```
    /// use urgency::{Runtime, levels, life::Capacity};
    ///
    /// levels! { App: Control > Requests }
    ///
    /// let runtime = Runtime::builder().levels::<App>().capacity(Requests, 2).build()?;
    /// assert_eq!(runtime.run(|| Capacity::of(Requests)).unwrap().limit, 2);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn capacity(mut self, level: impl Into<LevelId>, tasks: u32) -> Self {
        self.capacities.push((level.into(), tasks));
        self
    }

    /// What happens when a task panics. By default the code that waits for the task gets the panic as a value in its
    /// error, and a line on standard error tells of a task that no code waits for.
    pub fn on_panic(mut self, policy: PanicPolicy) -> Self {
        self.on_panic = policy;
        self
    }

    fn job(&self) -> Result<Arc<Job>, BuildError> {
        let (workers, threads) = match (&self.shares_with, self.of_workers) {
            (None, _) => self.threads()?,
            (Some(_), Some(setting)) => return Err(BuildError::OfSharedWorkers(setting)),
            (Some(other), None) => (other.core.workers.len(), self.threads.clone()),
        };
        self.check(workers)?;
        let (capacities, pools) = (
            Capacities::new(self.levels.len(), &self.capacities),
            self.level_pools(workers)?,
        );
        let policy = self.core_policy.make();
        // From here on there is a place for a job that is to be filled.
        let core = match &self.shares_with {
            Some(other) => self.core_of(other)?,
            None if !threads.can_have_stacks() => {
                return Err(BuildError::StackSize(threads.stack_size));
            }
            None => {
                let of_threads = (self.real_time, self.lowers_threads);
                let pins = self.pins()?;
                let sharing = Sharing::new(workers, policy, self.plans(pins.cpus())?);
                let of_workers = (workers, self.entitled(), pins);
                Core::new(of_workers, threads, of_threads, sharing)
            }
        };
        let place = Place(&core);
        let admitted = core.admit(self.demand, None, || {
            Job::new(
                core.clone(),
                self.levels,
                (capacities, self.on_panic.clone()),
                self.lends(workers),
                self.demand,
                pools,
            )
        });
        let job = admitted?;
        if let Some(steps) = self.recorded_steps {
            let _ = job.recorder.set(record::start(steps, || {
                run::with_current_task(|task| task.is_some())
            }));
        }
        if !matches!(self.schedule, Schedule::Prompt) {
            job.set_schedule(self.schedule.clone());
        }
        if self.start_paused {
            match job.core.driver() {
                Ok(driver) => drop(driver.pause_clock()),
                Err(error) => panic!("a runtime's clock cannot be paused: {error}"),
            }
        }
        std::mem::forget(place);
        Ok(job)
    }

    /// Builds the runtime. It has no thread until something needs one.
    ///
    /// # Errors
    ///
    /// If a number is out of its range, or threads with stacks of the size that was asked for cannot be had.
    ///
    /// # Panics
    ///
    /// With the panic of a schedule, an order or a core policy of the program's own that is asked what it is like: its
    /// period, layout, boundary. Nothing is left of the runtime then.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let runtime = self.job().map(Runtime::of)?;
        // What it keeps is the program's, and may panic when it is dropped. (When that came last, the runtime was
        // what this returns: it was not dropped, and stayed for good.)
        drop(self);
        Ok(runtime)
    }

    /// Builds the global runtime, which the free functions use outside any other runtime.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`], or if the global runtime exists already.
    pub fn build_global(self) -> Result<&'static Runtime, BuildError> {
        let mut built = Some(Runtime::of(self.job()?));
        let global = GLOBAL.get_or_init(|| built.take().expect("called once"));
        match built {
            None => Ok(global),
            Some(_) => Err(BuildError::GlobalExists),
        }
    }
}

/// The place of a job on its core set, until the job is made: an error or a panic of the program's schedule
/// gives it back.
struct Place<'a>(&'a Core);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.ended();
    }
}
