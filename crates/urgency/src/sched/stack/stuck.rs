//! Which tasks cannot end before the code on a stack has returned. If that code shuts its runtime down, the shutdown
//! does not wait for them.
//!
//! 1. The task that the stack runs.
//! 2. The task whose fork the stack runs: it waits for the fork. The thief has its name from the stack that it stole
//!    from ([`Stack::origin_of`]).
//! 3. Either of them, while the stack runs another task on top of it: that task's frames are in the way.
//!
//! So a stack names two: `task`, which it runs, and `bottom`, if another one is below. They are names, to be compared.
//! Code that only forks and joins on one stack writes neither.
//!
//! The deque may have forks of both. The task at the bottom needs the end of all of them, so that it is the origin of
//! all. With code of no task at the bottom, the forks below the index `plain` are of none. A thief asks under the
//! deque's lock, and where the deque may hold forks all three change under that lock: it sees them as they were for the
//! fork.

use super::{Me, Stack};
use crate::{sys::primitives::atomic::Ordering, tasks::Header};
use std::{num::NonZero, ptr::NonNull};

/// The name of a live task.
pub(crate) type TaskName = NonZero<usize>;

fn name(task: NonNull<Header>) -> TaskName {
    task.addr()
}

/// What a stack had before it ran something on top.
pub(crate) struct Below {
    task: Option<NonNull<Header>>,
    bottom: Option<TaskName>,
    plain: usize,
}

impl Stack {
    fn bottom_task(&self) -> Option<TaskName> {
        NonZero::new(self.bottom_task.load(Ordering::Relaxed))
    }

    /// The task at the bottom of the stack.
    pub(crate) fn bottom(&self) -> Option<TaskName> {
        self.bottom_task().or_else(|| self.task().map(name))
    }

    /// Whether the stack runs a fork of this task, perhaps with something on top.
    pub(crate) fn runs_fork_of(&self, task: TaskName) -> bool {
        self.bottom_task() == Some(task)
    }

    /// The tasks of the module's text.
    pub(super) fn stuck(&self) -> impl Iterator<Item = TaskName> {
        let task = self.task().map(name);
        self.bottom_task().into_iter().chain(task)
    }

    /// The task to which the fork belongs that was at `index`. Asked by the thief, under the deque's lock.
    pub(super) fn origin_of(&self, index: usize) -> Option<TaskName> {
        if index < self.plain.load(Ordering::Relaxed) {
            return None;
        }
        self.bottom()
    }
}

impl Me<'_> {
    /// The task to which the calling code belongs.
    pub(crate) fn origin(self) -> Option<TaskName> {
        self.origin_of(self.deque.bottom())
    }

    /// `task` runs on top of what the stack runs. Returns what [`Me::set_below`] puts back.
    pub(crate) fn set_on_top(self, task: NonNull<Header>) -> Below {
        let before = self.below();
        let bottom = before.bottom.or(before.task.map(name));
        self.set_below(&Below {
            task: Some(task),
            bottom,
            plain: match bottom {
                Some(_) => before.plain,
                None => self.deque.bottom(),
            },
        });
        before
    }

    /// A stolen fork of the task `origin` runs on top of what the stack runs, or on a stack that runs nothing. Returns
    /// what [`Me::set_below`] puts back, if that is anything.
    pub(crate) fn set_origin(self, origin: Option<TaskName>) -> Option<Below> {
        let before = self.below();
        if origin.is_none() || before.bottom.is_some() || before.task.is_some() {
            return None;
        }
        self.set_below(&Below {
            task: None,
            bottom: origin,
            plain: self.deque.bottom(),
        });
        Some(before)
    }

    fn below(self) -> Below {
        Below {
            task: self.task(),
            bottom: self.bottom_task(),
            plain: self.plain.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_below(self, below: &Below) {
        let set = || {
            let bottom = below.bottom.map_or(0, NonZero::get);
            self.bottom_task.store(bottom, Ordering::Relaxed);
            self.plain.store(below.plain, Ordering::Relaxed);
            self.set_task(below.task);
        };
        // A deque whose first index is free holds no fork, and no thief is at it: its owner has taken the lock since.
        if self.deque.bottom() == 0 {
            set();
        } else {
            self.deque().without_thieves(set);
        }
    }
}
