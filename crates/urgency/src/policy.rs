//! Schedulers: which level a worker serves, and which ready context of that level comes next.
//!
//! The defaults need no choice: [prompt](Schedule::Prompt) between levels. `docs/which-scheduler.md` says when another
//! one is better, with measurements. The types here are those of the crate `urgency-policy`: the runtime and the simulator
//! (`urgency sim`) execute the same lines.
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
//! Where workers wait for their level, one may be idle while another level has work: that is what such a schedule is for.
//! It is never idle while its own level has any.

pub use urgency_policy::level::{
    Adaptive, AdaptiveError, Criterion, CriterionError, FixedShares, Otherwise, Parameters, Rounds,
    Schedule, ScheduleError, WinnerTakeAll,
};
