//! Tasks as programs see them: to start one, to wait for it or end it, to give way in it.
//!
//! | what | for |
//! | --- | --- |
//! | [`spawn`] | starts a task; the ways to do so are [compared](crate#how-to-spawn) |
//! | [`JoinHandle`], [`Shared`] | its result, for one waiter or for several; [`JoinError`]: there is none, because of its panic or an end before it |
//! | [`JoinSet`], [`AbortHandle`] | many tasks, whose results come in the order in which they end |
//! | [`spawn_blocking`], [`block_in_place`] | calls that block the thread |
//! | [`TaskTracker`] | the end of many tasks without results |
//! | [`yield_now`], [`coop`] | to let others of the same level run |

pub use crate::{
    life::{JoinSet, TaskTracker, TaskTrackerToken},
    runtime::{
        coop,
        yield_now::{YieldNow, yield_now},
    },
    sched::block::blocking as block_in_place,
    spawn::{id, spawn, spawn_blocking, try_id},
    tasks::{AbortHandle, Id, JoinError, JoinErrorKind, JoinHandle, Shared},
};
