//! A task that waits for the tasks of a set, and is raised meanwhile: by code that waits for it, or for a lock that it
//! keeps. The tasks of the set are raised then as well, for good. Else what lies between would keep them from running.
//!
//! The set is noted at the waiting task as a lock for which it waits (`tasks/boost.rs`, step 6), and has no holder but
//! the tasks in it. A wait that is not raised changes nothing: code may wait for a set of less urgent tasks, as a
//! supervisor does.

use crate::{
    runtime::own_task,
    tasks::{Lock, TaskRef},
};
use std::sync::Arc;

/// The tasks of a set.
pub(super) trait Members: Send + Sync + 'static {
    fn members(&self) -> Vec<TaskRef>;
}

/// See the module's text. The lock that a waiting task notes.
struct Set<M>(Arc<M>);

impl<M: Members> Set<M> {
    fn raise(&self, level: u8) {
        self.0.members().iter().for_each(|task| task.boost(level));
    }
}

impl<M: Members> Lock for Set<M> {
    fn waiter_raised(&self, _waiter: &TaskRef, level: u8) -> Option<TaskRef> {
        self.raise(level);
        None
    }
}

/// The current task waits for the set. Dropped when it no longer does.
pub(super) struct Waits {
    task: TaskRef,
    set: Arc<dyn Lock>,
}

impl Waits {
    /// `None`: the calling code cannot be raised.
    pub(super) fn begin<M: Members>(set: impl FnOnce() -> Arc<M>) -> Option<Self> {
        let task = own_task()?;
        let set = Arc::new(Set(set()));
        let noted: Arc<dyn Lock> = set.clone();
        task.begin_lock_wait(noted.clone());
        let level = task.level();
        if level < task.base_level() {
            set.raise(level);
        }
        Some(Waits { task, set: noted })
    }

    /// Whether it is the current task that waits.
    pub(super) fn is_own(&self) -> bool {
        own_task().is_some_and(|task| task.id() == self.task.id())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.task.end_lock_wait(&self.set);
    }
}
