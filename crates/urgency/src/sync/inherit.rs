//! Who holds a contended mutex, and what level the holder inherits.
//!
//! Made for a mutex when code of a runtime with several levels waits for it for the first time. It has an
//! address of its own, since the tasks that wait keep it (task/boost.rs, step 6) and could outlive the mutex
//! if their futures were leaked.
//!
//! # Protocol
//!
//! The lock in here is taken under that of the queue, and before that of a task's `waits`; the scheduler and
//! other mutexes are called after all of them were released.
//!
//! 1. *Enter*: a waiter has noted that it waits, has read its level, and is in the queue. The holder, whose
//!    name is in the word, is looked up in the table of live tasks, and inherits the level if it is less
//!    urgent by itself (it may inherit as much by another lock now). The word says `KNOWN` before the name is
//!    read, and goes on to if the holder was found: the release must come to the queue's lock.
//! 2. *A waiter is raised* while it waits: the holder inherits, and the queue is sorted anew before the next
//!    hand-over.
//! 3. *Pass on*: at a release, under the queue's lock, the holder is exchanged for the waiter that gets the
//!    lock, or to whom it is offered; and when a waiter comes for what it was offered, for that. If others
//!    wait, the new one inherits the level of the most urgent of them, in case it is itself only boosted, and
//!    stops being that. The old one gives back what it inherited *after* the new one was woken: the hand-over
//!    comes before the demotion.
//! 4. *Offered*: nobody holds the lock, or somebody who overtakes and is not known. What everybody waits for
//!    is that the waiter to whom it is offered comes to a worker: that one inherits in the holder's place.
//!    When it has come it takes the lock, or lets the overtaker inherit (1). It is remembered until the lock
//!    is passed on again, or it goes.
//!
//! Only the holder and the one of 4 have a note that they inherit by this lock. Whoever stops being either
//! gives it back, unless it is one of them again by then.
//!
//! # Named races
//!
//! - *Raised between reading its level and entering*: the waiter reads its level again after it entered, and
//!   does step 2 if it changed.
//! - *Raised during a release*: the queue was sorted before, so the turn may be another's. The level to which
//!   a waiter was raised since is kept, and step 3 lends it under the lock in here: a step 2 before that is
//!   seen by it, and one after that finds the new one.
//! - *A holder that ended*, or whose slot has another task now: the name does not fit, and nobody inherits. A
//!   name that fits by accident boosts a stranger until the release.
//!
//! # What inherits, and what lends
//!
//! Whatever runs on a stack of the runtime lends its level when it waits, tasks or not. A plain thread lends
//! none: nothing says how urgent it is, and in which runtime to look for the holder. A holder that is no task
//! (a plain thread, a [`Runtime::run`](crate::Runtime::run) closure, a forked job that was stolen) inherits
//! nothing. A stack's level could be lowered as a task's is, but what is inherited by several locks at a
//! time, and given back in any order, is noted in the task; every stack would need such a note, a lock for
//! it, and a generation in its name.

use super::hooks;
use crate::{
    sys::primitives::{
        Mutex, MutexGuard,
        atomic::{
            AtomicU8,
            Ordering::{AcqRel, Acquire},
        },
    },
    task::{Lock, TaskRef},
};
use std::{mem, sync::Arc};

/// See the module's text.
pub(super) struct Inheritance {
    holder: Mutex<Holder>,
    /// The most urgent level to which a waiter was raised since the queue was sorted, or `NOBODY`.
    raised: AtomicU8,
}

/// Less urgent than any level.
const NOBODY: u8 = u8::MAX;

#[derive(Default)]
struct Holder {
    /// `KNOWN` says that it is there.
    task: Option<TaskRef>,
    /// Step 4.
    offered: Option<TaskRef>,
    /// Somebody waits; if nobody holds it, somebody else than the one of step 4.
    contended: bool,
}

impl Holder {
    /// Who inherits.
    fn heir(&self) -> Option<&TaskRef> {
        self.task.as_ref().or(self.offered.as_ref())
    }
}

/// Who inherits a level now, to be announced.
#[must_use]
pub(super) struct Heir {
    task: TaskRef,
    level: u8,
}

impl Heir {
    /// Without a lock held.
    pub(super) fn announce(self) {
        self.task.inherited(self.level);
    }
}

/// What step 3 leaves to be done when no lock is held.
#[must_use]
pub(super) struct Passed {
    heir: Option<Heir>,
    before: [Option<TaskRef>; 2],
}

impl Default for Inheritance {
    fn default() -> Self {
        Inheritance {
            holder: Mutex::new(Holder::default()),
            raised: AtomicU8::new(NOBODY),
        }
    }
}

impl Inheritance {
    fn lock(&self) -> MutexGuard<'_, Holder> {
        // Only a failed allocation panics under this lock, before anything was changed.
        self.holder
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What the holder notes that it inherits by.
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whoever is to inherit is as urgent as `level`, and as those who were raised.
    fn lend(&self, holder: &Holder, level: u8) -> Option<Heir> {
        let level = level.min(self.raised.load(Acquire));
        let task = holder.heir()?;
        let inherits = task.own_level() > level && task.inherit(self.id(), level);
        inherits.then(|| Heir {
            task: task.clone(),
            level,
        })
    }

    /// Step 1, under the queue's lock. `name` is the holder's in the word; `None`: nobody holds it. Says
    /// whether the holder is known.
    pub(super) fn enter(&self, name: Option<u64>, level: u8) -> (Option<Heir>, bool) {
        let mut holder = self.lock();
        holder.contended = true;
        if holder.task.is_none()
            && let Some(name) = name
        {
            holder.task = hooks::task_named(name);
            if holder.task.is_none() {
                return (None, false);
            }
        }
        (self.lend(&holder, level), holder.task.is_some())
    }

    /// Whether the queue has to be sorted anew, which is done at once, with nothing offered.
    pub(super) fn take_raised(&self) -> bool {
        self.raised.swap(NOBODY, AcqRel) != NOBODY
    }

    /// Somebody waits, or nobody does any more; under the queue's lock.
    pub(super) fn set_contended(&self, contended: bool) {
        self.lock().contended = contended;
    }

    /// Step 3, under the queue's lock: `next` gets the lock, or it is offered to `offered`. Who waits besides
    /// is at best at the level `others`. The result goes to [`passed`](Self::passed).
    pub(super) fn pass_on(
        &self,
        next: Option<TaskRef>,
        offered: Option<TaskRef>,
        others: Option<u8>,
    ) -> Passed {
        let mut holder = self.lock();
        holder.contended = others.is_some();
        let before = [
            mem::replace(&mut holder.task, next),
            mem::replace(&mut holder.offered, offered),
        ];
        let heir = others.and_then(|others| self.lend(&holder, others));
        Passed { heir, before }
    }

    /// The end of step 3, without any lock.
    pub(super) fn passed(&self, passed: Passed, wake: impl FnOnce()) {
        passed.heir.into_iter().for_each(Heir::announce);
        wake();
        for task in passed.before.iter().flatten() {
            self.give_back(task);
        }
    }

    /// A task no longer waits, in one of its futures, without having got the lock; without any lock.
    pub(super) fn left(&self, task: &TaskRef) {
        let is_it = |offered: &mut TaskRef| offered.id() == task.id();
        let offered = self.lock().offered.take_if(is_it);
        self.give_back(task);
        drop(offered);
    }

    fn give_back(&self, task: &TaskRef) {
        let is_lowered = {
            let holder = self.lock();
            let mut both = holder.task.iter().chain(&holder.offered);
            !both.any(|one| one.id() == task.id()) && task.give_back(self.id())
        };
        if is_lowered {
            hooks::lowered(task);
        }
    }
}

impl Lock for Inheritance {
    /// Step 2.
    fn waiter_raised(&self, waiter: &TaskRef, level: u8) -> Option<TaskRef> {
        self.raised.fetch_min(level, AcqRel);
        let holder = self.lock();
        // Who waits for what it has itself, or is about to have, lends nothing to itself.
        let is_other = |task: &&TaskRef| holder.contended && task.id() != waiter.id();
        let heir = holder.heir().filter(is_other);
        let heir = heir.filter(|task| task.own_level() > level && task.inherit(self.id(), level));
        heir.cloned()
    }
}

/// The shared form, as a task notes it.
pub(super) fn as_lock(inheritance: &Arc<Inheritance>) -> Arc<dyn Lock> {
    inheritance.clone()
}
