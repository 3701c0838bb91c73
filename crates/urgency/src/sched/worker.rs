//! A worker: the permission to run on one core, with its scheduler state.
//!
//! A worker is not a thread. It is held by at most one stack at a time, or is idle, and it travels: by hand-off through
//! a mailbox, by the idle set, or by being revoked from a stack that does not answer. Its holder may write its
//! counters, `handed` and the job that it serves. So may the thread that has claimed it and not delivered it yet. No
//! memory relies on that: all of it is atomic, or behind a lock for which no two threads ever come at once.
//!
//! # The job that it serves
//!
//! A worker serves one job at a time, and none while it is idle. The thread that claims it from the idle set says which
//! ([`Worker::serve`]); a holder whose job has no work may take it to another. The worker keeps that job alive. What it
//! *shows* of it to other threads is a pointer to compare their own job with ([`Worker::is_of`]), never to follow.
//!
//! What others look at at every insertion lies on cache lines of its own: the holder writes the rest at every
//! dispatch.

mod blocking_calls;
mod brief_turn;
pub(in crate::sched) mod runs;

use super::{job::Job, machine::pins::Pin, stack::Stack};
use crate::account::counters::WorkerCounters;
use crate::protocol::places::Place;
use crate::sys::{
    clock,
    mutex::Mutex,
    primitives::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering,
    },
};
use blocking_calls::BlockingCalls;
use brief_turn::BriefTurn;
use crossbeam_utils::CachePadded;
use runs::{Runs, ShownRuns};
use std::{mem, ptr, sync::Arc};

use urgency_policy::level::Seat;

/// The level of a worker that runs no user code.
pub(crate) const NO_LEVEL: u8 = u8::MAX;

/// The bits of a level in [`Shown::wanted`].
const WANTED_BY: u64 = 63;

/// See the module's text.
pub(crate) struct Worker {
    pub(crate) id: usize,
    /// Where its code runs.
    pub(super) pin: Pin,
    shown: CachePadded<Shown>,
    /// Work that came with a hand-off.
    handed: Mutex<Option<super::Work>>,
    /// The job that it serves.
    job: Mutex<Option<Arc<Job>>>,
    /// The stacks that the worker was revoked from for more urgent work and not restored to: each is more urgent than
    /// the one before.
    revoked_from: Mutex<Vec<Arc<Stack>>>,
    /// Whether there are such stacks, or it has a turn: asked before each piece of work.
    is_to_return: AtomicBool,
    /// Whether brief work goes first; the holder's.
    pub(super) brief_turn: BriefTurn,
    /// How long declared blocking calls last here; the holder's.
    pub(super) blocking_calls: BlockingCalls,
    /// Where it runs, where jobs share workers; the holder's.
    pub(super) place: Place,
    /// Counts looks for work; the holder's.
    turn: AtomicU32,
    /// Counts looks into rings; the holder's.
    look: AtomicU32,
    /// When it looked into the rings of others, in ticks; the holder's.
    looked_around: AtomicU64,
    /// When the current span of running, scheduling, searching or sleeping began, in ticks.
    since: AtomicU64,
    pub(crate) counters: WorkerCounters,
    /// How often others looked at it; see `steps.rs`.
    #[cfg(test)]
    pub(super) looks: AtomicU64,
}

/// What a worker shows to others; seldom written.
struct Shown {
    /// The level it serves, or [`NO_LEVEL`]. Written by the holder; read by threads that look for a worker to alert.
    level: AtomicU8,
    /// The level of the work that it has taken out of a pool and not gone to yet, or [`NO_LEVEL`]; only in
    /// rounds. Written by the holder.
    bound: AtomicU8,
    /// The job that it serves, null while it is idle. Written by the thread that may say which.
    job: AtomicPtr<Job>,
    /// When it was first asked to go to another job, in ticks; 0 if it stays. Written by the core set's policy, and
    /// cleared with the job.
    leaves: AtomicU64,
    /// The stack that holds it (or held it last: a bit set on that stack's word is harmless).
    holder: AtomicPtr<Stack>,
    runs: ShownRuns,
    /// The processor where it became idle last; -1 if unknown. Written by the thread that releases it.
    cpu: AtomicI32,
    /// Its stack may have forks that it has not made public. Written by the holder.
    hides: AtomicBool,
    /// When more urgent work first asked for this worker, in ticks, with the level in place of the lowest
    /// bits; 0 if none does.
    wanted: AtomicU64,
}

debug_struct!(Worker, |it| id: it.id, level: it.level());

impl Worker {
    pub(super) fn new(id: usize, pin: Pin) -> Self {
        Worker {
            id,
            pin,
            shown: CachePadded::new(Shown {
                level: AtomicU8::new(NO_LEVEL),
                bound: AtomicU8::new(NO_LEVEL),
                job: AtomicPtr::new(ptr::null_mut()),
                leaves: AtomicU64::new(0),
                holder: AtomicPtr::new(ptr::null_mut()),
                runs: ShownRuns::default(),
                cpu: AtomicI32::new(-1),
                hides: AtomicBool::new(true),
                wanted: AtomicU64::new(0),
            }),
            handed: Mutex::default(),
            job: Mutex::default(),
            revoked_from: Mutex::default(),
            is_to_return: AtomicBool::new(false),
            brief_turn: BriefTurn::default(),
            blocking_calls: BlockingCalls::default(),
            place: Place::nowhere(),
            turn: AtomicU32::new(0),
            look: AtomicU32::new(0),
            looked_around: AtomicU64::new(0),
            since: AtomicU64::new(clock::now()),
            counters: WorkerCounters::default(),
            #[cfg(test)]
            looks: AtomicU64::new(0),
        }
    }

    /// Whether its code runs on one processor only.
    pub(super) fn is_pinned(&self) -> bool {
        self.pin.is_set()
    }

    /// The level it serves; [`NO_LEVEL`] while it is idle or searching.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.count_look();
        self.shown.level.load(Ordering::SeqCst)
    }

    /// As [`Worker::level`], for its holder.
    #[inline]
    pub(crate) fn announced_level(&self) -> u8 {
        self.shown.level.load(Ordering::Relaxed)
    }

    /// Counts in unit tests only.
    #[inline(always)]
    fn count_look(&self) {
        #[cfg(test)]
        super::tests::steps::count(&self.looks);
    }

    /// The level that it serves in this job, as a set of levels; none while it is idle, searches, or serves another
    /// one.
    pub(crate) fn levels_in(&self, job: &Job) -> u64 {
        1u64.checked_shl(u32::from(self.level_in(job))).unwrap_or(0)
    }

    /// Whether it serves this job.
    #[inline]
    pub(crate) fn is_of(&self, job: &Job) -> bool {
        self.is_at(job)
    }

    /// As [`Worker::is_of`], of a job that may be gone.
    pub(crate) fn is_at(&self, job: *const Job) -> bool {
        ptr::eq(self.shown.job.load(Ordering::SeqCst), job)
    }

    /// Whether it serves a job, and not this one.
    pub(crate) fn is_of_other(&self, job: &Job) -> bool {
        let its = self.shown.job.load(Ordering::SeqCst);
        !its.is_null() && !ptr::eq(its, job)
    }

    /// The level that it serves in this job; [`NO_LEVEL`] while it is idle, searches, or serves another one.
    #[inline]
    pub(crate) fn level_in(&self, job: &Job) -> u8 {
        if self.is_of(job) {
            self.level()
        } else {
            NO_LEVEL
        }
    }

    /// Whether it serves this job and has no work, or serves none.
    pub(crate) fn is_free_for(&self, job: &Job) -> bool {
        let shown = self.shown.job.load(Ordering::SeqCst);
        self.level() == NO_LEVEL && (shown.is_null() || ptr::eq(shown, job))
    }

    /// The worker serves `job` from now on. By its holder, inside the scheduler, or its claimer.
    pub(crate) fn serve(&self, job: &Job) {
        if ptr::eq(self.shown.job.load(Ordering::Relaxed), job) {
            return;
        }
        self.set_level(NO_LEVEL);
        self.shown.bound.store(NO_LEVEL, Ordering::Relaxed);
        self.shown.wanted.store(0, Ordering::Relaxed);
        self.stays();
        self.forget_others(job);
        job.has_back(self);
        job.standing.is_served();
        let new = job.arc();
        self.shown
            .job
            .store(ptr::from_ref(job).cast_mut(), Ordering::SeqCst);
        let old = self.job.lock().replace(new);
        drop(old);
    }

    /// The worker serves nothing: it is about to be idle. The caller keeps the job that it served.
    pub(crate) fn serve_none(&self) {
        self.stays();
        self.shown.job.store(ptr::null_mut(), Ordering::SeqCst);
        let old = self.job.lock().take();
        drop(old);
    }

    /// The worker is to go to another job. Since when it is asked, in ticks.
    pub(crate) fn ask_to_leave(&self, now: u64) -> u64 {
        let leaves = &self.shown.leaves;
        match leaves.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => now,
            Err(since) => since,
        }
    }

    /// Whether it is to go to another job.
    #[inline]
    pub(crate) fn is_to_leave(&self) -> bool {
        self.shown.leaves.load(Ordering::Relaxed) != 0
    }

    /// It is to go nowhere, or has gone there.
    pub(crate) fn stays(&self) {
        self.shown.leaves.store(0, Ordering::Relaxed);
    }

    /// The job that it serves. For its holder, or its claimer.
    pub(crate) fn job(&self) -> Option<Arc<Job>> {
        self.job.lock().clone()
    }

    /// The holder announces which level it serves. Whether this is news.
    #[inline]
    pub(crate) fn set_level(&self, level: u8) -> bool {
        let news = self.shown.level.load(Ordering::Relaxed) != level;
        if news {
            self.shown.level.store(level, Ordering::SeqCst);
        }
        news
    }

    /// The holder has taken work of `level` out of a pool, which may show none any more.
    pub(crate) fn set_bound(&self, level: u8) {
        self.shown.bound.store(level, Ordering::SeqCst);
    }

    /// The holder has announced the level of that work.
    #[inline]
    pub(crate) fn arrived(&self) {
        if self.shown.bound.load(Ordering::Relaxed) != NO_LEVEL {
            self.shown.bound.store(NO_LEVEL, Ordering::SeqCst);
        }
    }

    /// The level of what it has taken and the level of what it serves, as a set of levels. Read in this order, because
    /// a holder that arrives announces the second before it takes back the first.
    pub(crate) fn levels_in_hand(&self, job: &Job) -> u64 {
        if !self.is_of(job) {
            return 0;
        }
        let bound = self.shown.bound.load(Ordering::SeqCst);
        1u64.checked_shl(u32::from(bound)).unwrap_or(0) | self.levels_in(job)
    }

    /// The processor where the worker became idle, was revoked or began what may be long last; -1 if unknown.
    pub(crate) fn cpu(&self) -> i32 {
        self.shown.cpu.load(Ordering::Relaxed)
    }

    /// The worker becomes idle, or begins what may be long, on the calling thread's processor.
    pub(crate) fn note_cpu(&self) {
        self.left_on(crate::sys::thread::current_cpu());
    }

    /// The worker is to be started where it was left: on this processor.
    pub(crate) fn left_on(&self, cpu: i32) {
        self.shown.cpu.store(cpu, Ordering::Relaxed);
    }

    /// Whether its stack may have forks that it has not made public. `false`: it polls a task that has not forked.
    pub(crate) fn hides_forks(&self) -> bool {
        self.shown.hides.load(Ordering::SeqCst)
    }

    /// The holder announces whether it may keep forks to itself. Whether this is news.
    #[inline]
    pub(crate) fn set_hides_forks(&self, hides: bool) -> bool {
        let news = self.shown.hides.load(Ordering::Relaxed) != hides;
        if news {
            self.shown.hides.store(hides, Ordering::SeqCst);
        }
        news
    }

    /// When the current span of running, scheduling, searching or sleeping began, in ticks.
    #[inline]
    pub(crate) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// The stack that holds it, or held it last. Stacks live as long as the runtime.
    pub(crate) fn holder(&self) -> *const Stack {
        self.count_look();
        self.shown.holder.load(Ordering::SeqCst)
    }

    /// The calling stack holds the worker from now on.
    pub(crate) fn set_holder(&self, stack: *const Stack) {
        self.shown.holder.store(stack.cast_mut(), Ordering::SeqCst);
    }

    /// Leaves work for the next holder.
    pub(crate) fn hand(&self, work: Option<super::Work>) {
        let old = mem::replace(&mut *self.handed.lock(), work);
        debug_assert!(old.is_none(), "work was lost in a hand-off");
    }

    /// The work that came with the worker.
    pub(crate) fn take_handed(&self) -> Option<super::Work> {
        self.handed.lock().take()
    }

    /// The worker was revoked from `stack`, and is to be restored to it.
    pub(crate) fn push_revoked_from(&self, stack: Arc<Stack>) {
        let mut stacks = self.revoked_from.lock();
        if !stacks.iter().any(|it| Arc::ptr_eq(it, &stack)) {
            stacks.push(stack);
        }
        self.is_to_return.store(true, Ordering::Relaxed);
    }

    /// Brief work of this level goes first from now on, in the place of what ran.
    pub(super) fn begin_turn(&self, level: u8, ran: Runs) {
        self.brief_turn.begin(level, ran == Runs::Long);
        self.is_to_return.store(true, Ordering::Relaxed);
    }

    /// Whether it has a turn, or stacks that it is to be restored to.
    #[inline]
    pub(super) fn is_to_return(&self) -> bool {
        self.is_to_return.load(Ordering::Relaxed)
    }

    /// The stack that the worker was revoked from last. Its turn is over.
    pub(super) fn pop_revoked_from(&self) -> Option<Arc<Stack>> {
        let mut stacks = self.revoked_from.lock();
        let last = stacks.pop();
        self.is_to_return
            .store(!stacks.is_empty(), Ordering::Relaxed);
        last
    }

    /// The worker goes to `job`, from another job or from the idle set. Stacks of other jobs are not restored: they
    /// come back by themselves, at their next scheduling points. Stacks of `job` are: an idle worker that forgot them
    /// would begin something new beside each.
    fn forget_others(&self, job: &Job) {
        if !self.is_to_return() {
            return;
        }
        let is_of_other = |stack: &mut Arc<Stack>| !stack.is_of(job);
        let others: Vec<_> = self
            .revoked_from
            .lock()
            .extract_if(.., is_of_other)
            .collect();
        for stack in others {
            if let Some(its) = stack.job() {
                its.overrunning.no_longer_lent(&stack);
            }
        }
    }

    /// The number of this look for work.
    #[inline]
    pub(crate) fn next_turn(&self) -> u32 {
        let turn = self.turn().wrapping_add(1);
        self.turn.store(turn, Ordering::Relaxed);
        turn
    }

    /// The number of this look into rings; others begin elsewhere.
    pub(crate) fn next_look(&self) -> u32 {
        let look = self.look.load(Ordering::Relaxed).wrapping_add(1);
        self.look.store(look, Ordering::Relaxed);
        look.wrapping_add(self.id as u32)
    }

    /// Whether it has not looked into the rings of all for `period` ticks; then it does now.
    pub(crate) fn is_look_around_due(&self, period: u64) -> bool {
        let last = self.looked_around.load(Ordering::Relaxed);
        let due = self.since().saturating_sub(last) > period;
        if due {
            self.looked_around.store(self.since(), Ordering::Relaxed);
        }
        due
    }

    /// Work at `level`, more urgent, asks for this worker at `now`; the first since it was no longer wanted counts.
    pub(crate) fn want(&self, level: u8, now: u64) {
        let wanted = &self.shown.wanted;
        if wanted.load(Ordering::Relaxed) == 0 {
            let new = now & !WANTED_BY | u64::from(level);
            let _ = wanted.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Since when more urgent work asks for this worker, in ticks; 0 if none does.
    pub(crate) fn wanted_since(&self) -> u64 {
        self.shown.wanted.load(Ordering::Relaxed) & !WANTED_BY
    }

    /// The worker comes to the scheduler, or goes to work than which nothing is more urgent. Returns for how long the
    /// worker has been wanted while it served `serves`, in ticks, on this seat. (The thread that asked may have seen
    /// what the worker served before.)
    #[inline]
    pub(crate) fn no_longer_wanted(
        &self,
        seat: impl FnOnce() -> Seat,
        serves: u8,
        now: u64,
    ) -> u64 {
        if self.shown.wanted.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.end_wanted(seat(), serves, now)
    }

    /// [`Worker::no_longer_wanted`] of a worker that is wanted. Each dispatch asks, and seldom comes here.
    #[cold]
    fn end_wanted(&self, seat: Seat, serves: u8, now: u64) -> u64 {
        let old = self.shown.wanted.swap(0, Ordering::Relaxed);
        let level = (old & WANTED_BY) as u8;
        if seat.is_drawn_by(level, serves) {
            now.saturating_sub(old & !WANTED_BY)
        } else {
            0
        }
    }

    /// The number of the last look for work.
    #[inline]
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Relaxed)
    }

    /// Ends the current span and returns its length in ticks.
    #[inline]
    pub(crate) fn lap(&self) -> u64 {
        self.lap_at(clock::now())
    }

    /// As [`Worker::lap`], with a reading of the clock in hand.
    #[inline]
    pub(crate) fn lap_at(&self, now: u64) -> u64 {
        let since = self.since.load(Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        now.saturating_sub(since)
    }
}
