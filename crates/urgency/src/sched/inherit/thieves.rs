//! Forks of code that was raised: the stacks that stole them are raised as well, while the code waits for them.
//!
//! `protocol/awaited_forks.rs` has the rules. Which stack runs a fork of which code is told by the names of tasks
//! (`stack/stuck.rs`): a thief, and the thief of a thief, has the name of the task at the bottom.
//!
//! A thief is raised until its fork has ended, also if the lock is given back before. All thieves of the task are
//! raised, though the stack may wait for some of them only.
//!
//! # What it does not do
//!
//! Code that belongs to no task has no name: what a plain thread forks (`Runtime::run`, or `join` from outside) stays
//! at its level while that thread keeps a lock.

use crate::sched::{
    Origin,
    job::Job,
    stack::{Me, Stack},
};
use std::{ptr, sync::Arc};

impl Job {
    /// Rule 2: this stack was raised to `level`.
    pub(crate) fn raise_forks_of(&self, stack: &Stack, level: u8) {
        if stack.awaited_forks.is_any() {
            self.raise_thieves(stack, level);
        }
    }

    /// Rule 4.
    #[cold]
    fn raise_thieves(&self, of: &Stack, level: u8) {
        let Some(task) = of.bottom() else {
            return;
        };
        let raises = |stack: &&Arc<Stack>| {
            !ptr::eq(&***stack, of) && stack.runs_fork_of(task) && self.raise_thief(stack, level)
        };
        loop {
            let stacks = self.core.threads.stacks_of(self);
            if stacks.iter().filter(raises).count() == 0 {
                return;
            }
        }
    }

    /// Whether that is news.
    fn raise_thief(&self, thief: &Stack, level: u8) -> bool {
        match thief.proxy_raised_to(level) {
            // It raises the stack.
            Some(proxy) => proxy.raise(level),
            None => self.raise_stack_alone(thief, level, level),
        }
    }
}

/// Code on a stack waits for forks that others stole. Dropped when the wait has ended.
pub(crate) struct AwaitsForks<'a> {
    me: Me<'a>,
    before: bool,
}

impl<'a> AwaitsForks<'a> {
    /// Rule 1.
    pub(crate) fn begin(me: Me<'a>) -> Self {
        let before = begin(me);
        AwaitsForks { me, before }
    }

    /// As [`Me::interrupts_wait`], of this wait.
    pub(crate) fn interrupted<R>(&self, f: impl FnOnce() -> R) -> R {
        self.me.interrupts_wait(f)
    }
}

/// Whether the stack waited for forks before.
fn begin(me: Me<'_>) -> bool {
    let before = me.awaited_forks.begin();
    let level = me.level();
    if level < me.waits_as() {
        me.runtime().raise_thieves(me.shared(), level);
    }
    before
}

impl Drop for AwaitsForks<'_> {
    fn drop(&mut self) {
        self.me.awaited_forks.end(self.before);
    }
}

impl Me<'_> {
    /// Rule 5: `f` runs something else on the stack, on top of a wait for forks if the stack is in one.
    pub(crate) fn interrupts_wait<R>(self, f: impl FnOnce() -> R) -> R {
        let waits = self.awaited_forks.interrupt();
        let result = f();
        if waits {
            begin(self);
        }
        result
    }

    /// Rule 3: the stack has noted of which task the fork is that it is about to run.
    pub(crate) fn begins_fork(self, origin: &Origin) {
        let job = self.runtime();
        let (Some(task), Some((from, index))) = (origin.task, origin.from) else {
            return;
        };
        // SAFETY: a stack of this core set, which keeps all its stacks for as long as it lives.
        let from = unsafe { from.as_ref() };
        if !job.pools.are_several() || ptr::eq(from, self.shared()) {
            return;
        }
        let level = if from.awaited_forks.is_any() {
            from.level()
        } else {
            from.level_of_fork(index)
        };
        if level < self.level() && from.bottom() == Some(task) {
            job.raise_thief(self.shared(), level);
        }
    }
}
