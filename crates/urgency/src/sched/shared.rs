//! What all workers of a runtime share, and who of them is idle.
//!
//! The rest of `Shared` is spread over the files that say what is done with it: how ready work gets in
//! (`insert.rs`), how a worker finds it (`find.rs`), and so on.

use super::{
    attention::SHARE,
    groups::Groups,
    idle::Idle,
    lookout::{Lookout, look_period},
    pool::Pool,
    ready::Ready,
    stack::Stack,
    thread_options::ThreadOptions,
    worker::{NO_LEVEL, Worker},
};
use crate::{
    chaos,
    fork::fence as asymmetric,
    io::driver::Driver,
    level::table::LevelTable,
    life::{Capacities, PanicPolicy},
    os::{clock, fork::Process, thread},
};
use crossbeam_utils::CachePadded;
use std::{
    any::Any,
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence},
    },
    time::Duration,
};
use urgency_policy::{level::LevelPolicy, pool::Kind};

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
    pub(crate) guests: super::guests::Guests,
    /// How many `Runtime`s there are; the last one that goes ends everything.
    pub(crate) handles: AtomicUsize,
    /// What an embedder keeps here; see [`crate::embed`].
    pub(crate) attachment: OnceLock<Weak<dyn Any + Send + Sync>>,
    pub(crate) overrunning: super::relief::Overrunning,
    pub(crate) lowered_stacks: super::lowered::LoweredStacks,
    pub(crate) served: super::served::Served,
    /// The workers that may serve a level.
    pub(crate) serving: Groups,
    /// The workers whose stacks may have tasks of a level in their rings.
    pub(crate) ringing: Groups,
    pub(crate) lookout: Lookout,
    pub(crate) centre: super::centre::Centre,
    /// Set when the runtime is built, if it records.
    pub(crate) recorder: OnceLock<crate::record::Recorder>,
    driver: OnceLock<Arc<Driver>>,
    /// Whether an entry in a ring needs no barrier; see `insert.rs`.
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
    /// Where its threads are.
    pub(crate) process: Process,
    myself: Weak<Shared>,
}

impl Shared {
    pub(crate) fn new(
        workers: usize,
        levels: LevelTable,
        threads: ThreadOptions,
        (real_time, lowers_threads): (bool, bool),
        (capacities, on_panic): (Capacities, PanicPolicy),
        pools: &[Kind],
    ) -> Arc<Self> {
        clock::calibrate();
        let count = levels.len();
        let shared = Arc::new_cyclic(|myself| Shared {
            ready: Ready::new(),
            idle: Idle::new(workers, thread::processors()),
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
            guests: super::guests::Guests::default(),
            handles: AtomicUsize::new(0),
            attachment: OnceLock::new(),
            overrunning: super::relief::Overrunning::default(),
            lowered_stacks: super::lowered::LoweredStacks::new(lowers_threads),
            served: super::served::Served::new(),
            serving: Groups::new(count, workers),
            ringing: Groups::new(count, workers),
            lookout: Lookout::new(clock::ticks(look_period(count))),
            centre: super::centre::Centre::default(),
            recorder: OnceLock::new(),
            driver: OnceLock::new(),
            rings_are_light: count == 1 && asymmetric::heavy(),
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
            process: Process::this(),
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
        self.process.must_be_this();
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
            let shared = self.weak();
            made.idle_if(move || shared.upgrade().is_none_or(|shared| shared.is_quiet()));
            made
        }))
    }

    /// Whether all workers are idle, and nothing is ready: nothing happens but from outside, or by a timer.
    fn is_quiet(&self) -> bool {
        self.workers
            .iter()
            .all(|worker| self.idle.contains(worker.id))
            && self.levels_queued() == 0
    }

    /// The I/O driver, if anything needed it yet.
    #[inline]
    pub(crate) fn driver_if_made(&self) -> Option<&Arc<Driver>> {
        self.driver.get()
    }

    /// Whether a level has another policy than aging.
    #[inline]
    pub(crate) fn has_queues(&self, level: u8) -> bool {
        self.with_queues >> level & 1 != 0
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
            || self
                .stacks_ringing(level)
                .any(|stack| !stack.ring.is_empty())
    }

    /// As [`Shared::is_queued`], of what any worker may take: a ring's only entry is its owner's for a while.
    pub(crate) fn is_offered(&self, level: u8) -> bool {
        !self.pools[usize::from(level)].is_empty()
            || self.stacks_ringing(level).any(|stack| stack.offers_task())
    }

    /// The stacks at `level` in whose rings something may be.
    fn stacks_ringing(&self, level: u8) -> impl Iterator<Item = &Stack> {
        let groups = self.ringing.at(level, 0);
        groups.flat_map(move |group| self.stacks_in(group, level))
    }

    /// The stacks at `level` that hold a worker of this group, or held it last.
    pub(crate) fn stacks_in(&self, group: usize, level: u8) -> impl Iterator<Item = &Stack> {
        let members = &self.workers[self.ringing.members(group)];
        let holders = members.iter().filter_map(|worker| self.holder(worker));
        holders.filter(move |stack| stack.level() == level)
    }

    /// A stack that holds `worker` has something of `level` in its ring. Ends with a full barrier.
    #[inline]
    pub(crate) fn announce_ring(&self, worker: &Worker, level: u8) {
        chaos::delay();
        fence(Ordering::SeqCst);
        self.ringing.show(level, worker.id);
        self.ready.announce_in_order(level);
    }

    /// The stack that holds a worker, or held it last.
    pub(crate) fn holder(&self, worker: &Worker) -> Option<&Stack> {
        // SAFETY: the thread table keeps every stack until the runtime is gone.
        unsafe { worker.holder().as_ref() }
    }

    /// Starts an idle worker for what is ready if there is one, and it is not in reserve, else sees to it that the busy
    /// ones check in.
    pub(crate) fn start_idle(&self) {
        let claimed = if self.centre.waits() {
            self.claim_for(self.ready.levels())
        } else if self.idle.is_any_hungry() {
            self.claim_idle()
        } else {
            None
        };
        let served = || {
            let is_due = self.overrunning.any();
            self.revoke_overrun(is_due.then(|| self.most_urgent_queued()).flatten()?)
        };
        match claimed.or_else(served) {
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
        if self.threads.are_brought() {
            self.nudge_for_personal();
        }
    }

    /// As [`Shared::release`], and looks once more: no worker is idle while anything is ready.
    pub(crate) fn release_and_look(&self, me: &Stack, worker: &Worker) {
        self.release(worker);
        self.look_for_personal(worker);
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
