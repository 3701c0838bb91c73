//! Primitives that suspend the context and not the worker: locks, semaphores, channels, events.
//!
//! What Tokio has too has its names, signatures and error types, so that a program comes over by a change of its
//! imports; the blocking forms that Tokio has not, the order by levels and the inheritance come in addition.
//!
//! Each has two forms. The async form is a future. The `blocking_` form is for closures, where it suspends
//! the stack and its worker does something else meanwhile, and for plain threads, which it parks. Nothing
//! here belongs to a runtime: a lock can be shared by the tasks of two runtimes and by plain threads, and a
//! `static` can hold one.
//!
//! | what | for |
//! | --- | --- |
//! | [`Mutex`], [`Condvar`] | data for one at a time, and waiting for a change of it |
//! | [`RwLock`] | data for many readers or one writer |
//! | [`Semaphore`] | so many at a time |
//! | [`OnceCell`], [`SetOnce`] | data that is made when it is first needed; data that is set once and waited for |
//! | [`Barrier`] | all wait until all have come |
//! | [`Notify`] | an event without data |
//! | [`mpsc`] | a queue of messages to one receiver, bounded (backpressure) or not |
//! | [`oneshot`] | one message |
//! | [`broadcast`] | each message to each receiver |
//! | [`watch`] | the latest of a sequence of values |
//! | [`mod@promise`] | a value that is filled in once, for any number of waiters |
//!
//! To wait for several things at once: [`future`](crate::future) and [`select!`](crate::select).
//!
//! # What holds for all of them
//!
//! - *Order.* Waiters are served in the order of arrival within a level, and more urgent levels first. What is released
//!   while there are waiters is handed to the waiter whose turn it is, so a newcomer does not barge in (but see
//!   [`Mutex`]: until a woken waiter has come to a worker). A less urgent waiter can starve if more urgent ones never
//!   stop coming, as everywhere else in this runtime. A plain thread queues as the most urgent level.
//! - *Inheritance.* Code that waits for a [`Mutex`], or for a closure that changes the value of a [`watch`] in its
//!   place, raises the task that holds it. No other wait in here raises what it is for: a permit, a reader, a message,
//!   an event, the code that fills a [`OnceCell`]. If more urgent work fills all processors, such a wait of urgent code
//!   for less urgent code does not end.
//! - *Cancelling loses nothing.* Any of the futures can be dropped at any time. A permit, a lock or a place in a
//!   channel that was handed to a dropped future goes to the next waiter.
//! - *No task hogs a worker.* Each operation that may wait is a scheduling point. A task that does many operations that
//!   never have to wait suspends now and then for the sake of others of its level.
//! - *Cost.* An operation that need not wait costs one or two locked instructions, and no allocation. But `watch`
//!   allocates for each value, and `mpsc` and `broadcast` allocate where nothing is left over from earlier messages.
//!
//! These are the synchronisation primitives that the papers' programs are made of (Dissertation, 2.4 and 4.4.5).

// | file | what |
// | --- | --- |
// | `lists.rs`, `levels.rs` | the waiters in their order, and what was handed over to them |
// | `queue.rs` | the wait queue: a word for the fast path, and the lists under a lock. Read it first |
// | `semaphore.rs`, `notify.rs` | the two that the others are built from |
// | `permit.rs` | a semaphore's future and its permits |
// | `grant.rs` | how a semaphore's waiter learns that it was served |
// | `raw.rs`, `mutex.rs` | the mutex, without and with its data |
// | `inherit.rs`, `self_deadlock.rs` | its holder's inherited level; tasks that wait for themselves |
// | `rwlock.rs`, `once_cell.rs`, `set_once.rs` | semaphores with data |
// | `guard.rs` | the guards of locks, and of parts of what they guard |
// | `condvar.rs`, `barrier.rs`, `watch.rs`, `broadcast.rs`, `promise.rs` | a `Notify` with data |
// | `message.rs` | a broadcast message and how many receivers still want it |
// | `mpsc.rs`, `oneshot.rs` | channels with their own protocols |
// | `once.rs`, `weak.rs` | what the two cells, and the weak senders of two channels, have in common |
// | `error.rs` | the errors that several of them share |
// | `hooks.rs` | what is needed of the floors above |
// | `loom.rs` | models of all of it |

/// A function that is `const` but for models, whose types cannot be made in a constant.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(urgency_loom))]
        $(#[$meta])*
        $vis const fn $($rest)*

        #[cfg(urgency_loom)]
        $(#[$meta])*
        $vis fn $($rest)*
    };
}
use const_fn;

mod error;
mod grant;
#[cfg(not(urgency_loom))]
mod guard;
mod hooks;
mod inherit;
mod levels;
mod lists;
#[cfg_attr(urgency_loom, allow(dead_code, reason = "used in a model only"))]
mod message;
pub mod mpsc;
mod notify;
pub mod oneshot;
mod permit;
mod queue;
mod raw;
mod self_deadlock;
mod semaphore;
mod weak;

#[cfg(not(urgency_loom))]
mod barrier;
#[cfg(not(urgency_loom))]
pub mod broadcast;
#[cfg(not(urgency_loom))]
mod condvar;
#[cfg(all(test, urgency_loom))]
mod loom;
#[cfg(not(urgency_loom))]
mod mutex;
#[cfg(not(urgency_loom))]
mod once;
#[cfg(not(urgency_loom))]
mod once_cell;
#[cfg(not(urgency_loom))]
pub mod promise;
#[cfg(not(urgency_loom))]
mod rwlock;
#[cfg(not(urgency_loom))]
mod set_once;
#[cfg(not(urgency_loom))]
pub mod watch;

/// Futures under Tokio's path to them.
pub mod futures {
    pub use super::notify::{Notified, OwnedNotified};
}

pub use error::{AcquireError, TryAcquireError, TryLockError};
pub use notify::{Notified, NotifiedBy, Notify, OwnedNotified};
pub use permit::{Acquire, OwnedSemaphorePermit, Permit, SemaphorePermit};
pub use self_deadlock::{SelfDeadlocks, self_deadlocks};
pub use semaphore::Semaphore;

#[cfg(not(urgency_loom))]
pub use {
    barrier::{Barrier, BarrierWait, BarrierWaitResult},
    condvar::Condvar,
    guard::{Part, Read, Whole, Write},
    mutex::{Lock, MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard},
    once_cell::{OnceCell, SetError},
    promise::{BrokenPromise, Filler, Promise, promise},
    rwlock::{
        OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
        RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
    },
    set_once::{SetOnce, SetOnceError},
};
