//! What a machine has: workers, the threads that carry them, and one reactor. Several jobs can share it.
//!
//! A *core set* knows nothing of levels, pools or tasks: those are each job's own (`job.rs`). It has the workers and
//! the set of the idle ones, all threads, the driver with the thread in the poller, and the timer of relief, which
//! looks at all jobs. A plain runtime is a core set with one job.
//!
//! # What keeps what alive
//!
//! 1. A job keeps its core set. So does each thread, until it ends.
//! 2. The core set keeps its workers and every stack that it ever made, for as long as it lives: a pointer to one of
//!    them may be followed by all code that keeps the core set.
//! 3. Tasks and handles keep their job; so does a stack, from the moment when its thread takes the job up until
//!    it takes up another or is a spare thread again; so does a worker while it serves the job.
//! 4. The core set does not keep its jobs. Its table has a job until nothing keeps the job any more: then nothing of
//!    the job is left that could become ready.
//!
//! The caller of a job's method keeps the job by its own stack, task or handle, never by a worker alone: the call may
//! release that worker.
//!
//! # Which job a worker serves
//!
//! The pointer that a worker or a stack shows to others is compared with one's own job, never followed. It may change
//! at any time after the look, so the look is a hint, as each entry in a pool is. The step that takes something
//! decides: a steal under the deque's lock, the claim of a stack, and a look at what a ring gave. A stack changes its
//! job only when its thread takes up new work with nothing on the stack, so nothing of the old job can be found there
//! afterwards.

use super::{
    cores::Sharing,
    job::Job,
    machine::{entitled::Entitled, pins::Pins},
    rescue::demotion::DemotedStacks,
    stack::Stack,
    switch::{thread_options::ThreadOptions, threads::Threads},
    worker::Worker,
};
use crate::sys::primitives::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::{
    protocol::{
        fence, idle::Idle, places::Places, poll_mode::PollMode, pollers::Pollers,
        relief_timer::ReliefTimer,
    },
    reactor::driver::Driver,
    sys::{self, clock, fork::Process, mutex::Mutex, wake_up::WakeUpTime},
};
use crossbeam_utils::CachePadded;
use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

/// A worker that was asked for attention and has not checked in for this long loses its worker.
/// It is the cost of a few dozen hand-offs, and far below what a person notices.
pub(crate) const RELIEF_PERIOD: Duration = Duration::from_millis(1);

/// What a request for attention may stay unanswered: half a period.
pub(crate) const ANSWER_TIME: Duration = Duration::from_micros(500);

/// The relief period, in ticks.
pub(in crate::sched) fn period() -> u64 {
    clock::ticks(RELIEF_PERIOD.as_nanos() as f64)
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) workers: Box<[CachePadded<Worker>]>,
    pub(crate) idle: Idle,
    pub(super) places: Places,
    pub(super) entitled: Entitled,
    pub(crate) pins: Pins,
    pub(crate) threads: Threads,
    pub(crate) demoted_stacks: DemotedStacks,
    pub(crate) wake_up: WakeUpTime,
    /// How many stacks overrun: see `Stack::overruns`.
    pub(super) overruns: AtomicUsize,
    pub(crate) poll_mode: PollMode,
    pub(crate) relief_timer: ReliefTimer,
    driver: OnceLock<Arc<Driver>>,
    /// How many threads are in the poller.
    pub(crate) pollers: Pollers,
    /// Every job has ended: threads end when they find nothing to do.
    pub(crate) closing: AtomicBool,
    /// The thread in the poller is to be in the real-time class, where permitted.
    pub(crate) real_time: bool,
    /// Where its threads are.
    pub(crate) process: Process,
    jobs: Jobs,
    pub(crate) sharing: Sharing,
    /// For how long at least a thread in the poller leaves events to the workers.
    #[cfg(test)]
    pub(super) rests_for: Mutex<Duration>,
    /// How often a thread in the poller has done so.
    #[cfg(test)]
    pub(super) rests: AtomicUsize,
    /// What the looks of relief came to, while a test wants to know.
    #[cfg(test)]
    pub(super) looks: Mutex<Option<Vec<super::tests::expiries::Look>>>,
    myself: Weak<Core>,
}

/// The jobs of a core set.
#[derive(Debug)]
struct Jobs {
    table: Mutex<Table>,
    /// How many are in the table.
    count: AtomicUsize,
    /// How many of them have not ended. One that is about to be made counts.
    open: AtomicUsize,
}

/// See [`Jobs`].
#[derive(Debug, Default)]
struct Table {
    shown: Vec<Weak<Job>>,
    /// Nothing of these is left to be served ([`Core::hide`]).
    hidden: Vec<Weak<Job>>,
}

/// The job goes from one part of a table to the other.
fn transfer(job: &Arc<Job>, from: &mut Vec<Weak<Job>>, to: &mut Vec<Weak<Job>>) {
    let is_it = |other: &Weak<Job>| std::ptr::eq(other.as_ptr(), Arc::as_ptr(job));
    if let Some(place) = from.iter().position(is_it) {
        to.push(from.remove(place));
    }
}

/// The jobs that a core set had at one moment, in their order. The usual one costs no allocation.
#[derive(Default)]
pub(crate) struct JobList {
    first: Option<Arc<Job>>,
    others: Vec<Arc<Job>>,
}

impl JobList {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Job>> + Clone {
        self.first.iter().chain(&self.others)
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }
}

impl Core {
    pub(crate) fn new(
        (workers, entitled, pins): (usize, Entitled, Pins),
        threads: ThreadOptions,
        (real_time, lowers_threads): (bool, bool),
        sharing: Sharing,
    ) -> Arc<Self> {
        clock::calibrate();
        fence::prepare();
        let core = Arc::new_cyclic(|myself| Core {
            workers: (0..workers)
                .map(|id| CachePadded::new(Worker::new(id, pins.of(id))))
                .collect(),
            idle: Idle::new(workers, entitled.usable()),
            places: Places::new(sys::thread::known_processors()),
            entitled,
            pins,
            threads: Threads::new(threads),
            demoted_stacks: DemotedStacks::new(lowers_threads),
            wake_up: WakeUpTime::default(),
            overruns: AtomicUsize::new(0),
            poll_mode: PollMode::new(),
            relief_timer: ReliefTimer::new(),
            driver: OnceLock::new(),
            pollers: Pollers::new(),
            closing: AtomicBool::new(false),
            real_time,
            process: Process::this(),
            jobs: Jobs {
                table: Mutex::default(),
                count: AtomicUsize::new(0),
                open: AtomicUsize::new(1),
            },
            sharing,
            #[cfg(test)]
            rests_for: Mutex::default(),
            #[cfg(test)]
            rests: AtomicUsize::new(0),
            #[cfg(test)]
            looks: Mutex::default(),
            myself: myself.clone(),
        });
        for id in 0..workers {
            core.idle.release(id);
        }
        // A failure shows at the first operation that needs the driver.
        let _ = core.driver();
        core
    }

    pub(crate) fn arc(&self) -> Arc<Core> {
        self.myself
            .upgrade()
            .expect("the user of a core set keeps it alive")
    }

    /// One more job is going to be made on this core set. `false`: the last one has ended, and the core set with it.
    pub(crate) fn admits_job(&self) -> bool {
        let more = |open: usize| (open != 0).then_some(open + 1);
        let open = &self.jobs.open;
        open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
    }

    /// A new job is on this core set: the first one, or one that was admitted.
    pub(crate) fn enters(&self, job: &Arc<Job>) {
        let mut table = self.jobs.table.lock();
        table.shown.push(Arc::downgrade(job));
        self.jobs.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Only the caller keeps the job, which has no task: looks at all jobs leave it out until it is shown again. With
    /// the containers of jobs that are over among them, each look and each decision took longer with every job that ran
    /// at once at some time; and for as long as a look lasted it kept them all, so that none could be used again.
    pub(crate) fn hide(&self, job: &Arc<Job>) {
        let table = &mut *self.jobs.table.lock();
        transfer(job, &mut table.shown, &mut table.hidden);
    }

    /// A hidden job has work again. Nothing is ready there before the return.
    pub(crate) fn show(&self, job: &Arc<Job>) {
        let table = &mut *self.jobs.table.lock();
        transfer(job, &mut table.hidden, &mut table.shown);
    }

    /// Nothing keeps a job any more.
    pub(crate) fn forget_ended(&self) {
        if !self.process.is_this() {
            return;
        }
        {
            let table = &mut *self.jobs.table.lock();
            let is_kept = |job: &Weak<Job>| job.strong_count() != 0;
            table.shown.retain(is_kept);
            table.hidden.retain(is_kept);
            let count = table.shown.len() + table.hidden.len();
            self.jobs.count.store(count, Ordering::SeqCst);
        }
        if !self.is_shared() {
            self.lift_limits();
        }
    }

    /// Whether several jobs share the workers.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.jobs.count.load(Ordering::SeqCst) > 1
    }

    /// A job has ended. What is left of it may still run. The last one closes the core set.
    pub(crate) fn ended(&self) {
        if self.jobs.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.close();
        }
    }

    /// The jobs that something keeps, but for the hidden ones.
    pub(crate) fn jobs(&self) -> JobList {
        let table = self.jobs.table.lock();
        let mut alive = table.shown.iter().filter_map(Weak::upgrade);
        let first = alive.next();
        let mut others = Vec::with_capacity(table.shown.len().saturating_sub(1));
        others.extend(alive);
        JobList { first, others }
    }

    /// Whether any job has not ended.
    pub(crate) fn goes_on(&self) -> bool {
        self.jobs.open.load(Ordering::SeqCst) != 0
    }

    fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.release_partition();
        if let Some(driver) = self.driver_if_made() {
            driver.shutdown();
            // One notification for each thread that may be in the poller; it stays there for a thread that comes late.
            for _ in 0..=self.pollers.count() {
                driver.notify();
            }
        }
        self.raise_rested(true);
        self.rouse_spares();
        self.lift_limits();
    }

    /// The I/O driver. It is made with the core set, so that a process that runs out of descriptors later
    /// keeps its timers and its relief; if there were none even then, it is made when it is needed.
    pub(crate) fn driver(&self) -> std::io::Result<&Arc<Driver>> {
        self.process.must_be_this();
        if let Some(driver) = self.driver.get() {
            return Ok(driver);
        }
        let made = Driver::new()?;
        Ok(self.driver.get_or_init(|| {
            let core = self.myself.clone();
            made.on_interest(move || {
                if let Some(core) = core.upgrade() {
                    core.call_in_poller();
                }
            });
            let core = self.myself.clone();
            made.idle_if(move || core.upgrade().is_none_or(|core| core.is_quiet()));
            made
        }))
    }

    /// Whether all workers are idle, nothing is ready, and no thread but the calling one has just come out of the
    /// poller: nothing happens but from outside, or by a timer. Such a thread is asked about first: what it brings is
    /// ready, or a worker is no longer idle, before it goes.
    pub(in crate::sched) fn is_quiet(&self) -> bool {
        let mut workers = self.workers.iter();
        self.places.visitors() <= 1
            && workers.all(|worker| self.idle.contains(worker.id))
            && self.jobs().iter().all(|job| job.levels_queued() == 0)
    }

    /// The I/O driver, if anything needed it yet.
    #[inline]
    pub(crate) fn driver_if_made(&self) -> Option<&Arc<Driver>> {
        self.driver.get()
    }

    /// The worker that a stack of this core set holds, or held last; the first, if it has never held one. `None`: the
    /// stack is of another core set.
    pub(crate) fn worker_of(&self, stack: &Stack) -> Option<&Worker> {
        if !stack.is_in(self) {
            return None;
        }
        // SAFETY: a stack of this core set points to a worker of this core set, which keeps them.
        Some(unsafe { &*stack.worker_ptr() })
    }

    /// The stack that holds a worker, or held it last.
    pub(crate) fn holder(&self, worker: &Worker) -> Option<&Stack> {
        // SAFETY: the thread table keeps every stack until the core set is gone.
        unsafe { worker.holder().as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use crate::Runtime;
    use std::{
        sync::Arc,
        thread,
        time::{Duration, Instant},
    };

    #[test]
    fn a_runtime_that_is_dropped_leaves_no_job_and_no_core_set() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let job = Arc::downgrade(runtime.job());
        let core = Arc::downgrade(&runtime.job().core);
        runtime.run(|| crate::join(|| (), || ()));
        runtime.block_on(crate::time::sleep(Duration::from_millis(1)));
        runtime.spawn_fn(|| ()).get().unwrap();
        drop(runtime);
        let limit = Instant::now() + Duration::from_secs(20);
        while job.strong_count() + core.strong_count() > 0 {
            assert!(Instant::now() < limit, "somebody keeps the memory");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
