//! Schedulers: which level a worker serves, and which ready context of that level comes next.
//!
//! The defaults need no choice: [prompt](Schedule::Prompt) between levels, [aging](Kind::Aging) within a level.
//! `docs/which-scheduler.md` says when another one is better, with measurements. The types here come from the crate
//! `urgency-policy`: the runtime and the simulator (`urgency sim`) execute the same lines.
//!
//! # Between levels
//!
//! [`Builder::schedule`](crate::Builder::schedule) takes one of these:
//!
//! | schedule | a worker serves | while its level has no work |
//! | --- | --- | --- |
//! | [`Schedule::Prompt`] | the most urgent level that has work | |
//! | a [`Criterion`], or [`Rounds`] | in each round a level drawn by shares | the most urgent one that has work |
//! | [`WinnerTakeAll`], for two levels | in each round the urgent one if it has work when the round begins | the other |
//! | [`Adaptive`] | in each quantum the level that it is allotted to, by how well the levels used their workers | it waits |
//! | [`FixedShares`] | its level | it waits, or serves another ([`Otherwise`]) |
//!
//! Rounds and quanta end at scheduling points, and where code comes to none, a millisecond later (relief). Rounds
//! shorter than a millisecond last one. In a runtime without work nothing ticks.
//!
//! Where workers wait for their level, one may be idle while another level has work: that is what such a
//! schedule is for. It is never idle while its own level has any.
//!
//! # Within a level
//!
//! [`Builder::pool`](crate::Builder::pool) and [`Builder::pool_at`](crate::Builder::pool_at) take a [`Kind`], or a
//! [`PoolOrder`] of your own. These are built in:
//!
//! | kind | names | order |
//! | --- | --- | --- |
//! | [`Kind::Aging`] | `aging` | oldest first over all workers, abandoned stacks before |
//! | [`Kind::Proactive`] | `proactive`, `proactive-newest`, `proactive-aging` | a set for each worker; waiting stacks' forks are donated to a random one; thieves pick victim and entry at random |
//! | [`Kind::Queues`] | `fifo`, `lifo`, `slot`, `alternating`, `mix`, `reverse`, ... | a queue for each worker, by a [`Plan`]: its [`Order`], how work is [shared](Sharing), what happens when it is full ([`Overflow`]) |
//!
//! [`Kind::NAMED`] lists all names. Under every kind the runtime stays greedy: a worker that would find
//! nothing where the policy sends it takes the oldest entry of any queue before it sleeps. What differs is
//! the order, so a task under a stack-like order may wait for as long as newer ones come, and a task that
//! spins for another needs [`yield_far`](crate::yield_far).
//!
//! # Between runtimes
//!
//! Where several runtimes [share their workers](crate::Builder::share_workers_with), a core policy decides how many
//! each has: see [`cores`], and [`Builder::core_policy`](crate::Builder::core_policy).
//!
//! # Your own
//!
//! [`Builder::schedule`](crate::Builder::schedule) takes a [`LevelSchedule`] ([`Schedule::own`]), and
//! [`Builder::pool`](crate::Builder::pool) a [`PoolOrder`]; the built-in ones implement the same traits. What these
//! traits talk about (seats, places, sources) is in the crate `urgency-policy`. `examples-external/own-policy` brings
//! one of each, in a runtime and in the simulator.
//!
//! # Stages and silos
//!
//! A *stage* is a level with workers and an order of its own: fixed shares between levels, a pool policy at
//! each, and `at(stage).spawn` moves work from stage to stage. A *silo* is a runtime of its own: any number live
//! side by side, and handles are awaited across them. `examples/stages.rs` has both.

pub use urgency_policy::cores;
pub use urgency_policy::level::{
    Adaptive, AdaptiveError, Criterion, CriterionError, FixedShares, LevelSchedule, Otherwise,
    Parameters, Rounds, Schedule, ScheduleError, WinnerTakeAll,
};
pub use urgency_policy::pool::{
    Amount, AnyOrder, Asking, Kind, KindError, Layout, Order, Overflow, Pick, Plan, PlanError,
    PoolOrder, Sharing, Victims,
};
