//! `AbortHandle`: the right to cancel a task, without its result.

use super::{Id, TaskRef};
use std::panic::{RefUnwindSafe, UnwindSafe};

/// The right to cancel a task, without its result; made by
/// [`JoinHandle::abort_handle`](super::JoinHandle::abort_handle).
#[derive(Clone)]
pub struct AbortHandle {
    task: TaskRef,
}

/// A panic leaves nothing of a task half changed.
impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl AbortHandle {
    pub(crate) fn new(task: TaskRef) -> Self {
        AbortHandle { task }
    }

    /// Asks the task to end, as [`JoinHandle::abort`](super::JoinHandle::abort) does.
    pub fn abort(&self) {
        self.task.cancel();
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// The name of the task, among all that run now.
    pub fn id(&self) -> Id {
        self.task.id()
    }
}

debug_struct!(AbortHandle, |it| id: it.id(), finished: it.is_finished());
