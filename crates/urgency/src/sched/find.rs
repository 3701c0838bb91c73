//! How a worker finds its next work, and what it does when there is none.
//!
//! 1. The level policy picks a level from the bitfield, the pool gives its oldest entry; stale entries
//!    are dropped on the way; a pool found empty has its bit cleared (with the second look).
//! 2. Nothing ready: the worker becomes a *searcher*. It asks every running stack to share jobs, looks at
//!    the poller without waiting, and keeps looking for a while (see `Patience`). At most one searcher
//!    spins: a second one would only take the caches from the first.
//! 3. Then it becomes idle, asks once more, and looks once more (the protocol of `Idle`), behind a barrier
//!    for the deques. A stack that did not answer sits in a long leaf: the worker comes back and takes
//!    from it what is private (`Deque::steal` with `raise`). So no job stays hidden while a worker sleeps,
//!    and every running stack keeps its SHARE request: the next job that is forked wakes a worker.

use super::{
    StolenJob, Work,
    attention::SHARE,
    pool::Entry,
    queues::Queues,
    shared::Shared,
    stack::Stack,
    worker::{NO_LEVEL, Worker},
};
use crate::{
    chaos,
    fork::{deque::Stolen, fence, job::Job},
    os::clock,
    task::TaskRef,
};
use std::{
    hint,
    ptr::{self, NonNull},
    sync::{Arc, atomic::Ordering},
};
use urgency_policy::{
    level::{LevelPolicy, Prompt},
    pool::Arrival,
};

/// A worker looks into the rings of all workers once in this time, in nanoseconds, and takes a task that has waited
/// for so much longer than its own. Each look takes half a dozen cache lines from their owners: at every 16th
/// turn and for any difference, it doubled the cost of a yield.
pub(crate) const AGE_GAP: f64 = 50_000.0;

/// Every so many turns a worker asks whether that time has passed.
const LOOK_AROUND: u32 = 64;

/// A turn of the search loop that took this long, in nanoseconds: another thread wanted the processor.
const PREEMPTED: f64 = 5_000.0;

/// How many turns of the search loop pass between two rounds of requests.
const TURNS_PER_ROUND: u32 = 64;

/// What became of a level's bit.
enum Cleared {
    /// Something had slipped in; look again.
    Hidden,
    /// There is nothing, or nothing that this worker may take.
    Fruitless,
}

impl Shared {
    /// The oldest ready work of the level that the policy picks, if there is any.
    #[inline]
    pub(crate) fn next_ready(&self, me: &Stack, worker: &Worker) -> Option<Work> {
        let (mut fruitless, mut hidden) = (0, false);
        loop {
            let level = worker.seat().serve(self.ready.levels() & !fruitless)?;
            if let Some(work) = self.next_at(me, worker, level) {
                if hidden {
                    self.show_hidden();
                }
                return Some(work);
            }
            match self.clear(level) {
                Cleared::Hidden => hidden = true,
                Cleared::Fruitless => fruitless |= 1 << level,
            }
        }
    }

    /// Nothing could be taken at `level`. If something has slipped in, a worker that went idle meanwhile, a
    /// stack that went to user code or an expiry of relief may have looked in vain at the cleared bit.
    fn clear(&self, level: u8) -> Cleared {
        let is_empty = self.ready.clear(level, || !self.is_queued(level));
        if self.is_offered(level) {
            return Cleared::Hidden;
        }
        if !is_empty {
            self.watch_queued();
        }
        Cleared::Fruitless
    }

    /// Work was taken that had been hidden under a cleared bit; there may be more.
    #[cold]
    fn show_hidden(&self) {
        match self.most_urgent_offered() {
            Some(level) => self.rest_inserted(level),
            None => self.watch_queued(),
        }
    }

    /// The usual case of a worker that is busy with tasks, in registers: its own ring has what is next.
    #[inline]
    pub(crate) fn next_in_own_ring(&self, me: &Stack, worker: &Worker) -> Option<TaskRef> {
        let level = worker.seat().serve(self.ready.levels())?;
        if level != me.level()
            || worker.turn().wrapping_add(1).is_multiple_of(LOOK_AROUND)
            || self.has_personal(me, worker)
            || !self.pools[usize::from(level)].is_younger_than(me.ring.oldest())
        {
            return None;
        }
        let task = pop_ring(me)?;
        worker.next_turn();
        self.wake_next();
        Some(task)
    }

    /// The next work of one level: the pool's mugging queue, then the older one of pool and own ring, then
    /// the rings of others.
    #[inline]
    fn next_at(&self, me: &Stack, worker: &Worker, level: u8) -> Option<Work> {
        let pool = &self.pools[usize::from(level)];
        if let Some(queues) = pool.queues() {
            return self.next_in_queues(worker, level, queues);
        }
        if worker.next_turn().is_multiple_of(LOOK_AROUND)
            && worker.is_look_around_due(clock::ticks(AGE_GAP))
            && let Some(task) = self.oldest_in_rings(me, level, clock::ticks(AGE_GAP))
        {
            return Some(Work::Task(task));
        }
        let has_ring = me.level() == level;
        if has_ring
            && pool.is_younger_than(me.ring.oldest())
            && let Some(task) = pop_ring(me)
        {
            return Some(Work::Task(task));
        }
        while let Some((entry, mugged)) = pool.pop() {
            if let Some(work) = self.claim_entry(worker, level, entry, mugged) {
                return Some(work);
            }
        }
        if has_ring && let Some(task) = pop_ring(me) {
            return Some(Work::Task(task));
        }
        self.oldest_in_rings(me, level, 0).map(Work::Task)
    }

    /// As [`Shared::next_at`], under another policy than aging.
    #[cold]
    fn next_in_queues(&self, worker: &Worker, level: u8, queues: &Queues) -> Option<Work> {
        worker.next_turn();
        loop {
            let (entry, mugged) = queues.pop(worker.id, || self.ready.announce(level))?;
            if let Some(work) = self.claim_entry(worker, level, entry, mugged) {
                return Some(work);
            }
        }
    }

    /// Takes from the ring with the oldest head, of those at `level`, if it is older than the pool, and on
    /// offer. Another stack's head must be older by `gap` ticks than the own one.
    #[cold]
    fn oldest_in_rings(&self, me: &Stack, level: u8, gap: u64) -> Option<TaskRef> {
        let age = |stack: &&Stack| {
            let since = stack.ring.oldest();
            if ptr::eq(*stack, me) {
                since
            } else {
                since.saturating_add(gap)
            }
        };
        let oldest = self
            .stacks_at(level)
            .filter(|stack| ptr::eq(*stack, me) || stack.offers_task())
            .min_by_key(age)?;
        let pool = &self.pools[usize::from(level)];
        if pool.is_younger_than(oldest.ring.oldest()) {
            pop_ring(oldest)
        } else {
            None
        }
    }

    /// Work for which the worker leaves `level`, if there is any.
    pub(crate) fn next_above(&self, me: &Stack, level: u8) -> Option<Work> {
        let worker = me.worker();
        if !self.is_drawn(worker, level) {
            return None;
        }
        let (mut fruitless, mut hidden) = (0, false);
        loop {
            let levels = self.ready.levels() & !fruitless;
            let above = worker.seat().abandon_for(levels, level)?;
            if let Some(work) = self.next_at(me, worker, above) {
                if hidden {
                    self.show_hidden();
                }
                return Some(work);
            }
            match self.clear(above) {
                Cleared::Hidden => hidden = true,
                Cleared::Fruitless => fruitless |= 1 << above,
            }
        }
    }

    /// An entry is a hint: finds out whether it still stands for work, and takes that.
    fn claim_entry(&self, worker: &Worker, level: u8, entry: Entry, mugged: bool) -> Option<Work> {
        match entry {
            Entry::Task(task) => Some(Work::Task(task)),
            Entry::Stack(stack) => {
                if !stack.suspension.claim() {
                    return None;
                }
                if mugged {
                    worker.at(level).mugs.add(1);
                }
                Some(Work::Resume(stack))
            }
            Entry::Deque(stack) => self.steal_from_pool(worker, level, &stack),
            Entry::Job(job) => Some(Work::Job(job)),
        }
    }

    /// Takes the oldest job of a deque from the pool; the deque goes to the tail if it has more.
    fn steal_from_pool(&self, worker: &Worker, level: u8, stack: &Arc<Stack>) -> Option<Work> {
        stack.queued.fetch_and(!(1 << level), Ordering::SeqCst);
        chaos::delay();
        // Asked under the deque's lock: while a job lies there, its level is the stack's. The entry may be of
        // a time when the stack ran something else.
        let admit = || stack.level() == level;
        let (stolen, inherited) = stack.steal(false, admit);
        match stolen {
            Stolen::Job(job, more) => {
                if more {
                    self.insert_deque(stack);
                }
                worker.at(level).steals.add(1);
                Some(Work::Job(StolenJob {
                    job,
                    level,
                    inherited,
                }))
            }
            Stolen::Contended | Stolen::Empty => {
                // Its owner or another thief is at it, or its jobs are of another level. Public jobs must
                // stay in a pool.
                if stack.deque.seems_public() {
                    self.insert_deque(stack);
                }
                None
            }
            Stolen::OnlyPrivate => None,
        }
    }

    /// The next work for a worker. `None`: there is none, and the worker was released.
    pub(crate) fn find(&self, me: &Stack, worker: &Worker) -> Option<Work> {
        if let Some(job) = self.personal_job(me, worker) {
            return Some(Work::Job(job));
        }
        if let Some(work) = self.next_ready(me, worker) {
            self.wake_next();
            return Some(work);
        }
        self.find_cold(me, worker)
    }

    #[cold]
    fn find_cold(&self, me: &Stack, worker: &Worker) -> Option<Work> {
        worker.counters.scheduling.add(worker.lap());
        worker.set_level(NO_LEVEL);
        let mut raise = false;
        loop {
            if self.centre.waits() {
                // Tasks of a level that the seat does not serve.
                self.flush_ring(me);
            }
            self.idle.start_search();
            let found = self.search(me, worker, raise);
            let ticks = worker.lap();
            worker.counters.searching.add(ticks);
            if found.is_some() {
                self.idle.stop_search();
                self.threads.patience.learn(ticks);
                self.wake_next();
                self.watch_the_rest();
                return found;
            }
            // In this order: whoever looks for somebody hungry sees a searcher or an idle worker.
            self.release(worker);
            self.idle.stop_search();
            if !self.is_anything_left(me, worker) && !self.has_personal(me, worker) {
                return None;
            }
            raise = true;
            let claimed = if self.centre.waits() {
                // Another one may have another seat.
                self.idle.claim_exactly(worker.id).then_some(worker.id)
            } else {
                self.idle.claim(worker.id)
            };
            let Some(id) = claimed else {
                // Whoever took it may have taken it for something else than what insertions left to this
                // searcher.
                self.arm_relief();
                return None;
            };
            if id != worker.id {
                // Somebody started our worker already; what we got instead is as good.
                self.start(&self.workers[id]);
                return None;
            }
            // Somebody may have had it meanwhile. A stack that runs and is not its worker's holder is asked for
            // nothing, and what is in its ring is lost.
            me.hold(worker);
        }
    }

    /// While a worker searched, insertions left everything to it, the relief timer included; it took one
    /// entry. A worker that was started took one, too: it is the next in a chain of wake-ups that such a
    /// searcher began, and if no worker is idle, the last.
    pub(crate) fn watch_the_rest(&self) {
        if self.centre.waits() {
            self.watch_queued();
            self.arm_for_quantum();
        } else if !self.idle.any() {
            self.watch_queued();
        }
    }

    /// Arms the relief timer if anything is queued.
    pub(crate) fn watch_queued(&self) {
        if !self.threads.relief_armed() && self.most_urgent_queued().is_some() {
            self.arm_relief();
        }
    }

    /// The look after a release: whoever made work ready before it saw no idle worker. Looks for hidden
    /// jobs as well, behind a barrier: an owner that forked before it could see our request shows its job
    /// to this look, one that forks later sees the request.
    pub(crate) fn is_anything_left(&self, me: &Stack, worker: &Worker) -> bool {
        if self.centre.waits() {
            return self.is_anything_left_to(me, worker);
        }
        if self.ready.levels_after_writes() != 0 {
            if self.most_urgent_offered().is_some() {
                return true;
            }
            // What a poll woke is still its owner's, unless that poll is long.
            self.watch_queued();
        }
        if self.running_besides(me).next().is_none() {
            return false;
        }
        self.ask_for_jobs(me, worker);
        fence::heavy();
        self.running_besides(me)
            .any(|stack| !stack.deque.seems_empty())
    }

    /// There may be more work than the caller took: a woken worker wakes the next.
    #[inline]
    pub(crate) fn wake_next(&self) {
        if self.idle.any()
            && (self.idle.searchers() == 0 || self.centre.waits())
            && self.is_offered_to_idle()
        {
            self.start_idle();
        }
    }

    /// The most urgent level at which anything is ready.
    pub(crate) fn most_urgent_queued(&self) -> Option<u8> {
        self.most_urgent_of(|level| self.is_queued(level))
    }

    /// The most urgent level at which any worker may take something.
    pub(crate) fn most_urgent_offered(&self) -> Option<u8> {
        self.most_urgent_of(|level| self.is_offered(level))
    }

    fn most_urgent_of(&self, has_work: impl Fn(u8) -> bool) -> Option<u8> {
        let mut levels = self.ready.levels_after_writes();
        while let Some(level) = Prompt.serve(levels) {
            if has_work(level) {
                return Some(level);
            }
            levels &= levels - 1;
        }
        None
    }

    /// Step 2 of the module's text; with `raise`, hidden jobs first.
    fn search(&self, me: &Stack, worker: &Worker, raise: bool) -> Option<Work> {
        if raise && let Some(work) = self.steal_hidden(me, worker) {
            return Some(work);
        }
        self.ask_for_jobs(me, worker);
        self.look();
        let spins = self.idle.searchers() == 1 && !self.closing.load(Ordering::Relaxed);
        let end = clock::now()
            + if spins {
                chaos::patience(self.threads.patience.ticks())
            } else {
                0
            };
        let mut turn = 0u32;
        let mut now = clock::now();
        loop {
            if self.ready.levels() != 0
                && let Some(work) = self.next_ready(me, worker)
            {
                return Some(work);
            }
            if let Some(job) = self.personal_job(me, worker) {
                return Some(Work::Job(job));
            }
            if let Some(work) = self.steal_published(me, worker) {
                return Some(work);
            }
            // Somebody who clears the level's bit hides it for a moment, in which he may lose his processor.
            // Nobody else looks into this ring once the worker is released and has another holder.
            if let Some(task) = pop_ring(me) {
                return Some(Work::Task(task));
            }
            turn += 1;
            if turn.is_multiple_of(TURNS_PER_ROUND) {
                self.ask_for_jobs(me, worker);
                self.look();
                now = clock::now();
            }
            let before = std::mem::replace(&mut now, clock::now());
            if now - before > clock::ticks(PREEMPTED) {
                self.threads.patience.lose();
                return None;
            }
            if now >= end {
                return None;
            }
            hint::spin_loop();
        }
    }

    /// A job that a running stack has just published: its entry in the pool follows, but a searcher need
    /// not wait for it.
    fn steal_published(&self, me: &Stack, worker: &Worker) -> Option<Work> {
        self.running_besides(me)
            .filter(|stack| serves(worker, stack) && stack.deque.seems_public())
            .find_map(|stack| self.steal_from_running(worker, stack, false))
    }

    /// The stacks that run user code, other than `me`.
    pub(crate) fn running_besides<'a>(&'a self, me: &'a Stack) -> impl Iterator<Item = &'a Stack> {
        let busy = self.workers.iter().filter(|w| w.level() != NO_LEVEL);
        let stacks = busy.filter_map(|w| self.holder(w));
        stacks.filter(move |stack| !ptr::eq(*stack, me))
    }

    fn steal_from_running(&self, worker: &Worker, stack: &Stack, raise: bool) -> Option<Work> {
        let mut level = NO_LEVEL;
        // As in `steal_from_pool`.
        let admit = || {
            level = stack.level();
            true
        };
        let (Stolen::Job(job, more), inherited) = stack.steal(raise, admit) else {
            return None;
        };
        if more {
            self.insert_deque(stack);
        }
        if raise {
            worker.at(level).raises.add(1);
            // Only half was raised, and its owner will not say that there is more.
            if !stack.deque.seems_empty() && self.idle.any() {
                self.start_idle_for(1 << level);
            }
        }
        worker.at(level).steals.add(1);
        Some(Work::Job(StolenJob {
            job,
            level,
            inherited,
        }))
    }

    /// A job that its owner does not publish: it sits in a long leaf.
    fn steal_hidden(&self, me: &Stack, worker: &Worker) -> Option<Work> {
        self.running_besides(me)
            .filter(|stack| serves(worker, stack) && !stack.deque.seems_empty())
            .find_map(|stack| self.steal_from_running(worker, stack, true))
    }

    /// The scheduling point's answer to hunger. `published`: jobs were made public already.
    pub(crate) fn share(&self, me: &Stack, published: bool) {
        let published = published || me.deque.publish(false);
        if !self.is_anybody_hungry(me.level()) {
            // It was a joiner that wants to leap, or a searcher that found something else. An entry in the pool
            // would be stale when the joiner has leapt, and make it believe that others want its worker. A searcher to
            // come sees public jobs of running stacks without an entry, and a stack that stops makes one.
            return;
        }
        if published {
            self.insert_deque(me);
        } else {
            me.attention.request(SHARE);
        }
    }

    /// The stack gives its worker away: all its jobs become stealable.
    pub(crate) fn share_all(&self, me: &Stack) {
        self.flush_ring(me);
        if me.deque.bottom() != 0 && me.deque.publish(true) {
            self.insert_deque_as(me, Arrival::Suspended);
        }
    }
}

/// Whether the worker would steal from this stack.
fn serves(worker: &Worker, stack: &Stack) -> bool {
    worker.seat().serves_any(1 << stack.level())
}

/// Takes the oldest task out of a stack's ring.
#[inline]
pub(crate) fn pop_ring(stack: &Stack) -> Option<TaskRef> {
    let task = NonNull::new(stack.ring.pop()?).expect("a ring holds tasks");
    // SAFETY: the push left a counted reference in the ring, and each entry is taken once.
    Some(unsafe { TaskRef::from_raw(task) })
}

/// What happens under the deque's lock when a job is stolen.
pub(crate) fn on_steal(job: *const Job) {
    // SAFETY: the job is in the deque, so it is alive, until whoever steals it has run it.
    let kind = unsafe { (*job).kind };
    // SAFETY: as above; `stolen` is called once, by the one steal.
    unsafe { (kind.stolen)(job) };
}
