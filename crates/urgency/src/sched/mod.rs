//! The scheduler: workers, stacks, pools, and the ways in which a worker changes hands.
//!
//! Read [`run`] first: the loop of a thread that holds a worker. Then, in the order of the life of a
//! context:
//!
//! - [`mod@core`]: what a machine has, and [`job`]: what a program has; [`cores`]: which job a worker serves;
//! - [`schedule`]: the door for tasks; [`insert`]: how ready work gets in (announce, alert, wake);
//! - [`find`] and [`search`]: how a worker finds its next work, asks for forks, and goes idle; [`aged`]: which work of
//!   a level comes next; [`claim`]: how a worker comes out of the idle set, and into it;
//! - [`run`]: how work is run, and the scheduling point; [`poll_context`]: what a thread knows of its poll;
//! - [`worker`] and [`stack`]: the permission to run, and what runs;
//! - [`wait`]: how a stack waits, is abandoned, regains a worker;
//! - [`external`]: plain threads that enter;
//! - [`hand_off`]: how a worker goes to another thread; [`place`]: on which processor; [`threads`]: spare threads;
//!   [`idle_spin`]: how long one spins first;
//! - [`seats`]: rounds, quanta and fixed shares, if the runtime is not simply prompt; [`rounds`];
//! - [`reserved_seats`]: seats that wait for their level;
//! - [`queues`]: other orders within a level than aging, [`arrival`]: what goes there, [`asked`]: how the policy is
//!   asked, [`overflow`]: what is too much there;
//! - [`pinned`]: forks for one certain worker; [`pins`]: the processor of a worker that is pinned; [`held_back`]: forks
//!   for which no worker is woken;
//! - [`thread_options`]: how threads are made;
//! - [`poll`]: the thread in the poller, and events that take a worker over;
//! - [`relief`]: workers that are revoked from what does not give way, by the timer of
//!   [`relief_timer`](crate::protocol::relief_timer), and [`revoke`]: how; [`hunger`]: how forks reach workers that
//!   serve something less urgent; [`demotion`]: threads whose worker was revoked; [`reserve`]: workers beyond the
//!   processors; [`entitled`]: workers beyond what the process may use;
//! - [`shutdown`]: closing, and the account of what was left.
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
            Work::Fork(forked) => forked.level,
            Work::Resume(stack) => stack.level(),
        }
    }
}

/// A fork that was taken out of a deque, and the level of its computation.
#[derive(Debug)]
pub(crate) struct StolenFork {
    pub(crate) taken: Taken,
    pub(crate) level: u8,
    /// Whether it is for one certain worker, whose inbox it comes from.
    pub(crate) pinned: bool,
    pub(crate) origin: Origin,
}

impl StolenFork {
    /// Out of the deque of a stack, for any worker.
    pub(crate) fn new(taken: Taken, level: u8, origin: Origin) -> Self {
        StolenFork {
            taken,
            level,
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
}
