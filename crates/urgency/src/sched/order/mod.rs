//! The ready contexts of a level, and which of them comes next.
//!
//! An order within a level is policy code (`urgency_policy::pool`). What is here are the structures that the policy
//! talks about, and the looks that it puts in order. The default is aging: the oldest context runs first.
//!
//! Read [`pools`] first: the pools of a job, and the words that say which of them have something; [`pool`]: what the
//! pool of a level holds; [`lists`]: its regular queue; and [`entry`]: a hint that something is ready. Then [`aged`]:
//! what a worker looks at under aging, in that order; [`close_look`]: how seldom it looks at all of it where there are
//! many workers; and [`notes`]: what it notes of a level. The other four files are for all other orders: [`queues`]: a
//! queue for each worker, and shared ones; [`arrival`]: what goes there, and at which worker; [`asked`]: how a policy
//! is asked, which may be a program's own; [`overflow`]: a queue that all workers share.
//!
//! An entry that a look finds goes to [`serve`](super::serve), which claims it. Which level is looked at is the
//! decision of [`share`](super::share).

pub(super) mod aged;
pub(crate) mod arrival;
mod asked;
pub(super) mod close_look;
pub(crate) mod entry;
pub(super) mod lists;
pub(super) mod notes;
mod overflow;
pub(crate) mod pool;
pub(crate) mod pools;
pub(super) mod queues;
