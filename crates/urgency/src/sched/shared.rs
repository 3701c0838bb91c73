//! What all workers of a runtime share, and how ready work gets in.
//!
//! # Insertion
//!
//! Every way in (a task is spawned or woken, a stack's wait is over, a stack is abandoned, jobs are
//! published) ends in [`Shared::inserted`]:
//!
//! 1. the entry is in the pool;
//! 2. the level's bit is set (a full barrier);
//! 3. every worker that serves a less urgent level is alerted through its attention word: the prompt
//!    principle. A worker that finds nothing by then has lost a look, not its place: it takes the work
//!    first and abandons its stack only if it got some;
//! 4. if nobody searches, an idle worker is started;
//! 5. if there is none, the relief timer is armed: somebody must check in within a millisecond (or some, if all that waits
//!    is jobs of stacks that run).
//!
//! A wake-up from inside a task's poll may skip step 4 once: the poll is about to end, and then this
//! worker takes the entry itself. That is what makes a ping-pong of two tasks cost no system call. If
//! the poll does not end, the relief timer starts the idle worker.
//!
//! Such an entry goes into the polling stack's own ring. In a runtime of one level it needs no barrier, which costs
//! as much as the rest of a wake-up: its stack looks at it when the poll ends, and that return to the scheduler is a
//! barrier. For a poll that does not end, the expiry of relief brings the barrier, to all processors (`fence::heavy`).
//! With several levels, a less urgent worker may have to move up for the entry at once.
//!
//! A thread that comes from the poller inserts a *batch*: steps 3 to 5 follow when all entries are in, and
//! not for the one that it is going to run itself.

use super::{
    attention::{PREEMPT, SHARE},
    here,
    idle::Idle,
    lookout::{Lookout, look_period},
    pool::{Entry, Pool},
    ready::Ready,
    stack::Stack,
    thread_options::ThreadOptions,
    worker::{NO_LEVEL, Worker},
};
use crate::{
    chaos,
    fork::fence,
    io::driver::Driver,
    level::table::LevelTable,
    life::{Capacities, PanicPolicy},
    os::clock,
    task::TaskRef,
};
use crossbeam_utils::CachePadded;
use std::{
    any::Any,
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};
use urgency_policy::{
    level::LevelPolicy,
    pool::{Arrival, Kind},
};

/// A worker that was asked for attention and has not checked in for this long loses its worker.
/// It is the cost of a few dozen hand-offs, and far below what a person notices.
pub(crate) const RELIEF_PERIOD: Duration = Duration::from_millis(1);

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) ready: Ready,
    pub(crate) idle: Idle,
    pub(crate) pools: Box<[Pool]>,
    pub(crate) workers: Box<[CachePadded<Worker>]>,
    pub(crate) levels: LevelTable,
    pub(crate) threads: super::hand_off::Threads,
    pub(crate) tasks: super::shutdown::Tasks,
    pub(crate) personal: super::personal::Personal,
    /// What an embedder keeps here; see [`crate::embed`].
    pub(crate) attachment: OnceLock<Weak<dyn Any + Send + Sync>>,
    pub(crate) overrunning: super::relief::Overrunning,
    pub(crate) preempted: super::preempted::Preempted,
    pub(crate) lookout: Lookout,
    pub(crate) centre: super::centre::Centre,
    /// Set when the runtime is built, if it records.
    pub(crate) recorder: OnceLock<crate::record::Recorder>,
    driver: OnceLock<Arc<Driver>>,
    /// Whether an entry in a ring needs no barrier; see the module's text.
    pub(crate) rings_are_light: bool,
    /// The levels with another policy than aging.
    with_queues: u64,
    /// How many threads are in the poller.
    pub(crate) pollers: AtomicUsize,
    /// How many workers were left for a thread in the poller to start.
    pub(crate) unstarted: AtomicUsize,
    pub(crate) closing: AtomicBool,
    /// The thread in the poller is to be in the real-time class, where permitted.
    pub(crate) real_time: bool,
    pub(crate) capacities: Capacities,
    pub(crate) on_panic: PanicPolicy,
    /// The least urgent level whose tasks are admitted; see `shutdown`.
    pub(crate) least_admitted: AtomicU8,
    myself: Weak<Shared>,
}

impl Shared {
    pub(crate) fn new(
        workers: usize,
        levels: LevelTable,
        threads: ThreadOptions,
        (real_time, demotes_preempted): (bool, bool),
        (capacities, on_panic): (Capacities, PanicPolicy),
        pools: &[Kind],
    ) -> Arc<Self> {
        clock::calibrate();
        let count = levels.len();
        let shared = Arc::new_cyclic(|myself| Shared {
            ready: Ready::new(),
            idle: Idle::new(workers),
            pools: (0..count)
                .map(|level| Pool::new(pools[level], level, workers))
                .collect(),
            workers: (0..workers)
                .map(|id| CachePadded::new(Worker::new(id, count)))
                .collect(),
            levels,
            threads: super::hand_off::Threads::new(threads),
            tasks: super::shutdown::Tasks::new(workers),
            personal: super::personal::Personal::new(workers),
            attachment: OnceLock::new(),
            overrunning: super::relief::Overrunning::default(),
            preempted: super::preempted::Preempted::new(demotes_preempted),
            lookout: Lookout::new(clock::ticks(look_period(count))),
            centre: super::centre::Centre::default(),
            recorder: OnceLock::new(),
            driver: OnceLock::new(),
            rings_are_light: count == 1 && fence::heavy(),
            with_queues: (0..count).fold(0, |levels, level| {
                levels | u64::from(pools[level] != Kind::Aging) << level
            }),
            pollers: AtomicUsize::new(0),
            unstarted: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            real_time,
            capacities,
            on_panic,
            least_admitted: AtomicU8::new(u8::MAX),
            myself: myself.clone(),
        });
        for id in 0..workers {
            shared.idle.release(id);
        }
        // A failure shows at the first operation that needs the driver.
        let _ = shared.driver();
        shared
    }

    pub(crate) fn arc(&self) -> Arc<Shared> {
        self.myself
            .upgrade()
            .expect("whoever uses the runtime keeps it alive")
    }

    /// The level of what comes from outside and names none.
    pub(crate) fn least_urgent(&self) -> u8 {
        self.levels.len() as u8 - 1
    }

    pub(crate) fn weak(&self) -> Weak<Shared> {
        self.myself.clone()
    }

    /// The I/O driver. It is made with the runtime, so that a process that runs out of descriptors later
    /// keeps its timers and its relief; if there were none even then, it is made when it is needed.
    pub(crate) fn driver(&self) -> std::io::Result<&Arc<Driver>> {
        if let Some(driver) = self.driver.get() {
            return Ok(driver);
        }
        let made = Driver::new()?;
        Ok(self.driver.get_or_init(|| {
            let shared = self.weak();
            made.on_interest(move || {
                if let Some(shared) = shared.upgrade() {
                    shared.call_in_poller();
                }
            });
            made
        }))
    }

    /// The I/O driver, if anything needed it yet.
    #[inline]
    pub(crate) fn driver_if_made(&self) -> Option<&Arc<Driver>> {
        self.driver.get()
    }

    /// A task became ready.
    #[inline]
    pub(crate) fn insert_task(&self, task: TaskRef) {
        let level = task.level();
        if self.has_queues(level) {
            return self.insert_task_into_queues(task);
        }
        let Some(task) = here::push_to_ring(self, task) else {
            if self.rings_are_light && here::defer_wake_up(self) {
                self.inserted_lightly(level);
            } else {
                self.inserted(level);
            }
            // Somebody may have taken the worker, and emptied the ring, before the push.
            Stack::with_current(|me| {
                if let Some(me) = me
                    && me.attention.is_taken()
                {
                    self.flush_ring(me);
                }
            });
            return;
        };
        self.pools[usize::from(level)].push(Entry::Task(task));
        self.inserted(level);
    }

    /// Whether a level has another policy than aging.
    #[inline]
    pub(crate) fn has_queues(&self, level: u8) -> bool {
        self.with_queues >> level & 1 != 0
    }

    /// Puts an entry into the pool of its level.
    #[inline]
    pub(crate) fn put(&self, level: u8, arrival: Arrival, entry: Entry) {
        let pool = &self.pools[usize::from(level)];
        match (pool.queues(), entry) {
            (None, Entry::Stack(stack)) if arrival == Arrival::Abandoned => {
                pool.push_mugging(stack);
            }
            (None, entry) => pool.push(entry),
            (Some(queues), entry) => self.put_into_queues(queues, level, arrival, entry),
        }
        self.inserted(level);
    }

    /// What is left in the ring of `stack`, whose worker goes elsewhere, goes into the pool.
    #[inline]
    pub(crate) fn flush_ring(&self, stack: &Stack) {
        if !stack.ring.is_empty() {
            self.flush_ring_cold(stack);
        }
    }

    #[cold]
    fn flush_ring_cold(&self, stack: &Stack) {
        while let Some(task) = super::find::pop_ring(stack) {
            let level = task.level();
            self.put(level, Arrival::Task, Entry::Task(task));
        }
    }

    /// How long the oldest entry at a level has waited at most, in ticks; `None` if nothing waits.
    pub(crate) fn oldest_wait(&self, level: usize) -> Option<u64> {
        let in_rings = self.stacks_at(level as u8).map(|stack| stack.ring.oldest());
        let oldest = in_rings.chain([self.pools[level].oldest()]).min()?;
        (oldest != u64::MAX).then(|| clock::now().saturating_sub(oldest))
    }

    /// How many entries wait at a level.
    pub(crate) fn queued(&self, level: usize) -> usize {
        let in_rings = self.stacks_at(level as u8).map(|stack| stack.ring.len());
        self.pools[level].len() + in_rings.sum::<usize>()
    }

    /// The stacks at `level` that hold a worker, or held it last: those whose rings count.
    pub(crate) fn stacks_at(&self, level: u8) -> impl Iterator<Item = &Stack> {
        let holders = self.workers.iter().filter_map(|worker| self.holder(worker));
        holders.filter(move |stack| stack.level() == level)
    }

    /// Whether anything is ready at `level`: in its pool, or in the ring of a stack that holds a worker.
    pub(crate) fn is_queued(&self, level: u8) -> bool {
        !self.pools[usize::from(level)].is_empty()
            || self.stacks_at(level).any(|stack| !stack.ring.is_empty())
    }

    /// As [`Shared::is_queued`], of what any worker may take: a ring's only entry is its owner's for a while.
    pub(crate) fn is_offered(&self, level: u8) -> bool {
        !self.pools[usize::from(level)].is_empty()
            || self.stacks_at(level).any(|stack| stack.offers_task())
    }

    /// A stack's wait is over; the caller ended it and owes this entry. If a worker is idle, nothing
    /// older waits, and the stack gets it directly: one wake-up instead of two.
    pub(crate) fn resume(&self, stack: Arc<Stack>) {
        stack.note_ready();
        if let Some(worker) = self.claim_for(1 << stack.level()) {
            if stack.suspension.claim() {
                self.deliver(worker, &stack);
            } else {
                // Not simply back: a stack that started meanwhile saw nobody hungry.
                self.start(worker);
            }
            return;
        }
        self.insert_resumable(stack);
    }

    /// Puts a resumable stack at the tail of its level's pool.
    pub(crate) fn insert_resumable(&self, stack: Arc<Stack>) {
        let level = stack.level();
        self.put(level, Arrival::Resumable, Entry::Stack(stack));
    }

    /// Puts an abandoned stack into its level's mugging queue.
    pub(crate) fn insert_abandoned(&self, stack: Arc<Stack>) {
        let level = stack.level();
        stack.note_ready();
        self.put(level, Arrival::Abandoned, Entry::Stack(stack));
    }

    /// A stolen job goes back: no thread could be had for it.
    pub(crate) fn insert_job(&self, job: super::StolenJob) {
        let level = job.level;
        self.put(level, Arrival::Task, Entry::Job(job));
    }

    /// The deque of `stack` has public jobs: it must be in the pool of their level. An entry from the time
    /// when the stack ran something at another level is left where it is, and is stale.
    pub(crate) fn insert_deque(&self, stack: &Stack) {
        self.insert_deque_as(stack, Arrival::PublicJobs);
    }

    /// As [`Shared::insert_deque`], of a stack that is about to wait if that is what arrives.
    pub(crate) fn insert_deque_as(&self, stack: &Stack, arrival: Arrival) {
        let level = stack.level();
        if stack.queued.fetch_or(1 << level, Ordering::AcqRel) & 1 << level == 0 {
            chaos::delay();
            self.put(level, arrival, Entry::Deque(stack.arc()));
        }
    }

    /// Steps 2 to 5 of the module's text.
    #[inline]
    fn inserted(&self, level: u8) {
        self.ready.announce(level);
        if here::is_batch_of(self) {
            return;
        }
        if self.pools.len() > 1 {
            self.alert_below(level);
        }
        if self.idle.searchers() != 0 && !self.centre.waits() {
            return;
        }
        if here::defer_wake_up(self) {
            self.arm_relief();
        } else {
            self.start_idle();
        }
    }

    /// As [`Shared::inserted`], without a barrier, for an entry in the ring of the polling stack, in a runtime of one
    /// level. What others may miss of it meanwhile is made up for when the poll ends, or when relief expires.
    #[inline]
    fn inserted_lightly(&self, level: u8) {
        fence::light();
        if self.ready.levels() >> level & 1 == 0 {
            self.ready.announce(level);
        }
        self.arm_relief();
    }

    /// A poll of `me` ended, behind the barrier of its return to the scheduler: an entry that it made lightly may be
    /// hidden under a bit that was being cleared.
    #[inline]
    pub(crate) fn make_up(&self, me: &Stack) {
        let level = me.level();
        fence::behind_locked();
        if self.ready.levels() >> level & 1 == 0 && !me.ring.is_empty() {
            self.ready.announce(level);
        }
    }

    /// A batch of insertions ended, and the caller has a worker for one of the entries, or none. The
    /// others are in for steps 3 to 5.
    pub(crate) fn batch_inserted(&self, entries: usize, has_worker: bool) {
        if entries > usize::from(has_worker)
            && let Some(level) = self.most_urgent_queued()
        {
            self.rest_inserted(level);
        }
    }

    /// Steps 3 to 5 for all that is in, at `level` and below.
    pub(crate) fn rest_inserted(&self, level: u8) {
        if self.pools.len() > 1 {
            self.alert_below(level);
        }
        if self.idle.searchers() == 0 || self.centre.waits() {
            self.start_idle();
        }
    }

    /// Alerts every worker that serves something less urgent than `level`, or, in fair rounds, whose primary
    /// level it is; not one that serves its primary level.
    fn alert_below(&self, level: u8) {
        for worker in &self.workers {
            let serves = worker.level();
            if serves != NO_LEVEL && worker.seat().is_drawn_by(level, serves) {
                worker.want(level, clock::now());
                if let Some(holder) = self.holder(worker) {
                    holder.attention.request(PREEMPT);
                }
            }
        }
    }

    /// The stack that holds a worker, or held it last.
    pub(crate) fn holder(&self, worker: &Worker) -> Option<&Stack> {
        // SAFETY: the thread table keeps every stack until the runtime is gone.
        unsafe { worker.holder().as_ref() }
    }

    /// Starts an idle worker for what is ready if there is one, else sees to it that the busy ones check in.
    pub(crate) fn start_idle(&self) {
        let claimed = if self.centre.waits() {
            self.claim_for(self.ready.levels())
        } else {
            self.claim_idle()
        };
        match claimed {
            Some(worker) => self.start(worker),
            None => self.arm_for_queued(),
        }
    }

    /// As [`Shared::start_idle`], for something at these levels that is in no pool.
    pub(crate) fn start_idle_for(&self, levels: u64) {
        match self.claim_for(levels) {
            Some(worker) => self.start(worker),
            None => self.arm_relief(),
        }
    }

    /// Takes a worker out of the idle set, for the caller.
    pub(crate) fn claim_idle(&self) -> Option<&Worker> {
        self.idle.claim(0).map(|id| self.claimed(id))
    }

    /// Takes this worker out of the idle set, for the caller, if it is there.
    pub(crate) fn claim_exactly(&self, id: usize) -> Option<&Worker> {
        self.idle.claim_exactly(id).then(|| self.claimed(id))
    }

    fn claimed(&self, id: usize) -> &Worker {
        let worker = &*self.workers[id];
        let slept = worker.lap();
        worker.counters.asleep.add(slept);
        self.threads.patience.learn(slept);
        worker
    }

    /// Puts a worker that nobody uses into the idle set.
    pub(crate) fn release(&self, worker: &Worker) {
        worker.set_level(NO_LEVEL);
        worker.note_cpu();
        worker.lap();
        self.idle.release(worker.id);
    }

    /// As [`Shared::release`], and looks once more: no worker is idle while anything is ready.
    pub(crate) fn release_and_look(&self, me: &Stack, worker: &Worker) {
        self.release(worker);
        self.look_for_personal(me, worker);
        if self.is_anything_left(me, worker) && (self.idle.searchers() == 0 || self.centre.waits())
        {
            self.start_idle();
        }
    }

    /// Asks every stack other than `me` that runs user code which `worker` would serve to publish jobs.
    pub(crate) fn ask_for_jobs(&self, me: &Stack, worker: &Worker) {
        let seat = worker.seat();
        for other in &self.workers {
            let serves = other.level();
            if serves != NO_LEVEL
                && seat.serves_any(1 << serves)
                && let Some(stack) = self.holder(other)
                && !ptr::eq(stack, me)
            {
                stack.attention.request(SHARE);
            }
        }
    }

    /// Whether work is ready for which `worker` leaves `level`: more urgent work, unless it is in a round.
    #[inline]
    pub(crate) fn is_drawn(&self, worker: &Worker, level: u8) -> bool {
        self.drawn_by(worker, level).is_some()
    }

    /// The level for which a worker would leave `level` now.
    pub(crate) fn drawn_by(&self, worker: &Worker, level: u8) -> Option<u8> {
        if self.pools.len() == 1 {
            return None;
        }
        let levels = self.ready.levels_in_order();
        worker.seat().abandon_for(levels, level)
    }
}
