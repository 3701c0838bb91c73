//! The scheduler: workers, stacks, pools, and the ways in which a worker changes hands.
//!
//! What there is lies here at the top. [`mod@core`]: what a machine has, and [`job`]: what a program has; [`worker`]
//! and [`stack`]: the permission to run, and what runs; [`poll_context`]: what a thread knows of its poll;
//! [`policy_code`]: what the code of a program's own policies may do where it is called under a lock. What these do is
//! in folders. The text of a folder's `mod.rs` says what is decided there, in which order to read its files, and
//! which other folders it calls.
//!
//! | folder | what is decided there |
//! | --- | --- |
//! | [`serve`] | the loop of a thread that holds a worker, to be read first: work gets in, is found, and runs |
//! | [`switch`] | how a worker changes threads: stacks wait, other threads take their workers over |
//! | [`poll`] | which thread waits for events, and which worker takes what became ready |
//! | [`rescue`] | which stacks lose their workers because more urgent work, or any work, waits too long |
//! | [`forks`] | which workers would come for a fork, and which forks are shown to them |
//! | [`order`] | the ready contexts of a level, and which comes next |
//! | [`share`] | what each worker serves, if the schedule between levels is not simply prompt |
//! | [`cores`] | which job a worker serves |
//! | [`machine`] | which workers run, and on which processors |
//! | [`inherit`] | what code has from the code that started it, and from code that waits for it |
//! | [`doors`] | what other rooms ask for: tasks, handles, admission, the end |
//!
//! The protocols below them are in `protocol/`: types of their own, each with its rules and its model.

pub(crate) mod core;
pub(crate) mod cores;
pub(crate) mod doors;
pub(crate) mod forks;
pub(crate) mod inherit;
pub(crate) mod job;
pub(crate) mod machine;
pub(crate) mod order;
mod policy_code;
mod poll;
pub(crate) mod poll_context;
mod rescue;
pub(crate) mod serve;
mod share;
pub(crate) mod stack;
pub(crate) mod switch;
#[cfg(test)]
mod tests;
pub(crate) mod worker;

use crate::{inherit::Inherited, protocol::forked, sched::stack::Stack, tasks::TaskRef};
use std::{ptr::NonNull, sync::Arc};

/// A forked closure of the stacks of this scheduler.
pub(crate) type Forked = forked::Forked<Stack>;
pub(crate) type Kind = forked::Kind<Stack>;
pub(crate) type Taken = forked::Taken<Stack>;

/// A piece of work that a worker found.
#[derive(Debug)]
pub(crate) enum Work {
    /// Poll a task, or start a closure.
    Task(TaskRef),
    /// Run a stolen fork.
    Fork(StolenFork),
    /// Let a stack go on.
    Resume(Arc<Stack>),
}

impl Work {
    /// The level of the work.
    pub(crate) fn level(&self) -> u8 {
        match self {
            Work::Task(task) => task.level(),
            Work::Fork(forked) => forked.origin.level,
            Work::Resume(stack) => stack.level(),
        }
    }

    /// Whether it is one poll of a future.
    pub(crate) fn is_poll(&self) -> bool {
        matches!(self, Work::Task(task) if !task.is_closure())
    }
}

/// A fork that was taken out of a deque, and the level of its computation.
#[derive(Debug)]
pub(crate) struct StolenFork {
    pub(crate) taken: Taken,
    /// Whether it is for one certain worker, whose inbox it comes from.
    pub(crate) pinned: bool,
    pub(crate) origin: Origin,
}

impl StolenFork {
    /// Out of the deque of a stack, for any worker.
    pub(crate) fn new(taken: Taken, origin: Origin) -> Self {
        StolenFork {
            taken,
            pinned: false,
            origin,
        }
    }
}

/// What a fork has of the code that forked it.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) inherited: Option<Arc<Inherited>>,
    /// As which level it may wait; see `Stack`.
    pub(crate) waits_as: u8,
    /// The task to which that code belongs, which waits for the fork.
    pub(crate) task: Option<stack::TaskName>,
    /// The level at which it runs.
    pub(crate) level: u8,
    /// The stack in whose deque it was, and at which index.
    pub(crate) from: Option<(NonNull<Stack>, usize)>,
}

// SAFETY: the address is used as a shared reference only, and a stack is `Sync`.
unsafe impl Send for Origin {}
