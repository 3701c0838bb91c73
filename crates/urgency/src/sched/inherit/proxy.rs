//! The proxy of a stack: a task that stands for code that belongs to no task, where that code holds a lock.
//!
//! The code is a stolen fork, or a call of a plain thread (`Runtime::run`, or `join` from outside). If more urgent code
//! waits for its lock, it has to inherit that level (`sync/inherit.rs`), and a lock that it waits for itself has to
//! hear of that. Levels are inherited by several locks at a time and given back in any order. A task has notes for all
//! this (`tasks/boost.rs`), so the stack has a task: the *proxy*, whose level is the stack's.
//!
//! # Life
//!
//! 1. The proxy is made when code without a task first takes a lock on this stack, in a runtime of several levels. Code
//!    that is a task's, or takes no lock, pays nothing.
//! 2. It is scheduled for good and in no queue: nothing wakes, claims or cancels it, it is in no table of live tasks,
//!    and it counts as nothing. When its level is lowered the scheduler is told as of a task in a queue, and raises the
//!    stack instead. The last reference ends it (`tasks/state.rs`, rule 7).
//! 3. It is named by its stack's number in the core set's list, beyond all slots of live tasks, and by the number of
//!    the proxy among the stack's own. A waiter that finds the name in a lock's word looks it up there.
//! 4. Its own level is the one at which the code began. (It was the stack's at the time of the lock. A stack that a
//!    late thread had raised by mistake then had that level for good, and so had what was stolen from it.)
//! 5. When other code begins on the stack, the stack gives the proxy up. The code before may have sent a guard
//!    elsewhere, or leaked it: the new code neither inherits by that lock, nor is lowered when the guard goes.
//!
//! # What it does not do
//!
//! Waits for tasks are noted in tasks only: a fork that waits for a task does not pass on what the proxy inherits.
//! (What it waits for was raised when the wait began, to the level of then.)

use crate::{
    sched::{
        job::Job,
        stack::{Me, Stack},
    },
    sys::mutex::Mutex,
    tasks::{self, LiveTasks, Runner, Schedule, TaskRef},
};
use std::{
    future,
    sync::{
        Arc, Weak,
        atomic::{
            AtomicU8, AtomicU64,
            Ordering::{Relaxed, SeqCst},
            fence,
        },
    },
};

/// The numbers of a stack's proxies repeat after so many: a name has 52 bits.
const TURNS: u64 = 1 << 20;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Proxy {
    task: Mutex<Option<TaskRef>>,
    /// Its name, 0 if there is none; written by the stack under that lock.
    name: AtomicU64,
    /// How many proxies the stack has given up; its own.
    given_up: AtomicU64,
    /// The level at which the code without a task began, or to which it was raised for good. The stack writes it, and
    /// threads that raise it do under the lock of `task`.
    begun_at: AtomicU8,
    /// The number of the stack in the core set's list; 0 for a stack that is in no list.
    number: u32,
}

/// The scheduler of a proxy.
struct OfStack(Weak<Stack>);

impl Schedule for OfStack {
    fn schedule(&self, task: TaskRef) {
        // Nothing wakes or cancels a proxy (step 2).
        drop(task);
    }

    fn promote(&self, task: TaskRef) {
        self.raised(&task, Runner::UNNAMED);
    }

    fn raised(&self, task: &TaskRef, _runner: Runner) {
        if let Some(stack) = self.0.upgrade()
            && stack.runs_as(task)
            && let Some(job) = stack.job()
        {
            job.raise_stack(&stack, task);
        }
    }

    fn released(&self, _task: &TaskRef) {}
}

impl Proxy {
    /// For the stack of this number.
    pub(in crate::sched) fn of(number: usize) -> Self {
        Proxy {
            number: u32::try_from(number).unwrap_or(0),
            ..Proxy::default()
        }
    }

    fn is(&self, task: &TaskRef) -> bool {
        let is_it = |own: &TaskRef| own.id() == task.id();
        self.task.lock().as_ref().is_some_and(is_it)
    }
}

impl Stack {
    /// Code without a task that is raised for good: the proxy, if there is one, is to be raised then. One that is made
    /// later has the new level.
    pub(super) fn proxy_raised_to(&self, level: u8) -> Option<TaskRef> {
        let proxy = self.proxy.task.lock();
        if self.task().is_some() {
            return None;
        }
        self.proxy.begun_at.fetch_min(level, Relaxed);
        proxy.clone()
    }

    /// Whether the code on this stack is this task's, or has it for a proxy.
    pub(crate) fn runs_as(&self, task: &TaskRef) -> bool {
        match self.task() {
            Some(own) => own == task.as_raw(),
            None => self.proxy.is(task),
        }
    }
}

impl Me<'_> {
    /// The name of this stack's proxy, which stands for the code that runs here and belongs to no task. 0 where there
    /// is one level, and no proxy.
    #[inline]
    pub(crate) fn proxy_name(self) -> u64 {
        if self.runtime_ptr().is_null() || !self.runtime().pools.are_several() {
            return 0;
        }
        match self.proxy.name.load(Relaxed) {
            0 => self.make_proxy(),
            name => name,
        }
    }

    /// Step 1.
    #[cold]
    fn make_proxy(self) -> u64 {
        let proxy = &self.shared().proxy;
        let Some(number) = LiveTasks::beyond(proxy.number) else {
            return 0;
        };
        let stack = Arc::new(OfStack(Arc::downgrade(&self.arc())));
        let mut task = proxy.task.lock();
        let level = proxy.begun_at.load(Relaxed);
        let (made, _) = tasks::new(future::pending::<()>(), stack, level);
        *task = Some(made);
        let turn = proxy.given_up.load(Relaxed) % TURNS;
        let name = turn << 32 | u64::from(number);
        proxy.name.store(name, Relaxed);
        name
    }

    /// The proxy of this stack, if code without a task has taken a lock here.
    pub(crate) fn proxy(self) -> Option<TaskRef> {
        self.shared().proxy.task.lock().clone()
    }

    /// The level of the task to which the code on this stack belongs, or of the proxy.
    fn level_of_code(self) -> Option<u8> {
        self.with_task(|task| match task {
            Some(task) => Some(task.level()),
            None => self.proxy().map(|proxy| proxy.level()),
        })
    }

    /// The stack goes on with code that may have been raised while other code ran on top of it.
    pub(crate) fn raised_meanwhile(self) {
        if let Some(level) = self.level_of_code() {
            self.raise_level(level, level);
        }
    }

    /// Inside the scheduler: a thread that raised this stack may have been late, so that the code had given back what
    /// it inherited, and nothing would lower the stack.
    pub(crate) fn lowers_late_raise(self) {
        // What runs on top of other code may have another level. A stolen fork at the bottom is one of these itself.
        if self.nesting() > u32::from(self.task().is_none()) {
            return;
        }
        if let Some(level) = self.level_of_code()
            && level > self.level()
        {
            self.runtime().flush_ring(&self);
            self.set_level(level);
            fence(SeqCst);
            self.raised_meanwhile();
        }
    }

    /// Step 5: code without a task begins at this level on the stack, which is empty.
    #[inline]
    pub(crate) fn begins_without_task(self, level: u8) {
        self.proxy.begun_at.store(level, Relaxed);
        if self.proxy.name.load(Relaxed) != 0 {
            self.give_up_proxy();
        }
    }

    #[cold]
    fn give_up_proxy(self) {
        let proxy = &self.shared().proxy;
        let given_up = {
            let mut task = proxy.task.lock();
            proxy.name.store(0, Relaxed);
            task.take()
        };
        proxy
            .given_up
            .store(proxy.given_up.load(Relaxed).wrapping_add(1), Relaxed);
        drop(given_up);
    }
}

impl Job {
    /// The proxy of this name, if it stands for code of this job.
    pub(crate) fn proxy_named(&self, name: u64) -> Option<TaskRef> {
        let number = LiveTasks::place_beyond(name as u32)? as usize;
        let stack = self.core.threads.numbered(number)?;
        let task = stack.proxy.task.lock();
        let is_it = stack.is_of(self) && stack.proxy.name.load(Relaxed) == name;
        task.as_ref().filter(|_| is_it).cloned()
    }
}
