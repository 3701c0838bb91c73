//! The interface of [rayon-core](https://docs.rs/rayon-core) on the Urgency runtime.
//!
//! With
//!
//! ```toml
//! [patch.crates-io]
//! rayon-core = { path = ".../crates/rayon-core" }
//! ```
//!
//! rayon's parallel iterators, and every crate that uses rayon, run on Urgency: with levels, preemptible, and
//! without wasting a core while they wait. Their code need not change; see "What differs from rayon".
//!
//! # What maps to what
//!
//! | rayon | here |
//! | --- | --- |
//! | a pool of n threads | a runtime with n workers; threads are made as stacks wait |
//! | the global pool | the global runtime of Urgency, unless `build_global` made one |
//! | `join` on a pool's thread | `join` of Urgency |
//! | `install`, and everything from outside | a visit: a thread of the runtime runs it, the caller waits |
//! | a thread's index | the number of the worker that the stack holds |
//! | `broadcast` | one closure for each worker's number |
//!
//! Calls inside an Urgency task stay where they are: on that task's runtime, at its level. So a parallel
//! iterator in a background task is background work. [`urgency::pool_at`] makes a [`ThreadPool`] of one level
//! of a runtime, and [`urgency::place_pools`] places the pools of crates that make their own.
//!
//! # What differs from rayon
//!
//! - A closure may go on with another index after a call into this crate; between two such calls its index is
//!   its own. So a thread's name, and the number that its start handler was told, need not be its index. (They are
//!   where the threads are the program's: see below.)
//! - A stack that waits runs nothing but what it waits for, and what it spawned itself meanwhile. So a lock held across
//!   `join` meets no unrelated closure (rayon#592), and recursion through stolen work does not deepen a stack. (A yield
//!   runs what it finds, as in rayon, but of its thread's own closures the oldest, where rayon's runs the youngest.)
//! - A pool may have more threads than workers, since a stack that waits keeps its thread. Start and exit
//!   handlers are called on each; beyond the n-th their index is taken modulo n. Inside a handler, the
//!   closures of `join`, scopes and `install` of its pool run on that thread, and `broadcast` panics, as does a scope's
//!   `spawn_broadcast`.
//! - A [`broadcast`] runs one closure for each *index*, on the thread that has the index at that moment. One thread may
//!   run several of them and another one none, and later work may run on a third. So a thread-local that a broadcast
//!   sets need not be there for later work. A [start handler](ThreadPoolBuilder::start_handler) reaches each thread.
//!   And where the threads are the program's, each keeps its index, and a broadcast reaches each.
//! - [`num_threads`](ThreadPoolBuilder::num_threads) bounds the closures that *compute* at a time. A closure that
//!   sleeps in the kernel (for a lock, a time, a read) does not count: its worker does other work meanwhile. So more
//!   closures may be in progress, and the pool may have many more threads: 2,000 items that hold one `std` mutex for
//!   1 ms each were 483 at a time in a pool of two. Where the number is to bound something else (connections, memory),
//!   use a semaphore of that number, or call [`current_thread_index`] first in each closure. The call ties the worker
//!   to the closure until that next calls into this crate or into Urgency, also while it sleeps (the same items were 2
//!   at a time).
//! - With [`ThreadPoolBuilder::spawn_handler`], [`ThreadPoolBuilder::build_scoped`] or
//!   [`ThreadPoolBuilder::use_current_thread`] the threads are the program's and there are no others; then a
//!   stack that waits runs other work on top of itself, as in rayon.

mod broadcast;
mod builder;
mod configuration;
mod error;
mod handler;
mod join;
mod pool;
mod registry;
mod scope;
mod spawn;
mod threads;
pub mod urgency;

pub use broadcast::{BroadcastContext, broadcast, spawn_broadcast};
pub use builder::ThreadPoolBuilder;
#[allow(deprecated, reason = "part of the interface")]
pub use configuration::{Configuration, initialize};
pub use error::ThreadPoolBuildError;
pub use join::{FnContext, join, join_context};
pub use pool::{
    ThreadPool, Yield, current_num_threads, current_thread_has_pending_tasks, current_thread_index,
    max_num_threads, yield_local, yield_now,
};
pub use scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use spawn::{spawn, spawn_fifo};
pub use threads::ThreadBuilder;
