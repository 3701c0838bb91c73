//! An entry of a pool: a ready context.
//!
//! An entry is a hint, and may be stale: a task that another entry already ran (it was boosted), a stack that another
//! thread claimed, a deque that is empty by now. The thread that pops an entry finds out by a claim (`TaskRef::run`,
//! `Suspension::claim`, `Deque::steal`), and looks further if the entry was stale.

use super::lists::List;
use crate::{
    sched::{StolenFork, stack::Stack},
    sys::clock,
    tasks::TaskRef,
};
use std::sync::Arc;

/// A ready context.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A task to be polled, or a closure to be started on a fresh stack.
    Task(TaskRef),
    /// A stack that can go on.
    Stack(Arc<Stack>),
    /// A deque that had public forks when this was queued.
    Deque(Arc<Stack>),
    /// A stolen fork for which no thread could be had. Larger than the others, and seldom.
    Fork(Box<StolenFork>),
}

impl Entry {
    /// Whether it stands for the forks of a stack, which may run meanwhile.
    #[inline]
    pub(crate) fn is_forks(&self) -> bool {
        matches!(self, Entry::Deque(_))
    }

    /// The list of the regular queue that it belongs into.
    #[inline]
    pub(super) fn list(&self) -> List {
        match self {
            Entry::Task(task) if task.is_closure() => List::Long,
            Entry::Task(task) if task.computes() => List::Computing,
            Entry::Task(_) | Entry::Stack(_) => List::Brief,
            Entry::Deque(_) | Entry::Fork(_) => List::Long,
        }
    }

    /// When a task became ready, in ticks. Anything else is put down as it becomes ready.
    #[inline]
    pub(super) fn ready_since(&self) -> u64 {
        match self {
            Entry::Task(task) => task.ready_since(),
            _ => clock::now(),
        }
    }
}
