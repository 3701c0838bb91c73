//! Raising a task's level, and that of what it waits for.
//!
//! A task has two levels: the one it was created at, by which inversions are judged, and the one it
//! runs at now, which boosts lower (a lower index is more urgent). A boosted task is thus allowed
//! to wait for all that it could wait for before; what it waits for is boosted instead.
//!
//! # Protocol
//!
//! 1. *Wait*: before a task waits for another, the runtime calls `begin_wait` on the waiting one: it
//!    notes the awaited task under the lock of `waits`, then reads its own level, then raises the
//!    awaited task to it. After the wait, `end_wait` takes the note out.
//! 2. *Raise*: lower the level; then, by a read-modify-write of the state word, look whether the
//!    task is in a queue, and if so push a second entry, at the new level. The old entry stays
//!    where it is and will be stale (state.rs, rule 3).
//! 3. *Boost*: raise a task; if that changed it, read what it waits for and boost each of them.
//!
//! *boost against wait*: both go through the lock, so either the boost sees the note, or the wait,
//! which comes later, sees the new level. Hence what a task waits for is never less urgent than the
//! task, but for steps in progress, and step 3 may stop where nothing changed: each visit lowers a
//! level, so that cycles end, too.
//!
//! A note counts a reference. A handle that moves to another task between two polls leaves the note
//! behind; it is removed with the next note or with the future, and means at worst one boost too many.

use super::TaskRef;
use crate::facade::{
    MutexGuard,
    atomic::Ordering::{AcqRel, Relaxed},
};
use std::mem;

/// The tasks that a task waits for; rarely more than one.
#[derive(Default)]
pub(super) enum Waits {
    #[default]
    Nothing,
    One(TaskRef),
    #[expect(clippy::box_collection, reason = "a word in every task, used by few")]
    Many(Box<Vec<TaskRef>>),
}

impl Waits {
    fn as_slice(&self) -> &[TaskRef] {
        match self {
            Waits::Nothing => &[],
            Waits::One(task) => std::slice::from_ref(task),
            Waits::Many(tasks) => tasks,
        }
    }

    fn into_vec(self) -> Vec<TaskRef> {
        match self {
            Waits::Nothing => Vec::new(),
            Waits::One(task) => vec![task],
            Waits::Many(tasks) => *tasks,
        }
    }
}

impl TaskRef {
    /// Makes the task at least as urgent as `level`. `true` if that changed anything. A task that
    /// is in a queue gets a second entry there; of a running one the scheduler is told.
    pub(crate) fn raise(&self, level: u8) -> bool {
        let header = self.header();
        if header.level.load(Relaxed) <= level || header.level.fetch_min(level, AcqRel) <= level {
            return false;
        }
        let seen = header.state.clone_ref_and_look();
        // SAFETY: just counted.
        let entry = unsafe { TaskRef::from_raw(self.as_raw()) };
        if seen.is_queued() {
            // SAFETY: the vtable is the cell's.
            unsafe { (header.vtable.promote)(entry) };
        } else if seen.is_running() {
            // SAFETY: as above.
            unsafe { (header.vtable.raised)(&entry) };
        }
        true
    }

    /// Raises the task, what it waits for, what that waits for, and so on.
    pub(crate) fn boost(&self, level: u8) {
        if !self.raise(level) {
            return;
        }
        let mut ahead = self.awaited();
        while let Some(task) = ahead.pop() {
            if task.raise(level) {
                ahead.append(&mut task.awaited());
            }
        }
    }

    /// This task, whose code is running on the calling thread, is about to wait for `awaited`.
    pub(crate) fn begin_wait(&self, awaited: &TaskRef) {
        let header = self.header();
        header.has_waited.store(true, Relaxed);
        let mut finished = Vec::new();
        {
            let mut waits = self.lock_waits();
            *waits = match mem::take(&mut *waits) {
                Waits::Nothing => Waits::One(awaited.clone()),
                before
                    if before
                        .as_slice()
                        .iter()
                        .any(|task| task.id() == awaited.id()) =>
                {
                    before
                }
                before => {
                    let (gone, mut tasks): (Vec<_>, Vec<_>) = before
                        .into_vec()
                        .into_iter()
                        .partition(TaskRef::is_finished);
                    finished = gone;
                    tasks.push(awaited.clone());
                    Waits::Many(Box::new(tasks))
                }
            };
        }
        // Outside of the lock: the last reference to a task runs other code.
        drop(finished);
        awaited.boost(self.level());
    }

    /// This task, whose code is running on the calling thread, no longer waits for `awaited`.
    pub(crate) fn end_wait(&self, awaited: &TaskRef) {
        if !self.header().has_waited.load(Relaxed) {
            return;
        }
        let removed = {
            let mut waits = self.lock_waits();
            match &mut *waits {
                Waits::One(task) if task.id() == awaited.id() => match mem::take(&mut *waits) {
                    Waits::One(task) => Some(task),
                    _ => unreachable!("looked at under the same lock"),
                },
                Waits::Many(tasks) => tasks
                    .iter()
                    .position(|task| task.id() == awaited.id())
                    .map(|place| tasks.remove(place)),
                _ => None,
            }
        };
        drop(removed);
    }

    /// The future is gone: it waits for nothing.
    pub(super) fn forget_waits(&self) {
        if self.header().has_waited.load(Relaxed) {
            let before = mem::take(&mut *self.lock_waits());
            drop(before);
        }
    }

    fn awaited(&self) -> Vec<TaskRef> {
        self.lock_waits().as_slice().to_vec()
    }

    fn lock_waits(&self) -> MutexGuard<'_, Waits> {
        // Nothing under this lock panics but for a failed allocation, which leaves `Nothing`.
        self.header()
            .waits
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
