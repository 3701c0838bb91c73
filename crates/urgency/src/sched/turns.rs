//! Turns: with more workers than processors, stacks that run for long take turns with equals that wait.
//!
//! A program has more workers than processors so that as much of its code can go on at once: code that sleeps in the
//! kernel, and code that spins until other code has done something. Code that spins and comes to scheduling points
//! looks like code that computes, and workers in reserve are not for that (`reserve.rs`). So the stacks that have begun
//! share the workers that run, and are never more than there are workers:
//!
//! 1. An expiry of the relief timer finds that something waits at a level, and that no worker has begun anything there
//!    for [`LONG`]. It asks the stacks that run at that level to take a turn.
//! 2. A stack that is asked takes the next work of its level at its scheduling point, and is abandoned for it. While
//!    fewer stacks wait to go on than there are workers in reserve, that work is the first that has not begun.
//!    Otherwise it is the stack that has waited longest.
//! 3. The stack is in the mugging queue, which comes first: a worker that ends what it ran goes on with it.
//!
//! So whatever the stacks wait for gets a turn, computing threads do not become more than the processors, and no stack
//! has to leave in a level where things end or wait more often. A stack that comes to no scheduling point cannot take a
//! turn; it is held up, and one worker more is started (`reserve.rs`). Where the program provides the threads, no
//! thread can be had for what begins, and one worker more is started as well.

use super::{
    Work,
    aged::LevelView,
    claim::Want,
    job::Job,
    relief::LONG,
    stack::{Me, Stack},
    worker::Worker,
};
use crate::{
    protocol::attention::PREEMPT,
    sys::{
        clock,
        mutex::Mutex,
        primitives::atomic::{AtomicU64, Ordering},
    },
};
use std::sync::Arc;

/// One stack that is asked for a turn, in [`Turns::due`]; below is the level.
const ONE: u64 = 1 << 8;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Turns {
    /// How many stacks are to take a turn, and at which level.
    due: AtomicU64,
    /// By level, what the last expiry saw while something waited there.
    seen: Mutex<Box<[Seen]>>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    /// How much the workers had begun.
    begun: u64,
    /// Since when.
    since: u64,
}

impl Turns {
    /// For so many levels.
    pub(super) fn new(levels: usize) -> Self {
        Turns {
            due: AtomicU64::new(0),
            seen: Mutex::new(vec![Seen::default(); levels].into()),
        }
    }
}

impl Job {
    /// An expiry found no worker for what waits at these levels: rule 1. A worker of the reserve for it, where no stack
    /// can take a turn.
    pub(super) fn ask_for_turns(&self, levels: u64) -> Option<&Worker> {
        if !self.core.idle.may_hold_back() || !self.core.idle.any() {
            return None;
        }
        let waits = |level: &u8| levels >> level & 1 == 1;
        let mut late = (0..self.pools.len() as u8).filter(waits);
        let level = late.find(|&level| self.runs_at(level) && self.stands_still(level))?;
        if self.core.threads.are_provided() {
            return self.claim(Want::Any);
        }
        let asked = self.stacks_at(level).count() as u64;
        let due = (asked * ONE) | u64::from(level);
        self.turns.due.store(due, Ordering::Relaxed);
        self.stacks_at(level)
            .for_each(|stack| stack.attention.request(PREEMPT));
        None
    }

    fn runs_at(&self, level: u8) -> bool {
        self.workers().any(|worker| worker.level() == level)
    }

    /// Whether no worker has begun anything at `level` for long.
    fn stands_still(&self, level: u8) -> bool {
        let begun = |worker| {
            let did = self.at(worker, level);
            did.tasks.get() + did.closures.get() + did.jobs.get()
        };
        let begun = self.workers().map(begun).sum();
        let now = clock::now();
        let mut seen = self.turns.seen.lock();
        let seen = &mut seen[usize::from(level)];
        let is_same = seen.begun == begun;
        let is_long = now.saturating_sub(seen.since) >= clock::ticks(LONG.as_nanos() as f64);
        if !is_same || is_long {
            *seen = Seen { begun, since: now };
        }
        is_same && is_long
    }

    /// The scheduling point of `me`, which may have been asked: rule 2.
    #[inline]
    pub(super) fn take_turn_if_due(&self, me: Me<'_>) {
        if self.turns.due.load(Ordering::Relaxed) >= ONE {
            self.take_turn_due(me);
        }
    }

    #[cold]
    fn take_turn_due(&self, me: Me<'_>) {
        let level = me.level();
        let take = |due: u64| (due >= ONE && due % ONE == u64::from(level)).then(|| due - ONE);
        let taken = self
            .turns
            .due
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken.is_ok()
            && me.number().is_none()
            && let Some(work) = self.next_turn_of(me, level)
        {
            self.abandon(me, work);
        }
    }

    fn next_turn_of(&self, me: Me<'_>, level: u8) -> Option<Work> {
        let worker = me.worker();
        let may_begin = self.count_waiting_to_go_on() < self.core.idle.in_reserve();
        if may_begin
            && self.pools[usize::from(level)].queues().is_none()
            && let Some(work) = LevelView::new(self, me, worker, level).next_not_begun()
        {
            return Some(work);
        }
        let work = self.next_ready(me, worker, 1 << level)?;
        if may_begin || matches!(work, Work::Resume(_)) {
            return Some(work);
        }
        self.put_back(worker, work);
        None
    }

    fn count_waiting_to_go_on(&self) -> usize {
        let stacks = self.core.threads.stacks();
        let waits =
            |stack: &&Arc<Stack>| stack.is_of(self) && stack.suspension.is_resumable_after_writes();
        stacks.iter().filter(waits).count()
    }
}
