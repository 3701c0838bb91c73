//! The life of work: what may cancel it, how long it may take, what it inherits, how much of it there may be.
//!
//! | what | for |
//! | --- | --- |
//! | [`CancellationToken`] | one signal for many: a tree of tokens, of which each cancels those below it |
//! | [`TaskTracker`] | the end of a number of tasks whose results nobody needs |
//! | [`task_scope`] | tasks that end before the code that started them goes on |
//! | [`with_deadline`], [`current_deadline`] | a limit for a piece of work and all the tasks that it spawns |
//! | [`LocalSet`] | tasks that stay on one thread, so that they need not be `Send` |
//! | [`LocalRuntime`] | the same with a runtime of its own |
//! | [`Local`] | a value for a piece of work and all the tasks that it spawns |
//! | [`LocalKey`] | a value for one future, which nothing inherits ([`task_local!`](crate::task_local)) |
//! | [`admit`], [`try_admit`] | a limit on how many tasks of a level there are at once (backpressure) |
//!
//! A single task is cancelled by [`JoinHandle::abort`](crate::JoinHandle::abort); a future by dropping it. What
//! happens with panics is a [`PanicPolicy`] of the runtime, and its end is
//! [`Runtime::shutdown`](crate::Runtime::shutdown).
//!
//! # Cancelling is cheap, on purpose
//!
//! Under overload cancellations come in waves, and a wave must make room instead of more work (Dissertation, 4.4.7).
//! Here the cancellation of a task makes no allocation, starts no thread and blocks no code: a flag is set, and the
//! task is queued once, at its own level, to be dropped. A task that waits to run already is not even queued again. The
//! cancellation of a token is one walk over its listeners, without recursion; it needs a list of the tokens below. The
//! test `a_wave_of_cancellations_under_overload_makes_room_at_once` counts it; `bench`'s `cancel-wave` measures it.

mod admission;
mod deadline;
mod held;
mod join_set;
mod local;
mod local_runtime;
mod local_set;
mod members;
mod scope;
mod task_local;
mod token;
mod tracker;

pub use admission::{Admission, AtCapacity, Capacity, admit, blocking_admit, try_admit};
pub use deadline::{WithDeadline, current_deadline, with_deadline};
pub use join_set::{JoinSet, JoinSetAt};
pub use local::{Local, WithLocal};
pub use local_runtime::{LocalOptions, LocalRuntime, LocalRuntimeEnterGuard};
pub use local_set::{LocalEnterGuard, LocalSet, spawn_local};
pub use scope::{TaskScope, task_scope};
#[doc(hidden)]
pub use task_local::Innermost;
pub use task_local::{AccessError, LocalKey, TaskLocalFuture};
pub use token::{CancellationToken, Cancelled, DropGuard, DropGuardRef};
pub use tracker::{TaskTracker, TaskTrackerToken, TaskTrackerWait};

pub use crate::{spawn::carried::Within, tasks::PanicPolicy};

pub(crate) use deadline::without_deadline;
