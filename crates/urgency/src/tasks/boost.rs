//! Raising a task's level, and the level of what it waits for.
//!
//! A task has two levels: the one it was created at, by which inversions are judged, and the one it runs at now, which
//! boosts lower (a lower index is more urgent). So a boosted task may wait for all that it could wait for before; what
//! it waits for is boosted instead. What a boosted task spawns has the two levels of the task, unless it names its own.
//!
//! # Protocol
//!
//! 1. *Wait*: when a task has begun to wait for another, in the same poll, the runtime calls `begin_wait` on the
//!    waiting task. The waiting task notes the awaited task under the lock of `waits`, then reads its own level, then
//!    raises the awaited task to that level. After the wait, `end_wait` takes the note out.
//! 2. *Raise*: lower the level; then look at the state word by a read-modify-write. If the task is in a queue, push a
//!    second entry, at the new level. The old entry stays where it is and will be stale (state.rs, rule 3). If the task
//!    runs, tell the scheduler, with the runner that the same word names. The thread that runs a task has read the
//!    task's level before it claims the task, and reads the level again after that.
//! 3. *Boost*: raise a task; if that changed it, read what it waits for and boost each of them.
//!
//! *boost against wait*: both go through the lock, so either the boost sees the note, or the wait, which comes later,
//! sees the new level. Hence, but for steps in progress, what a task waits for is never less urgent than the task. So
//! step 3 may stop where nothing changed. Each visit lowers a level, so boosting along a cycle ends, too.
//!
//! # Inheritance
//!
//! A task that holds a lock for which something more urgent waits *inherits* that level, for as long as it holds the
//! lock. So a task has further levels: its *own* level, which boosts lower for good, and one inherited level for each
//! contended lock, noted under the lock of `waits`. The task runs at the most urgent of all.
//!
//! 4. *Inherit*: note lock and level, lower the level, then announce that as in step 2, and go on with what
//!    the task waits for (3).
//! 5. *Give back*, called by the code that released the lock: take the note out; the level becomes the most urgent of
//!    what is left. The level is exchanged before the own level is read again, and a boost lowers the two in the other
//!    order: so a boost at the same time is not lost.
//! 6. A task that waits for a lock notes the lock, too: if the task is raised, the lock is told ([`Lock`]) and lets its
//!    holder inherit. So a boost goes through a chain of locks.
//!
//! # Waits of other jobs
//!
//! Levels of two jobs cannot be compared, but jobs have priorities. Code of another job that waits for a task lends the
//! task's job its priority (`jobs/record/waits.rs`). What is lent ends when a *loan* is dropped. The awaited task keeps
//! the loan, by the ticket of the wait, until the wait or the task ends: the waiting code may be a fork, of which no
//! task is known.
//!
//! *A late loan against the end*: the loan comes when the waiter is registered, and the task may have ended by then. So
//! the code that waits notes the loan, and *then* looks at the state word, by a read-modify-write. The code that ends
//! the task writes that word, and *then* looks whether loans are noted. One of the two drops the loan. (A handle that
//! is kept and not polled again, in a `select!`, kept the priority of the job for good.)
//!
//! A note counts a reference, and belongs to one wait: a task may wait for another in several places, by clones of a
//! `Shared`, and give up one of the waits. A handle that moves to another task between two polls leaves its note
//! behind. That note is removed with the next note or with the future, and means at worst one boost too many.

use super::{
    TaskRef,
    cell::{BOOSTED, LENT},
};
use crate::sys::{
    mutex::{Mutex, MutexGuard},
    primitives::atomic::Ordering::{AcqRel, Acquire, Relaxed},
};
use std::{any::Any, mem, sync::Arc};

/// A lock whose holder inherits the level of its waiters.
pub(crate) trait Lock: Send + Sync {
    /// `waiter`, which waits for the lock, was raised to `level`. Returns the lock's holder, or the task that is to be
    /// the next holder, if that task inherited now, to be announced.
    fn waiter_raised(&self, waiter: &TaskRef, level: u8) -> Option<TaskRef>;
}

/// What a job was lent for as long as code of another job waits for a task: dropped when it is over.
pub(crate) type Loan = Box<dyn Any + Send>;

/// What a task waits for, and what it inherits; rarely more than one task.
#[derive(Default)]
pub(super) enum Waits {
    #[default]
    Nothing,
    /// The low half of a ticket: with the rest the note would be larger.
    One { ticket: u32, task: TaskRef },
    /// Used by few.
    Many(Box<Links>),
}

#[derive(Default)]
pub(super) struct Links {
    tasks: Vec<(u32, TaskRef)>,
    locks: Vec<Arc<dyn Lock>>,
    /// By lock, the level that it lends.
    inherited: Vec<(usize, u8)>,
    /// By wait of another job's code.
    loans: Vec<(u64, Loan)>,
}

impl Waits {
    fn tasks(&self) -> Vec<TaskRef> {
        match self {
            Waits::Nothing => Vec::new(),
            Waits::One { task, .. } => vec![task.clone()],
            Waits::Many(links) => links.tasks.iter().map(|(_, task)| task.clone()).collect(),
        }
    }

    fn of((ticket, task): (u32, TaskRef)) -> Self {
        Waits::One { ticket, task }
    }

    /// Where the note of a wait is, if there is one.
    fn place_of(&self, awaited: &TaskRef, of: u32) -> Option<usize> {
        let is_it = |ticket: u32, task: &TaskRef| ticket == of && task.id() == awaited.id();
        match self {
            Waits::Nothing => None,
            Waits::One { ticket, task } => is_it(*ticket, task).then_some(0),
            Waits::Many(links) => {
                let mut tasks = links.tasks.iter();
                tasks.position(|(ticket, task)| is_it(*ticket, task))
            }
        }
    }

    fn locks(&self) -> &[Arc<dyn Lock>] {
        match self {
            Waits::Many(links) => &links.locks,
            _ => &[],
        }
    }

    fn links(&mut self) -> &mut Links {
        if !matches!(self, Waits::Many(_)) {
            let mut links = Box::<Links>::default();
            if let Waits::One { ticket, task } = mem::take(self) {
                links.tasks.push((ticket, task));
            }
            *self = Waits::Many(links);
        }
        match self {
            Waits::Many(links) => links,
            _ => unreachable!("just made"),
        }
    }
}

fn place_of(loans: &[(u64, Loan)], ticket: u64) -> Option<usize> {
    loans.iter().position(|(of, _)| *of == ticket)
}

impl TaskRef {
    /// Makes the task at least as urgent as `level`, for good. `true` if it runs at another level now. A task
    /// that is in a queue gets a second entry there; of a running one the scheduler is told.
    pub(crate) fn raise(&self, level: u8) -> bool {
        let (own, now) = (&self.header().own_level, &self.header().level);
        let lowered = if own.load(Relaxed) > level {
            // Both by a read-modify-write, and in this order (step 5).
            own.fetch_min(level, AcqRel);
            now.fetch_min(level, AcqRel) > level
        } else {
            self.lower_to(level)
        };
        if lowered {
            self.announce();
        }
        lowered
    }

    fn lower_to(&self, level: u8) -> bool {
        let now = &self.header().level;
        now.load(Relaxed) > level && now.fetch_min(level, AcqRel) > level
    }

    /// Step 2, after the level was lowered.
    fn announce(&self) {
        let header = self.header();
        let seen = header.state.clone_ref_and_look();
        // SAFETY: just counted.
        let entry = unsafe { TaskRef::from_raw(self.as_raw()) };
        if seen.is_queued() {
            // SAFETY: the vtable is the cell's.
            unsafe { (header.vtable.promote)(entry) };
        } else if seen.is_running() {
            // SAFETY: as above.
            unsafe { (header.vtable.raised)(&entry, seen.runner()) };
        }
    }

    /// As [`boost`](Self::boost), for code that may wait for the task after that: the task is then at least as urgent
    /// as the asking code in the order in which levels are served, even if the levels' own order says nothing.
    pub(crate) fn boost_for(&self, level: u8) {
        self.header().flags.fetch_or(BOOSTED, Relaxed);
        self.boost(level);
    }

    /// Raises the task from its start: no other code has it yet.
    #[cfg(not(urgency_loom))]
    pub(crate) fn start_at(&self, level: u8) {
        self.header().own_level.store(level, Relaxed);
        self.header().level.store(level, Relaxed);
    }

    /// Whether it was raised for code that was to wait for it.
    pub(crate) fn is_boosted(&self) -> bool {
        self.header().flags.load(Relaxed) & BOOSTED != 0
    }

    /// Raises the task, what it waits for, what that waits for, and so on.
    pub(crate) fn boost(&self, level: u8) {
        if self.raise(level) {
            self.boost_awaited(level);
        }
    }

    /// The rest of step 4, without a lock held: [`inherit`](Self::inherit) has lowered the level.
    pub(crate) fn inherited(&self, level: u8) {
        self.announce();
        self.boost_awaited(level);
    }

    fn boost_awaited(&self, level: u8) {
        let mut ahead = vec![self.clone()];
        while let Some(task) = ahead.pop() {
            let (tasks, locks) = {
                let waits = task.lock_waits();
                (waits.tasks(), waits.locks().to_vec())
            };
            ahead.extend(tasks.into_iter().filter(|task| task.raise(level)));
            let raised = |lock: &Arc<dyn Lock>| lock.waiter_raised(&task, level);
            let holders = locks.iter().filter_map(raised);
            ahead.extend(holders.inspect(TaskRef::announce));
        }
    }

    /// Step 4: the task, which holds `lock`, inherits `level`. `true`: the caller owes it a call of
    /// [`inherited`](Self::inherited), when it holds no lock.
    #[must_use]
    pub(crate) fn inherit(&self, lock: usize, level: u8) -> bool {
        let mut waits = self.lock_waits();
        let inherited = &mut waits.links().inherited;
        match inherited.iter_mut().find(|(by, _)| *by == lock) {
            Some((_, least)) => *least = level.min(*least),
            None => inherited.push((lock, level)),
        }
        self.lower_to(level)
    }

    /// Step 5. `true`: the task is less urgent than before.
    pub(crate) fn give_back(&self, lock: usize) -> bool {
        let mut waits = self.lock_waits();
        let Waits::Many(links) = &mut *waits else {
            return false;
        };
        links.inherited.retain(|(by, _)| *by != lock);
        let header = self.header();
        let inherited = links.inherited.iter().map(|(_, level)| *level).min();
        let left = |own: u8| inherited.map_or(own, |level| own.min(level));
        let level = left(header.own_level.load(Acquire));
        if header.level.load(Relaxed) >= level {
            return false;
        }
        header.level.swap(level, AcqRel);
        let now = left(header.own_level.load(Acquire));
        header.level.fetch_min(now, AcqRel);
        true
    }

    /// The level at which the task would run if it inherited none.
    pub(crate) fn own_level(&self) -> u8 {
        self.header().own_level.load(Relaxed)
    }

    /// Step 6: the task, whose code is running on the calling thread, is about to wait for a lock.
    pub(crate) fn begin_lock_wait(&self, lock: Arc<dyn Lock>) {
        self.lock_waits().links().locks.push(lock);
    }

    /// The task no longer waits for a lock, in one of the futures that did.
    pub(crate) fn end_lock_wait(&self, lock: &Arc<dyn Lock>) {
        let is_it = |other: &Arc<dyn Lock>| Arc::as_ptr(other).addr() == Arc::as_ptr(lock).addr();
        let removed = match &mut *self.lock_waits() {
            Waits::Many(links) => {
                let place = links.locks.iter().position(is_it);
                place.map(|place| links.locks.swap_remove(place))
            }
            _ => None,
        };
        drop(removed);
    }

    /// This task, whose code is running on the calling thread, is about to wait for `awaited`. The ticket names this
    /// wait: a second call with the same ticket is no second wait.
    pub(crate) fn begin_wait(&self, awaited: &TaskRef, ticket: u64) {
        let ticket = ticket as u32;
        let mut finished: Vec<(u32, TaskRef)> = Vec::new();
        {
            let mut waits = self.lock_waits();
            if let Waits::Nothing = *waits {
                let task = awaited.clone();
                *waits = Waits::One { ticket, task };
            } else if waits.place_of(awaited, ticket).is_none() {
                let tasks = &mut waits.links().tasks;
                finished = tasks
                    .extract_if(.., |(_, task)| task.is_finished())
                    .collect();
                tasks.push((ticket, awaited.clone()));
            }
        }
        // Outside of the lock: the last reference to a task runs other code.
        drop(finished);
        awaited.boost(self.level());
    }

    /// This task, whose code is running on the calling thread, has ended its wait with this ticket.
    pub(crate) fn end_wait(&self, awaited: &TaskRef, ticket: u64) {
        if self.header().waits.get().is_none() {
            return;
        }
        let removed = {
            let mut waits = self.lock_waits();
            let place = waits.place_of(awaited, ticket as u32);
            place.map(|place| match &mut *waits {
                Waits::Many(links) => Waits::of(links.tasks.swap_remove(place)),
                one => mem::take(one),
            })
        };
        drop(removed);
    }

    /// Code of another job has begun the wait with this ticket for this task, and its job lends this.
    pub(crate) fn keep_loan(&self, ticket: u64, loan: Loan) {
        self.header().flags.fetch_or(LENT, Relaxed);
        let before = {
            let mut waits = self.lock_waits();
            let loans = &mut waits.links().loans;
            let before = place_of(loans, ticket).map(|place| loans.swap_remove(place));
            loans.push((ticket, loan));
            before
        };
        // Outside of the lock: it calls the job's core policy.
        drop(before);
        let seen = self.header().state.clone_ref_and_look();
        // SAFETY: just counted.
        let counted = unsafe { TaskRef::from_raw(self.as_raw()) };
        if seen.is_completed() {
            counted.drop_loan(ticket);
        }
    }

    /// The task, for which code waits, has ended.
    #[inline]
    pub(super) fn end_loans(&self) {
        if self.header().flags.load(Relaxed) & LENT != 0 {
            self.forget_waits();
        }
    }

    /// The wait with this ticket for this task has ended.
    #[inline]
    pub(crate) fn end_loan(&self, ticket: u64) {
        if self.header().flags.load(Relaxed) & LENT != 0 {
            self.drop_loan(ticket);
        }
    }

    #[cold]
    fn drop_loan(&self, ticket: u64) {
        let ended = match &mut *self.lock_waits() {
            Waits::Many(links) => {
                let loans = &mut links.loans;
                place_of(loans, ticket).map(|place| loans.swap_remove(place))
            }
            _ => None,
        };
        drop(ended);
    }

    /// The future is gone: it waits for nothing.
    pub(super) fn forget_waits(&self) {
        if self.header().waits.get().is_some() {
            let before = mem::take(&mut *self.lock_waits());
            drop(before);
        }
    }

    fn lock_waits(&self) -> MutexGuard<'_, Waits> {
        // Made even to find nothing noted: the lock orders a boost and a wait that comes later.
        self.header()
            .waits
            .get_or_make(|| Mutex::new(Waits::default()))
            .lock()
    }
}
