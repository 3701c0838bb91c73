//! The holder of a contended mutex, and the level that the holder inherits.
//!
//! An [`Inheritance`] is made for a mutex when code of a runtime with several levels waits for the mutex for the first
//! time. It has an address of its own: the waiting tasks keep it (tasks/boost.rs, step 6), and could outlive the mutex
//! if their futures were leaked.
//!
//! # Protocol
//!
//! The lock in here is taken under the queue's lock, and before the lock of a task's `waits`. The scheduler and other
//! mutexes are called after all three were released.
//!
//! 1. *Enter*: a waiter has noted that it waits, has read its level, and is in the queue. The holder's name is in the
//!    word; the holder is looked up in the table of live tasks. It inherits the waiter's level if its own level is less
//!    urgent, even if it inherits as much by another lock now. The word says `KNOWN` before the name is read, and keeps
//!    it if the holder was found: then the release must come to the queue's lock.
//! 2. *A waiter is raised* while it waits: the holder inherits, and the queue is sorted anew before the next
//!    hand-over.
//! 3. *Pass on*: at a release, under the queue's lock, the waiter that gets the lock, or to which the lock is offered,
//!    takes the old holder's place. A waiter that comes and takes an offered lock does the same. If others wait, the
//!    new holder inherits the level of the most urgent of them: its own urgency may be inherited as well, and end. The
//!    old holder gives back what it inherited *after* the new one was woken: the hand-over comes before the demotion.
//! 4. *Offered*: nothing holds the lock, or code that overtook (raw.rs, step 4) and is not known. All waiters depend on
//!    the waiter to which the lock is offered: it has to come to a worker. So this waiter inherits in the holder's
//!    place. When it has come, it takes the lock, or lets the overtaker inherit (step 1). It is remembered until the
//!    lock is passed on again, or until it no longer waits.
//!
//! At most two tasks inherit through a lock: its holder, and the waiter it is offered to (step 4). A task that stops
//! being either returns the inherited level, unless it has meanwhile become one of the two again.
//!
//! # Named races
//!
//! - *Raised between reading its level and entering*: the waiter reads its level again after it entered, and does step
//!   2 if the level changed.
//! - *Raised during a release*: a waiter is raised after the release has sorted the queue, so the turn may be another
//!   waiter's. `raised` keeps the level to which a waiter was raised since, and step 3 lends it under the lock in here.
//!   Step 3 sees a step 2 that came before; a step 2 that comes after finds the new holder.
//! - *A holder that ended*, or whose slot has another task now: the name does not fit, and no task inherits. A name
//!   that fits by accident boosts an unrelated task until the release.
//!
//! # What inherits, and what lends
//!
//! All code that runs on a stack of the runtime lends its level when it waits, and inherits when it holds. Code of no
//! task (a forked closure that was stolen, a closure of [`run`](crate::runtime::Handle::run)) has a task that stands
//! for it, the proxy of its stack (`sched/inherit/proxy.rs`). A plain thread does neither: nothing says how urgent it
//! is, and in which runtime to look for the holder. Nor does code in a declared blocking call.

use super::hooks;
use crate::{
    sys::{
        mutex::Mutex,
        primitives::atomic::{
            AtomicU8,
            Ordering::{AcqRel, Acquire},
        },
    },
    tasks::{Lock, TaskRef},
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
    /// A task waits; if nothing holds the lock, a task other than the one of step 4.
    contended: bool,
}

impl Holder {
    /// The task that inherits.
    fn heir(&self) -> Option<&TaskRef> {
        self.task.as_ref().or(self.offered.as_ref())
    }
}

/// A task that inherits a level now, to be announced.
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
    /// What the holder notes that it inherits by.
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The heir becomes at least as urgent as `level`, and as the waiters that were raised.
    fn lend(&self, holder: &Holder, level: u8) -> Option<Heir> {
        let level = level.min(self.raised.load(Acquire));
        let task = holder.heir()?;
        let inherits = task.own_level() > level && task.inherit(self.id(), level);
        inherits.then(|| Heir {
            task: task.clone(),
            level,
        })
    }

    /// Step 1, under the queue's lock. `name` is the holder's in the word; `None`: the lock is free. Says whether the
    /// holder is known.
    pub(super) fn enter(&self, name: Option<u64>, level: u8) -> (Option<Heir>, bool) {
        let mut holder = self.holder.lock();
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

    /// Whether the queue has to be sorted anew. The caller sorts it at once, while the lock is offered to no waiter.
    pub(super) fn take_raised(&self) -> bool {
        self.raised.swap(NOBODY, AcqRel) != NOBODY
    }

    /// Notes whether a task waits; under the queue's lock.
    pub(super) fn set_contended(&self, contended: bool) {
        self.holder.lock().contended = contended;
    }

    /// Step 3, under the queue's lock: `next` gets the lock, or it is offered to `offered`. `others` is the most urgent
    /// level of the other waiters. The result goes to [`passed`](Self::passed).
    pub(super) fn pass_on(
        &self,
        next: Option<TaskRef>,
        offered: Option<TaskRef>,
        others: Option<u8>,
    ) -> Passed {
        let mut holder = self.holder.lock();
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
        let offered = self.holder.lock().offered.take_if(is_it);
        self.give_back(task);
        drop(offered);
    }

    fn give_back(&self, task: &TaskRef) {
        let is_lowered = {
            let holder = self.holder.lock();
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
        let holder = self.holder.lock();
        // A task that waits for a lock that it holds, or is about to get, lends nothing to itself.
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
