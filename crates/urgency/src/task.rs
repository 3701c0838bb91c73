//! Tasks as programs see them: to start one, to wait for it or end it, to give way in it.
//!
//! | what | for |
//! | --- | --- |
//! | [`spawn`], [`spawn_blocking`] | to start a task; the ways to do so are [compared](crate#how-to-spawn) |
//! | [`JoinHandle`], [`Shared`] | its result, for one waiter or for several |
//! | [`JoinError`] | why there is no result, with the panic of the task as a value |
//! | [`AbortHandle`] | the right to cancel a task, without its result |
//! | [`JoinSet`] | many tasks, whose results come in the order in which they end |
//! | [`LocalSet`], [`spawn_local`] | tasks that stay on one thread, so that they need not be `Send` |
//! | [`TaskTracker`] | many tasks whose end is awaited, and whose results are not |
//! | [`id`], [`try_id`] | the name of the task that runs |
//! | [`LocalKey`], by [`task_local!`](crate::task_local) | a value for one future, which nothing inherits |
//! | [`yield_now`], [`consume_budget`], [`coop`] | to let others of the same level run |
//! | [`unconstrained`] | not to, in the polls of one future |
//! | [`block_in_place`] | a call that blocks, in the middle of a task |

pub use crate::{
    life::{
        AccessError, JoinSet, JoinSetAt, LocalEnterGuard, LocalKey, LocalSet, TaskTracker,
        TaskTrackerToken, spawn_local,
    },
    runtime::{
        coop::{self, Unconstrained, consume_budget, unconstrained},
        yield_now::{YieldNow, yield_now},
    },
    sched::switch::block::blocking as block_in_place,
    spawn::{id, spawn, spawn_blocking, try_id},
    tasks::{AbortHandle, Id, JoinError, JoinErrorKind, JoinHandle, Shared},
};

/// The futures that methods of this module's types give.
pub mod futures {
    pub use crate::life::TaskLocalFuture;
}
