//! The scheduler: workers, stacks, pools, and the ways in which a worker changes hands.
//!
//! Read [`run`] first: the loop of a thread that holds a worker. Then, in the order of the life of a
//! context:
//!
//! - [`shared`]: what all workers share;
//! - [`insert`]: how ready work gets in (announce, alert, wake);
//! - [`find`] and [`search`]: how a worker finds its next work, asks for jobs, and goes idle;
//! - [`run`]: how work is run, and the scheduling point; [`here`]: what a thread knows of its poll;
//! - [`worker`] and [`stack`]: the permission to run, and what runs;
//! - [`wait`]: how a stack waits, is abandoned, regains a worker;
//! - [`guests`]: plain threads that enter;
//! - [`hand_off`]: how a worker goes to another thread; spare threads; [`patience`]: how long one spins first;
//! - [`centre`]: rounds, quanta and fixed shares, if the runtime is not simply prompt; [`rounds`];
//! - [`waiting`]: seats that wait for their level;
//! - [`queues`]: other orders within a level than aging, [`arrival`]: what goes there, [`overflow`]: what
//!   is too much there;
//! - [`personal`]: jobs for one certain worker;
//! - [`thread_options`]: how threads are made;
//! - [`poll`]: the thread in the poller, and events that take a worker over;
//! - [`relief`]: workers that are revoked from what does not give way, by the timer of [`alarm`], and [`revoke`]: how;
//!   [`hunger`]: how forks reach workers that serve something less urgent; [`fetch`]: polls whose thread lost its
//!   processor; [`reserve`]: workers beyond the processors;
//! - [`shutdown`]: closing, and the account of what was left.
//!
//! The protocols below them are types of their own, each with its rules and its model: [`attention`],
//! [`suspension`], [`mailbox`], [`ready`], [`groups`], [`idle`], [`lookout`], [`lowered`], [`served`], [`ring`], and the deque in
//! `fork`.

pub(crate) mod alarm;
pub(crate) mod attention;
pub(crate) mod groups;
pub(crate) mod idle;
pub(crate) mod lookout;
pub(crate) mod lowered;
pub(crate) mod mailbox;
pub(crate) mod ready;
pub(crate) mod ring;
pub(crate) mod served;
#[cfg(all(test, not(urgency_loom)))]
mod steps;
pub(crate) mod suspension;
#[cfg(all(test, urgency_loom))]
mod waiting_loom;

#[cfg(not(urgency_loom))]
mod loop_modules {
    use crate::{fork::job::Job, life::Inherited, sched::stack::Stack, task::TaskRef};
    use std::sync::Arc;

    /// A piece of work that a worker found.
    #[derive(Debug)]
    pub(crate) enum Work {
        /// Poll a task, or start a closure.
        Task(TaskRef),
        /// Run a stolen job.
        Job(StolenJob),
        /// Let a stack go on.
        Resume(Arc<Stack>),
    }

    impl Work {
        /// The level of the work.
        pub(crate) fn level(&self) -> u8 {
            match self {
                Work::Task(task) => task.level(),
                Work::Job(job) => job.level,
                Work::Resume(stack) => stack.level(),
            }
        }
    }

    /// A job that was taken out of a deque, and the level of its computation.
    #[derive(Debug)]
    pub(crate) struct StolenJob {
        pub(crate) job: *const Job,
        pub(crate) level: u8,
        /// Whether it is for one certain worker, whose inbox it comes from.
        pub(crate) personal: bool,
        pub(crate) origin: Origin,
    }

    /// What a job has of the code that forked it.
    #[derive(Debug)]
    pub(crate) struct Origin {
        pub(crate) inherited: Option<Arc<Inherited>>,
        /// As which level it may wait; see `Stack`.
        pub(crate) waits_as: u8,
    }

    // SAFETY: whoever took a job out of a deque owns the right to run it, on any thread: `join` and
    // `scope` require `Send` of their closures.
    unsafe impl Send for StolenJob {}
}
#[cfg(not(urgency_loom))]
pub(crate) use loop_modules::{Origin, StolenJob, Work};

#[cfg(not(urgency_loom))]
pub(crate) mod arrival;
#[cfg(not(urgency_loom))]
pub(crate) mod centre;
#[cfg(not(urgency_loom))]
pub(crate) mod fetch;
#[cfg(not(urgency_loom))]
pub(crate) mod find;
#[cfg(not(urgency_loom))]
mod guests;
#[cfg(not(urgency_loom))]
pub(crate) mod hand_off;
#[cfg(not(urgency_loom))]
pub(crate) mod here;
#[cfg(not(urgency_loom))]
mod hunger;
#[cfg(not(urgency_loom))]
mod insert;
#[cfg(not(urgency_loom))]
mod overflow;
#[cfg(not(urgency_loom))]
pub(crate) mod patience;
#[cfg(not(urgency_loom))]
mod personal;
#[cfg(not(urgency_loom))]
pub(crate) mod poll;
#[cfg(not(urgency_loom))]
pub(crate) mod pool;
#[cfg(not(urgency_loom))]
pub(crate) mod queues;
#[cfg(not(urgency_loom))]
pub(crate) mod relief;
#[cfg(not(urgency_loom))]
mod reserve;
#[cfg(not(urgency_loom))]
mod revoke;
#[cfg(not(urgency_loom))]
pub(crate) mod rounds;
#[cfg(not(urgency_loom))]
pub(crate) mod run;
#[cfg(not(urgency_loom))]
mod search;
#[cfg(not(urgency_loom))]
pub(crate) mod shared;
#[cfg(not(urgency_loom))]
pub(crate) mod shutdown;
#[cfg(not(urgency_loom))]
pub(crate) mod stack;
#[cfg(not(urgency_loom))]
pub(crate) mod thread_options;
#[cfg(not(urgency_loom))]
pub(crate) mod wait;
#[cfg(not(urgency_loom))]
pub(crate) mod waiting;
#[cfg(not(urgency_loom))]
pub(crate) mod worker;
