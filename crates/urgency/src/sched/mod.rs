//! The scheduler: workers, stacks, pools, and the ways in which a worker changes hands.
//!
//! Read [`run`] first: the loop of a thread that holds a worker, and the scheduling point. Then, by what they are
//! about:
//!
//! - *What there is.* [`mod@core`]: what a machine has, and [`job`]: what a program has; [`worker`] and [`stack`]: the
//!   permission to run, and what runs; [`pool`]: the ready contexts of a level; [`poll_context`]: what a thread knows
//!   of its poll.
//! - *How work gets in, and out.* [`schedule`]: the door for tasks; [`insert`]: announce, alert, wake; [`find`], then
//!   [`search`]: a worker's next work, or none; [`aged`]: which work of a level comes next; [`claim`]: a worker comes
//!   out of the idle set, and goes into it; [`idle_spin`]: how long it looks before.
//! - *How a worker changes threads.* [`wait`]: a stack waits, is abandoned, comes back; [`block`]: synchronous code
//!   waits; [`hand_off`]: a worker goes to another thread; [`place`]: on which processor, and [`pins`]: on the only
//!   one; [`threads`] and [`thread_options`]: spare threads, and how threads are made; [`external`]: plain threads that
//!   enter.
//! - *Events and relief.* [`poll`]: the thread in the poller; [`relief`]: which stacks lose their workers, by the timer
//!   of [`relief_timer`](crate::protocol::relief_timer); [`silence`]: what it sees of a stack; [`revoke`]: how, and how
//!   a worker comes back; [`overrunning`]: stacks that go on without one; [`demotion`]: their threads are lowered.
//! - *Forks.* [`hunger`]: which workers would come for a fork; [`held_back`]: forks for which no worker is woken;
//!   [`pinned`]: forks for one certain worker.
//! - *How many workers run.* [`reserve`]: workers beyond the processors; [`entitled`]: workers beyond what the process
//!   may use; [`cores`]: which job a worker serves.
//! - *Other schedules than prompt.* [`seats`], then [`rounds`] and [`reserved_seats`].
//! - *Other orders than aging.* [`queues`]; [`arrival`]: what goes there; [`asked`]: how the policy is asked;
//!   [`overflow`]: what is too much there.
//! - *What other rooms ask for.* [`caller`]: what the scheduler knows of the calling code; [`inheriting`]: code runs
//!   with what it inherits; [`capacities`]: limits of admission; [`shutdown`]: the end, and the account of what was
//!   left.
//!
//! The protocols below them are in `protocol/`: types of their own, each with its rules and its model.

pub(crate) mod aged;
pub(crate) mod arrival;
mod asked;
pub(crate) mod block;
pub(crate) mod caller;
pub(crate) mod capacities;
pub(crate) mod claim;
pub(crate) mod core;
pub(crate) mod cores;
#[cfg(test)]
mod costs;
pub(crate) mod demotion;
pub(crate) mod entitled;
mod external;
pub(crate) mod find;
pub(crate) mod hand_off;
pub(crate) mod held_back;
mod hunger;
pub(crate) mod idle_spin;
pub(crate) mod inheriting;
mod insert;
pub(crate) mod job;
mod overflow;
mod overrunning;
mod pinned;
pub(crate) mod pins;
mod place;
pub(crate) mod poll;
pub(crate) mod poll_context;
pub(crate) mod pool;
mod proxy;
pub(crate) mod queues;
pub(crate) mod relief;
mod reserve;
pub(crate) mod reserved_seats;
mod revoke;
pub(crate) mod rounds;
pub(crate) mod run;
mod schedule;
mod search;
pub(crate) mod seats;
pub(crate) mod shutdown;
mod silence;
pub(crate) mod stack;
#[cfg(test)]
mod steps;
pub(crate) mod thread_options;
pub(crate) mod threads;
pub(crate) mod wait;
pub(crate) mod worker;

use crate::{inherit::Inherited, protocol::forked, sched::stack::Stack, tasks::TaskRef};
use std::sync::Arc;

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
}
