//! Urgency: a task runtime in which urgent work goes first.
#![cfg_attr(urgency_loom, allow(dead_code, unused_imports, missing_docs))]

#[cfg(not(urgency_loom))]
mod account;
#[cfg(not(urgency_loom))]
mod block;
mod facade;
mod fork;
#[cfg(not(urgency_loom))]
pub mod fs;
#[cfg(not(urgency_loom))]
pub mod io;
#[cfg(urgency_loom)]
mod io {
    pub(crate) mod readiness;
}
#[cfg(not(urgency_loom))]
pub mod level;
#[cfg(not(urgency_loom))]
pub mod net;
#[cfg(not(urgency_loom))]
mod os;
#[cfg(not(urgency_loom))]
mod runtime;
mod sched;
#[cfg(not(urgency_loom))]
mod spawn;
mod task;
#[cfg(not(urgency_loom))]
pub mod time;
#[cfg(not(urgency_loom))]
mod yield_now;

#[cfg(not(urgency_loom))]
pub use {
    account::{LatencyHistogram, LevelStats, Stats, WorkerLevelStats, WorkerStats},
    block::{block_on, blocking},
    fork::{Scope, join, scope},
    level::LevelId,
    runtime::{BuildError, Builder, MAX_WORKERS, Runtime},
    sched::shutdown::{Report, Shutdown},
    spawn::{current_level, scheduling_point, spawn, spawn_at, spawn_fn, spawn_fn_at},
    task::{Handle, Shared, WaitError, WaitErrorKind},
    urgency_levels::levels,
    yield_now::{YieldNow, yield_now},
};
