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
//!    urgent by itself (it may inherit as much by another lock now). From then on the word says `KNOWN`: the
//!    release must come here.
//! 2. *A waiter is raised* while it waits: the holder inherits, and the queue is sorted anew before the next hand-over.
//! 3. *Pass on*: at a release, under the queue's lock, the holder is exchanged for the waiter that gets the
//!    lock, or for nobody, if it is offered; and when a waiter comes for what it was offered, for that. If
//!    others wait, the new holder inherits the level of the most urgent of them, in case it is itself only
//!    boosted, and stops being that. The old one gives back what it inherited *after* the new one was woken:
//!    the hand-over comes before the demotion.
//!
//! # Named races
//!
//! - *Raised between reading its level and entering*: the waiter reads its level again after it entered, and
//!   does step 2 if it changed.
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

use super::above;
use crate::{
    facade::{Mutex, MutexGuard},
    task::{Lock, TaskRef},
};
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// See the module's text.
#[derive(Default)]
pub(super) struct Inheritance {
    holder: Mutex<Holder>,
    /// A waiter was raised since the queue was sorted.
    raised: AtomicBool,
}

#[derive(Default)]
struct Holder {
    /// `KNOWN` says that it is there.
    task: Option<TaskRef>,
    /// Somebody waits.
    contended: bool,
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

    /// Step 1, under the queue's lock. `name` is the holder's in the word. Returns the holder if it is to be
    /// announced, and whether it is known.
    pub(super) fn enter(&self, name: u64, level: u8) -> (Option<TaskRef>, bool) {
        let mut holder = self.lock();
        holder.contended = true;
        if holder.task.is_none() {
            holder.task = above::task_named(name);
        }
        let task = holder.task.as_ref();
        let heir = task.filter(|task| task.own_level() > level && task.inherit(self.id(), level));
        (heir.cloned(), holder.task.is_some())
    }

    /// Whether the queue has to be sorted anew.
    pub(super) fn take_raised(&self) -> bool {
        self.raised.swap(false, Ordering::AcqRel)
    }

    /// Somebody waits, or nobody does any more; under the queue's lock.
    pub(super) fn set_contended(&self, contended: bool) {
        self.lock().contended = contended;
    }

    /// Step 3, under the queue's lock: `next` gets the lock, and who still waits is at best at the level
    /// `others`. Returns the task that had it.
    pub(super) fn pass_on(&self, next: Option<TaskRef>, others: Option<u8>) -> Option<TaskRef> {
        let mut holder = self.lock();
        holder.contended = others.is_some();
        if let (Some(next), Some(level)) = (&next, others)
            && level < next.own_level()
        {
            // It is as urgent as they are already, since it was its turn.
            let _ = next.inherit(self.id(), level);
        }
        mem::replace(&mut holder.task, next)
    }

    /// The end of step 3, without any lock: `task` has passed the mutex on.
    pub(super) fn give_back(&self, task: &TaskRef) {
        if task.give_back(self.id()) {
            above::lowered(task);
        }
    }
}

impl Lock for Inheritance {
    /// Step 2.
    fn waiter_raised(&self, level: u8) -> Option<TaskRef> {
        self.raised.store(true, Ordering::Release);
        let holder = self.lock();
        let task = holder.task.as_ref().filter(|_| holder.contended);
        let heir = task.filter(|task| task.own_level() > level && task.inherit(self.id(), level));
        heir.cloned()
    }
}

/// The shared form, as a task notes it.
pub(super) fn as_lock(inheritance: &Arc<Inheritance>) -> Arc<dyn Lock> {
    inheritance.clone()
}
