//! The door between tasks and the scheduler: a new task is admitted here, and what happens to a task comes in here.
//!
//! Tasks know the scheduler by the trait [`Schedule`] only, and this is its implementation. A task becomes ready in two
//! ways: [`Job::admit`] for a new task, and [`Schedule::schedule`] for a task that was woken. Both stamp the task with
//! the time and go to `insert.rs`.

use crate::{
    protocol::attention::PREEMPT,
    sched::{job::Job, poll_context, serve::run, stack::Stack},
    sys::{clock, fork},
    tasks::{Caller, Runner, Schedule, TaskRef},
};
use std::{mem, sync::atomic::Ordering};

impl Schedule for Job {
    const CALLER: &'static dyn Caller = &super::caller::Stacks;

    fn schedule(&self, task: TaskRef) {
        if fork::is_copy() && !self.core.process.is_this() {
            // No thread would run it, and its future is the parent's.
            return mem::forget(task);
        }
        if self.closing.load(Ordering::Acquire) {
            return self.tasks.keep(task);
        }
        task.set_ready_since(poll_context::ready_stamp());
        self.insert_task(task);
    }

    fn promote(&self, task: TaskRef) {
        self.insert_task(task);
    }

    fn raised(&self, task: &TaskRef, runner: Runner) {
        self.raise_stack_of(task, runner);
    }

    fn released(&self, task: &TaskRef) {
        self.tasks.live.remove(task);
        self.tasks.something_ended();
    }

    fn panicked(&self, task: &TaskRef) {
        self.tasks.panicked.fetch_add(1, Ordering::Relaxed);
        self.on_panic.panicked(task);
    }

    fn unheard(&self, task: &TaskRef) {
        self.on_panic.unheard(task);
    }

    fn name_of(&self, level: u8) -> &'static str {
        self.levels.names()[usize::from(level)]
    }

    #[inline]
    fn is_kept_alive_here(&self) -> bool {
        Stack::with_own(|me| me.is_some_and(|me| me.is_of(self)))
    }
}

impl Job {
    /// Whether the calling thread runs on a stack of this job.
    pub(super) fn is_current(&self) -> bool {
        Stack::with_current(|me| me.is_some_and(|me| me.is_of(self)))
    }

    /// A running task was raised: the stack that runs it, if it waits or was abandoned, queues at the
    /// new level.
    fn raise_stack_of(&self, task: &TaskRef, runner: Runner) {
        if let Some(stack) = self.core.threads.stack_of(task, runner) {
            self.raise_stack(&stack, task);
        }
    }

    /// What runs on `stack` as this task, or with it for a proxy, is at least as urgent as the task now.
    pub(crate) fn raise_stack(&self, stack: &Stack, task: &TaskRef) {
        let (level, own) = (task.level(), task.own_level());
        if self.raise_stack_alone(stack, level, own) {
            self.raise_forks_of(stack, level);
        }
    }

    /// What runs on `stack` is at least as urgent as `level` now, but not what was stolen from there; `own` is as in
    /// [`Stack::raise_level`]. Whether that is news.
    pub(crate) fn raise_stack_alone(&self, stack: &Stack, level: u8, own: u8) -> bool {
        if !stack.raise_level(level, own) {
            return false;
        }
        // It was lowered for the sake of others; now they wait for it.
        stack.raise_thread();
        if stack.deque.seems_public() {
            self.insert_deque(stack);
        }
        if !stack.ring.is_empty()
            && let Some(worker) = self.core.worker_of(stack)
        {
            self.pools.announce_ring(stack, worker, level);
        }
        if stack.suspension.is_resumable_after_writes() {
            self.insert_resumable(stack.arc());
        } else {
            stack.attention.request(PREEMPT);
        }
        true
    }

    /// Enters a new task and makes it ready.
    pub(crate) fn admit(&self, task: TaskRef) {
        let near = Stack::with_current(|me| me.map_or(0, |me| run::worker_of(me, self)));
        if self.tasks.live.insert(&task, near) {
            if !self.tasks.admits(task.level()) {
                task.cancel();
            }
            task.set_ready_since(clock::now());
            self.insert_task(task);
        } else {
            task.shut_down();
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use crate::Runtime;
    use std::ptr;

    #[test]
    fn the_stack_of_a_running_task_is_found_by_its_number_or_by_a_search() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let core = runtime.job().core.clone();
        let check = move || {
            Stack::with_current(|me| {
                let me = me.unwrap();
                let is_found = |runner| {
                    let found = me.with_task(|task| core.threads.stack_of(task.unwrap(), runner));
                    found.map(|stack| ptr::eq(&*stack, me.shared()))
                };
                let number = me.runner().number().unwrap();
                assert_eq!(is_found(me.runner()), Some(true));
                // Too large for a task's word: this runner has no name.
                assert_eq!(is_found(Runner::numbered(1 << 16)), Some(true));
                assert_eq!(is_found(Runner::numbered((1 << 16) - 1)), None);
                // Another stack, which may be one that ran the task before.
                assert_eq!(is_found(Runner::numbered(number % 2 + 1)), None);
            });
        };
        // Makes a stack besides.
        runtime.run(|| ());
        runtime.spawn_fn(check).get().unwrap();
    }
}
