//! What a program has: pools, the word that says which of them have work, levels, tasks, accounts, limits.
//!
//! A job runs on the workers of a core set (`core.rs`), which other jobs may share. All that is said here of workers is
//! said of the workers that serve this job at the time: they are alerted, asked for forks, stolen from, relieved. Idle
//! workers are the core set's, and any job may claim one.
//!
//! The rest of `Job` is spread over the files that say what is done with it: how ready work gets in
//! (`insert.rs`), how a worker finds it (`find.rs`), and so on.

use super::{
    core::Core,
    doors::capacities::Capacities,
    order::{close_look::CloseLook, pool::Pool},
    poll_context,
    share::seats::Seating,
    stack::Stack,
    worker::{NO_LEVEL, Worker},
};
use crate::sys::primitives::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence,
};
use crate::{
    account::counters::LevelCounters,
    protocol::{
        crew::Crew, fence as asymmetric, groups::Groups, idle::Searchers, pace::Pace,
        poll_mode::look_period, ready::Ready, served::Served,
    },
    rank::LevelTable,
    sys::{chaos, clock, mutex::Mutex},
    tasks::{PanicPolicy, contained},
};
use crossbeam_utils::CachePadded;
use std::{
    any::Any,
    mem,
    sync::{Arc, OnceLock, Weak},
};
use urgency_policy::{cores::Demand, level::LevelPolicy, pool::Arrival};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) core: Arc<Core>,
    /// Tells it apart from all other jobs of the process, and from the earlier ones in its container.
    pub(super) life: AtomicU64,
    pub(crate) ready: Ready,
    pub(crate) searchers: Searchers,
    pub(super) wake_ups: super::forks::held_back::WakeUps,
    pub(crate) crew: CachePadded<Crew>,
    /// How often a worker came from another job.
    pub(super) came: AtomicU64,
    /// What it asks for, of the workers; see `cores`.
    pub(super) demand: Mutex<Demand>,
    /// How often that has changed.
    pub(super) demand_changes: AtomicU64,
    /// How many iterations have ended, and how many of them after their deadlines; see `jobs/iterations.rs`.
    pub(crate) iterations: AtomicU64,
    pub(crate) late: AtomicU64,
    /// How many workers the core set's policy last gave it; `usize::MAX` before, and while it has no work.
    pub(super) entitled: AtomicUsize,
    /// The policy knows that it waits for a worker, and none has come yet.
    pub(super) has_asked: AtomicBool,
    pub(crate) pools: Box<[Pool]>,
    pub(crate) levels: LevelTable,
    pub(crate) tasks: super::doors::shutdown::Tasks,
    pub(crate) pinned: super::forks::pinned::Pinned,
    pub(crate) externals: super::switch::external::ExternalThreads,
    /// How many stacks wait to go on in the middle of a task's poll.
    pub(super) abandoned_polls: AtomicUsize,
    /// How many `Runtime`s there are; the last one that goes ends everything.
    pub(crate) handles: AtomicUsize,
    /// What an embedder keeps here; see [`crate::embed`].
    pub(crate) attachment: OnceLock<Weak<dyn Any + Send + Sync>>,
    pub(crate) overrunning: super::rescue::overrunning::Overrunning,
    pub(crate) served: Served,
    /// The workers that may serve a level.
    pub(crate) serving: Groups,
    /// Whether stacks above some worker were not asked for forks since the last expiry of the relief timer.
    pub(super) unasked: AtomicBool,
    /// The workers whose stacks may have tasks of a level in their rings; the groups whose shards may have something.
    pub(crate) ringing: Groups,
    /// The groups that have something on offer; see `close_look.rs`. `None` where that is not worth a word.
    pub(super) offering: Option<Groups>,
    pub(crate) seats: super::share::seats::SeatAssigner,
    /// What each worker is to serve here.
    pub(super) seatings: Box<[CachePadded<Seating>]>,
    /// How many shards a pool has.
    shards: usize,
    /// Of each worker at each level here; all levels of one worker follow each other.
    accounts: Box<[CachePadded<AtLevel>]>,
    /// Set when the job is made, if it records.
    pub(crate) recorder: OnceLock<crate::inherit::record::Recorder>,
    /// How often busy workers look for events, in ticks.
    pub(crate) look_period: u64,
    /// Whether an entry in a ring needs no barrier; see `insert.rs`.
    pub(crate) rings_are_light: bool,
    /// The levels with another order than aging.
    with_queues: u64,
    /// How many workers were left for a thread in the poller to start.
    pub(crate) unstarted: AtomicUsize,
    pub(crate) closing: AtomicBool,
    pub(crate) capacities: Capacities,
    pub(crate) on_panic: PanicPolicy,
    /// The least urgent level whose tasks are admitted; see `shutdown`.
    pub(crate) least_admitted: AtomicU8,
    myself: Weak<Job>,
}

/// What a worker notes of one level, on cache lines that it writes at every dispatch.
#[derive(Debug, Default)]
struct AtLevel {
    pace: Pace,
    close_look: CloseLook,
    did: LevelCounters,
}

fn next_life() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

impl Job {
    pub(crate) fn new(
        core: Arc<Core>,
        levels: LevelTable,
        (capacities, on_panic): (Capacities, PanicPolicy),
        demand: Demand,
        pools: Box<[Pool]>,
    ) -> Arc<Self> {
        let (count, workers) = (levels.len(), core.workers.len());
        let ringing = Groups::new(count, workers);
        let job = Arc::new_cyclic(|myself| Job {
            core,
            life: AtomicU64::new(next_life()),
            ready: Ready::new(),
            searchers: Searchers::new(),
            wake_ups: super::forks::held_back::WakeUps::default(),
            crew: CachePadded::new(Crew::new(workers)),
            came: AtomicU64::new(0),
            demand: Mutex::new(demand),
            demand_changes: AtomicU64::new(0),
            iterations: AtomicU64::new(0),
            late: AtomicU64::new(0),
            entitled: AtomicUsize::new(usize::MAX),
            has_asked: AtomicBool::new(false),
            with_queues: (0..count).fold(0, |levels, level| {
                levels | u64::from(pools[level].queues().is_some()) << level
            }),
            shards: pools.first().map_or(1, Pool::shards),
            pools,
            levels,
            tasks: super::doors::shutdown::Tasks::new(workers),
            pinned: super::forks::pinned::Pinned::new(workers),
            externals: super::switch::external::ExternalThreads::default(),
            abandoned_polls: AtomicUsize::new(0),
            handles: AtomicUsize::new(0),
            attachment: OnceLock::new(),
            overrunning: super::rescue::overrunning::Overrunning::default(),
            served: Served::new(),
            serving: Groups::new(count, workers),
            unasked: AtomicBool::new(false),
            offering: (count > 1 && !ringing.is_one()).then(|| Groups::new(count, workers)),
            ringing,
            seats: super::share::seats::SeatAssigner::default(),
            seatings: (0..workers).map(|_| CachePadded::default()).collect(),
            accounts: (0..workers * count)
                .map(|_| CachePadded::default())
                .collect(),
            recorder: OnceLock::new(),
            look_period: clock::ticks(look_period(count)),
            rings_are_light: count == 1 && asymmetric::heavy(),
            unstarted: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            capacities,
            on_panic,
            least_admitted: AtomicU8::new(u8::MAX),
            myself: myself.clone(),
        });
        job.core.sharing.limit(&job, demand.max_cores);
        job.core.enters(&job);
        job
    }

    pub(crate) fn arc(&self) -> Arc<Job> {
        self.myself
            .upgrade()
            .expect("the caller of a method of a job keeps it alive")
    }

    /// Whether nothing but the caller keeps the job, and no code has changed it for good: another program may have it.
    pub(crate) fn is_unused(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.tasks.live.len() == 0 && !self.is_spoilt()
    }

    /// Whether code has changed the job for good: no other program may ever have it.
    pub(crate) fn is_spoilt(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
            || self.attachment.get().is_some()
            || self.recorder.get().is_some()
    }

    /// Another program has the job from now on: to the core set's policy it is another job.
    pub(crate) fn begin_anew(&self) {
        self.life.store(next_life(), Ordering::Relaxed);
        self.entitled.store(usize::MAX, Ordering::Relaxed);
        // The last look may have left it the limit of the job before.
        self.limit_to_demand();
        self.may_ask_again();
        self.tasks.live.reopen();
    }

    /// The level of what comes from outside and names none.
    pub(crate) fn least_urgent(&self) -> u8 {
        self.levels.len() as u8 - 1
    }

    /// What a worker did at a level of this job.
    #[inline]
    pub(crate) fn at(&self, worker: &Worker, level: u8) -> &LevelCounters {
        &self.noted(worker, level).did
    }

    /// By how much a worker overtakes at a level of this job.
    #[inline]
    pub(super) fn pace(&self, worker: &Worker, level: u8) -> &Pace {
        &self.noted(worker, level).pace
    }

    /// When a worker looked closely at a level of this job.
    pub(super) fn close_look(&self, worker: &Worker, level: u8) -> &CloseLook {
        &self.noted(worker, level).close_look
    }

    #[inline]
    fn noted(&self, worker: &Worker, level: u8) -> &AtLevel {
        &self.accounts[worker.id * self.pools.len() + usize::from(level)]
    }

    /// What a worker did at each level of this job.
    pub(crate) fn account_of(&self, worker: &Worker) -> impl Iterator<Item = &LevelCounters> {
        let levels = self.pools.len();
        let account = &self.accounts[worker.id * levels..][..levels];
        account.iter().map(|noted| &noted.did)
    }

    /// The workers that serve this job, at the moment of the look.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &Worker> {
        let workers = self.core.workers.iter().map(|worker| &**worker);
        workers.filter(|worker| worker.is_of(self))
    }

    /// How long a worker has run a level until `now`, in ticks.
    pub(crate) fn run_ticks_of(&self, worker: &Worker, level: u8, now: u64) -> u64 {
        let open = self.open_span(worker, now);
        let open = open.filter(|(its, _)| *its == level);
        self.at(worker, level).running.get() + open.map_or(0, |(_, ticks)| ticks)
    }

    /// What a worker runs of the job now: the level, and for how long until `now`, in ticks.
    fn open_span(&self, worker: &Worker, now: u64) -> Option<(u8, u64)> {
        let level = worker.level_in(self);
        (level != NO_LEVEL).then(|| (level, now.saturating_sub(worker.since())))
    }

    /// What the workers run of the job now: the worker, the level, and for how long until `now`, in ticks.
    pub(crate) fn open_spans(&self, now: u64) -> Vec<(usize, usize, u64)> {
        let span = |worker: &Worker| {
            let (level, ticks) = self.open_span(worker, now)?;
            Some((worker.id, usize::from(level), ticks))
        };
        self.core.workers.iter().filter_map(|w| span(w)).collect()
    }

    /// The worker comes to the scheduler from `serves`, or goes there and nothing is more urgent. Returns for how long
    /// more urgent work has wanted it, in ticks.
    #[inline]
    pub(crate) fn no_longer_wanted(&self, worker: &Worker, serves: u8, now: u64) -> u64 {
        worker.no_longer_wanted(|| self.seat(worker), serves, now)
    }

    /// Whether a level has another order than aging.
    #[inline]
    pub(crate) fn has_queues(&self, level: u8) -> bool {
        self.with_queues >> level & 1 != 0
    }

    /// How long the oldest entry at a level has waited at most, in ticks; `None` if nothing waits.
    pub(crate) fn oldest_wait(&self, level: usize) -> Option<u64> {
        if self.has_queues(level as u8) && !self.core.process.is_this() {
            // Each queue has a lock.
            return None;
        }
        let in_rings = self.stacks_at(level as u8).map(|stack| stack.ring.oldest());
        let oldest = in_rings.chain([self.pools[level].oldest()]).min()?;
        (oldest != u64::MAX).then(|| clock::now().saturating_sub(oldest))
    }

    /// How many entries wait at a level.
    pub(crate) fn queued(&self, level: usize) -> usize {
        let in_rings = self.stacks_at(level as u8).map(|stack| stack.ring.len());
        self.pools[level].len() + in_rings.sum::<usize>()
    }

    /// The stacks of this job at `level` that hold a worker, or held it last: their rings count.
    pub(crate) fn stacks_at(&self, level: u8) -> impl Iterator<Item = &Stack> {
        let holders = self
            .core
            .workers
            .iter()
            .filter_map(|worker| self.core.holder(worker));
        holders.filter(move |stack| stack.is_of(self) && stack.level() == level)
    }

    /// Whether anything is ready at `level`: in its pool, or in the ring of a stack that holds a worker.
    pub(crate) fn is_queued(&self, level: u8) -> bool {
        !self.is_pool_empty(level)
            || self
                .stacks_ringing(level)
                .any(|stack| !stack.ring.is_empty())
    }

    /// As [`Job::is_queued`], of what any worker may take: a ring's only entry is its owner's for a while.
    pub(crate) fn is_offered(&self, level: u8) -> bool {
        !self.is_pool_empty(level) || self.stacks_ringing(level).any(|stack| stack.offers_task())
    }

    /// Whether no shard of a level's pool has anything.
    pub(crate) fn is_pool_empty(&self, level: u8) -> bool {
        let pool = &self.pools[usize::from(level)];
        let is_in_others = || {
            let mut groups = self.ringing.at(level, 0);
            groups.any(|group| pool.is_in_other(group))
        };
        pool.is_first_empty() && !(self.has_shards() && is_in_others())
    }

    /// Whether pools are in shards.
    #[inline]
    pub(super) fn has_shards(&self) -> bool {
        self.shards > 1
    }

    /// The shard of a worker's group.
    #[inline]
    pub(super) fn shard_of(&self, worker: &Worker) -> usize {
        if self.has_shards() {
            self.ringing.group_of(worker.id) % self.shards
        } else {
            0
        }
    }

    /// Where something goes that arrives on the calling thread.
    #[inline]
    pub(super) fn shard_for(&self, arrival: Arrival) -> usize {
        if self.has_shards() {
            self.one_of_shards(arrival)
        } else {
            0
        }
    }

    #[inline(never)]
    fn one_of_shards(&self, arrival: Arrival) -> usize {
        let is_of_worker = matches!(
            arrival,
            Arrival::Abandoned | Arrival::PublicForks | Arrival::Suspended
        );
        let own = || {
            Stack::with_current(|me| {
                let me = me.filter(|me| me.is_of(self))?;
                Some(self.shard_of(me.worker()))
            })
        };
        let own = if is_of_worker { own() } else { None };
        own.unwrap_or_else(|| poll_context::next_turn() as usize % self.shards)
    }

    /// The stacks at `level` in whose rings something may be.
    fn stacks_ringing(&self, level: u8) -> impl Iterator<Item = &Stack> {
        let groups = self.ringing.at(level, 0);
        groups.flat_map(move |group| self.stacks_in(group, level))
    }

    /// The stacks at `level` that hold a worker of this group, or held it last.
    pub(crate) fn stacks_in(&self, group: usize, level: u8) -> impl Iterator<Item = &Stack> {
        let members = &self.core.workers[self.ringing.members(group)];
        let holders = members.iter().filter_map(|worker| self.core.holder(worker));
        holders.filter(move |stack| stack.is_of(self) && stack.level() == level)
    }

    /// The stack, which holds `worker`, has something of `level` in its ring. Ends with a full barrier.
    #[inline]
    pub(crate) fn announce_ring(&self, stack: &Stack, worker: &Worker, level: u8) {
        let group = self.ringing.group_of(worker.id);
        self.announce_group(group, level, || stack.ring.len() > 1);
    }

    /// A group of workers has something of `level` in a ring, or in its shard, and it may be on offer. Ends with a full
    /// barrier.
    #[inline]
    pub(super) fn announce_group(&self, group: usize, level: u8, offers: impl FnOnce() -> bool) {
        chaos::delay();
        fence(Ordering::SeqCst);
        self.ringing.show_group(level, group);
        if let Some(offering) = &self.offering
            && offers()
        {
            offering.show_group(level, group);
        }
        self.ready.announce_in_order(level);
    }

    /// Whether work is ready for which `worker` leaves `level`: more urgent work, unless it is in a round.
    #[inline]
    pub(crate) fn is_drawn(&self, worker: &Worker, level: u8) -> bool {
        self.drawn_by(worker, level).is_some()
    }

    /// The level for which a worker would leave `level` now.
    #[inline]
    pub(crate) fn drawn_by(&self, worker: &Worker, level: u8) -> Option<u8> {
        if self.pools.len() == 1 {
            return None;
        }
        self.drawn_by_any(worker, level)
    }

    /// [`Job::drawn_by`] where there are several levels: most runtimes have one, and each dispatch asks.
    fn drawn_by_any(&self, worker: &Worker, level: u8) -> Option<u8> {
        let levels = self.ready.levels_in_order();
        self.seat(worker).abandon_for(levels, level)
    }
}

impl Drop for Job {
    /// The last reference may be a thread's that is inside the scheduler, and some of what goes with the job is code of
    /// the program.
    fn drop(&mut self) {
        self.core.forget_ended();
        let (pools, on_panic) = (mem::take(&mut self.pools), mem::take(&mut self.on_panic));
        Stack::outside_scheduler(|| {
            drop(pools);
            contained(|| drop(on_panic));
        });
    }
}
