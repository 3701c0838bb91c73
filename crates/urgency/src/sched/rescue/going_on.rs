//! What overruns at the moment, by name, for `Stats::overruns`.
//!
//! A stack names its overrun when it comes back (`overrunning.rs`). A loop that never checks in never does, and is the
//! one that an operator looks for. So a snapshot names what goes on, from another thread. It costs nothing while
//! nothing overruns.
//!
//! The stack's task may end meanwhile. So its address is only compared, with the tasks that are alive, and the name of
//! the one that has it counts if the stack has not checked in by then. A fork's kind is a static.

use crate::{
    account::overruns::{GoesOn, Name},
    sched::{job::Job, stack::Stack},
    sys::{clock, primitives::atomic::Ordering},
};

impl Job {
    /// What has lost its worker to relief and not come to a scheduling point since. In a child of `fork` nothing.
    pub(crate) fn overrunning_now(&self) -> Vec<GoesOn> {
        if !self.core.process.is_this() || !self.core.does_any_overrun() {
            return Vec::new();
        }
        let now = clock::now();
        let stacks = self.core.threads.stacks_of(self);
        stacks
            .iter()
            .filter_map(|stack| self.overrunning_at(stack, now))
            .collect()
    }

    fn overrunning_at(&self, stack: &Stack, now: u64) -> Option<GoesOn> {
        let since = stack.relieved_since()?;
        let what = self.what_of(stack)?;
        // As far as the stack is of this job.
        let level = stack.level().min(self.least_urgent());
        let still = stack.relieved_since() == Some(since) && stack.is_of(self);
        still.then(|| GoesOn {
            what,
            level,
            ticks: now.saturating_sub(since),
        })
    }

    /// The name of what the stack, another thread's perhaps, is in the middle of; `None` if that just ends.
    fn what_of(&self, stack: &Stack) -> Option<Name> {
        if let Some(kind) = stack.forked() {
            return Some(kind.name);
        }
        match stack.task() {
            Some(task) => self.tasks.live.name_at(task),
            None => Some(Stack::OUTSIDE),
        }
    }
}

impl Stack {
    /// When relief took its worker, in ticks, if it has not come to a scheduling point since.
    fn relieved_since(&self) -> Option<u64> {
        let since = self.relieved_at.load(Ordering::Acquire);
        let overruns = since != 0 && self.overruns.load(Ordering::Acquire);
        (overruns && !self.attention.is_inside()).then_some(since)
    }
}
