//! What a program has: pools, the word that says which of them have work, levels, tasks, accounts, limits.
//!
//! A job runs on the workers of a core set (`core.rs`), which other jobs may share. All that is said here of workers is
//! said of the workers that serve this job at the time: they are alerted, asked for forks, stolen from, relieved. Idle
//! workers are the core set's, and any job may claim one.
//!
//! What can be said of one part of a job is said by the type of that part: its pools (`order/pools.rs`), what its
//! workers note (`order/notes.rs`), their seats (`share/seats.rs`), how it stands with the core set's policy
//! (`cores/standing.rs`), its tasks (`doors/shutdown.rs`), pinned forks (`forks/pinned.rs`). A method of `Job` needs
//! several parts, or the workers. These methods are spread over the files that say what is done: how ready work gets in
//! (`insert.rs`), how a worker finds it (`find.rs`), and so on.

use super::{
    core::Core,
    cores::Standing,
    doors::capacities::Capacities,
    order::{notes::Notes, pool::Pool, pools::Pools},
    stack::Stack,
    worker::{NO_LEVEL, Worker},
};
use crate::sys::primitives::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::{
    account::{counters::LevelCounters, shown::Shown},
    protocol::{
        crew::Crew, groups::Groups, idle::Searchers, poll_mode::look_period, served::Served,
    },
    rank::LevelTable,
    sys::{clock, mutex::Mutex},
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
    pub(super) standing: Standing,
    pub(crate) searchers: Searchers,
    pub(super) wake_ups: super::forks::held_back::WakeUps,
    pub(crate) crew: CachePadded<Crew>,
    pub(crate) pools: Pools,
    pub(super) notes: Notes,
    /// For each worker its levels, and its sleep.
    pub(super) shown: Shown,
    pub(crate) levels: LevelTable,
    pub(crate) tasks: super::doors::shutdown::Tasks,
    pub(crate) pinned: super::forks::pinned::Pinned,
    pub(crate) externals: super::switch::external::ExternalThreads,
    /// How many stacks wait to go on in the middle of a task's poll.
    pub(super) abandoned_polls: AtomicUsize,
    /// Has the thread that decides whether a long stack leaves its worker to an equal (`rescue/turns.rs`, rule 6).
    pub(super) begins_long: Mutex<()>,
    /// How many `Runtime`s there are; the last one that goes ends everything.
    pub(crate) handles: AtomicUsize,
    /// What an embedder keeps here; see [`crate::embed`].
    pub(crate) attachment: OnceLock<Weak<dyn Any + Send + Sync>>,
    pub(crate) overrunning: super::rescue::overrunning::Overrunning,
    /// When relief is to look for hidden forks, in ticks; 0 if it need not (`rescue/hidden.rs`).
    pub(super) hidden_look: AtomicU64,
    pub(crate) served: Served,
    /// The workers that may serve a level.
    pub(crate) serving: Groups,
    /// Whether stacks above some worker were not asked for forks since the last expiry of the relief timer.
    pub(super) unasked: AtomicBool,
    pub(crate) seats: super::share::seats::SeatAssigner,
    /// Set when the job is made, if it records.
    pub(crate) recorder: OnceLock<crate::inherit::record::Recorder>,
    /// How often busy workers look for events, in ticks.
    pub(crate) look_period: u64,
    /// How many workers were left for a thread in the poller to start.
    pub(crate) unstarted: AtomicUsize,
    pub(crate) closing: AtomicBool,
    pub(crate) capacities: Capacities,
    pub(crate) on_panic: PanicPolicy,
    /// A plain thread in `block_on` [lends](Job::lends) its thread.
    pub(super) lends: bool,
    myself: Weak<Job>,
}

impl Job {
    pub(crate) fn new(
        core: Arc<Core>,
        levels: LevelTable,
        (capacities, on_panic): (Capacities, PanicPolicy),
        lends: bool,
        demand: Demand,
        pools: Box<[Pool]>,
    ) -> Arc<Self> {
        let (count, workers) = (levels.len(), core.workers.len());
        let job = Arc::new_cyclic(|myself| Job {
            core,
            standing: Standing::new(demand),
            searchers: Searchers::new(),
            wake_ups: super::forks::held_back::WakeUps::default(),
            crew: CachePadded::new(Crew::new(workers)),
            pools: Pools::new(pools, workers),
            notes: Notes::new(workers, count),
            shown: Shown::new(workers * (count + 1)),
            levels,
            tasks: super::doors::shutdown::Tasks::new(workers),
            pinned: super::forks::pinned::Pinned::new(workers),
            externals: super::switch::external::ExternalThreads::default(),
            abandoned_polls: AtomicUsize::new(0),
            begins_long: Mutex::new(()),
            handles: AtomicUsize::new(0),
            attachment: OnceLock::new(),
            overrunning: super::rescue::overrunning::Overrunning::default(),
            hidden_look: AtomicU64::new(0),
            served: Served::new(),
            serving: Groups::new(count, workers),
            unasked: AtomicBool::new(false),
            seats: super::share::seats::SeatAssigner::new(workers),
            recorder: OnceLock::new(),
            look_period: clock::ticks(look_period(count)),
            unstarted: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            capacities,
            on_panic,
            lends,
            myself: myself.clone(),
        });
        job.limit_anew();
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
        self.standing.begin_anew();
        self.tasks.live.reopen();
        // The last look may have left it the limit of the job before.
        self.limit_anew();
    }

    /// The level of what comes from outside and names none.
    pub(crate) fn least_urgent(&self) -> u8 {
        self.levels.len() as u8 - 1
    }

    /// What a worker did at a level of this job.
    #[inline]
    pub(crate) fn at(&self, worker: &Worker, level: u8) -> &LevelCounters {
        &self.notes.at(worker, level).did
    }

    /// What a worker did at each level of this job.
    pub(crate) fn account_of(&self, worker: &Worker) -> impl Iterator<Item = &LevelCounters> {
        self.notes.of(worker)
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

    /// How long the oldest entry at a level has waited at most, in ticks; `None` if nothing waits.
    pub(crate) fn oldest_wait(&self, level: u8) -> Option<u64> {
        if self.pools.has_queues(level) && !self.core.process.is_this() {
            // Each queue has a lock.
            return None;
        }
        let in_rings = self.stacks_at(level).map(|stack| stack.ring.oldest());
        let oldest = in_rings.chain([self.pools.oldest(level)]).min()?;
        (oldest != u64::MAX).then(|| clock::now().saturating_sub(oldest))
    }

    /// How many entries wait at a level.
    pub(crate) fn queued(&self, level: u8) -> usize {
        let in_rings = self.stacks_at(level).map(|stack| stack.ring.len());
        self.pools.at(level).len() + in_rings.sum::<usize>()
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
        !self.pools.is_empty(level)
            || self
                .stacks_ringing(level)
                .any(|stack| !stack.ring.is_empty())
    }

    /// As [`Job::is_queued`], of what any worker may take: a ring's only entry is its owner's for a while.
    pub(crate) fn is_offered(&self, level: u8) -> bool {
        !self.pools.is_empty(level) || self.stacks_ringing(level).any(|stack| stack.offers_task())
    }

    /// Where something goes that arrives on the calling thread.
    #[inline]
    pub(super) fn shard_for(&self, arrival: Arrival) -> usize {
        if self.pools.has_shards() {
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
                Some(self.pools.shard_of(me.worker()))
            })
        };
        let own = if is_of_worker { own() } else { None };
        own.unwrap_or_else(|| self.pools.any_shard())
    }

    /// The stacks at `level` in whose rings something may be.
    fn stacks_ringing(&self, level: u8) -> impl Iterator<Item = &Stack> {
        let groups = self.pools.ringing.at(level, 0);
        groups.flat_map(move |group| self.stacks_in(group, level))
    }

    /// The stacks at `level` that hold a worker of this group, or held it last.
    pub(crate) fn stacks_in(&self, group: usize, level: u8) -> impl Iterator<Item = &Stack> {
        let members = &self.core.workers[self.pools.ringing.members(group)];
        let holders = members.iter().filter_map(|worker| self.core.holder(worker));
        holders.filter(move |stack| stack.is_of(self) && stack.level() == level)
    }

    /// Whether work is ready for which `worker` leaves `level`: more urgent work, unless it is in a round.
    #[inline]
    pub(crate) fn is_drawn(&self, worker: &Worker, level: u8) -> bool {
        self.drawn_by(worker, level).is_some()
    }

    /// The level for which a worker would leave `level` now.
    #[inline]
    pub(crate) fn drawn_by(&self, worker: &Worker, level: u8) -> Option<u8> {
        if !self.pools.are_several() {
            return None;
        }
        self.drawn_by_any(worker, level)
    }

    /// [`Job::drawn_by`] where there are several levels: most runtimes have one, and each dispatch asks.
    fn drawn_by_any(&self, worker: &Worker, level: u8) -> Option<u8> {
        let levels = self.pools.ready.levels_in_order();
        self.seats.of(worker).abandon_for(levels, level)
    }
}

impl Drop for Job {
    /// The last reference may be a thread's that is inside the scheduler, and some of what goes with the job is code of
    /// the program.
    fn drop(&mut self) {
        self.core.forget_ended();
        let (pools, on_panic) = (self.pools.take(), mem::take(&mut self.on_panic));
        Stack::outside_scheduler(|| {
            drop(pools);
            contained(|| drop(on_panic));
        });
    }
}
