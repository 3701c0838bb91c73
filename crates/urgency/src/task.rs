//! Tasks as programs see them: to start one, to wait for it or end it, to give way in it.
//!
//! | what | for |
//! | --- | --- |
//! | [`spawn`] | starts a task; the ways to do so are [compared](crate#how-to-spawn) |
//! | [`Handle`], [`Shared`] | its result, for one waiter or for several; [`WaitError`]: there is none |
//! | [`JoinSet`], [`AbortHandle`] | many tasks, whose results come in the order in which they end |
//! | [`JoinError`] | the panic of a task as a value |
//! | [`yield_now`], [`coop`] | to let others of the same level run |

pub use crate::{
    life::{AbortHandle, JoinSet},
    runtime::{
        coop,
        yield_now::{YieldNow, yield_now},
    },
    spawn::spawn,
    tasks::{Handle, JoinError, Shared, WaitError, WaitErrorKind},
};
