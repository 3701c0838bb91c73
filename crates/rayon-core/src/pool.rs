//! [`ThreadPool`], and what a thread can ask about the pool that it is in.

use crate::{
    broadcast::{BroadcastContext, broadcast_in, spawn_broadcast_in},
    error::ThreadPoolBuildError,
    handler,
    registry::Registry,
    scope::{Scope, ScopeFifo, in_scope, in_scope_fifo},
    spawn::{spawn_fifo_in, spawn_in},
};
use std::{fmt, sync::Arc};
use urgency::{MAX_WORKERS, embed};

/// A pool: a runtime of its own, or a level of the program's (see
/// [`urgency::pool_at`](crate::urgency::pool_at)).
///
/// When it is dropped, what was spawned on it still runs; then its threads end.
pub struct ThreadPool {
    pub(crate) registry: Arc<Registry>,
}

impl ThreadPool {
    pub(crate) fn of(registry: Arc<Registry>) -> ThreadPool {
        ThreadPool { registry }
    }

    /// Builds a pool.
    ///
    /// # Errors
    ///
    /// As [`ThreadPoolBuilder::build`](crate::ThreadPoolBuilder::build).
    #[deprecated(note = "use `ThreadPoolBuilder::build`")]
    #[allow(deprecated, reason = "part of the interface")]
    pub fn new(
        configuration: crate::Configuration,
    ) -> Result<ThreadPool, Box<dyn std::error::Error>> {
        configuration.build()
    }

    /// Runs `op` on a thread of this pool and returns what it returns. Inside, the free functions of this
    /// crate mean this pool.
    ///
    /// # Panics
    ///
    /// With the panic of `op`.
    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        self.registry.with_here(|here| here.run(|_| op()))
    }

    /// [`broadcast`](crate::broadcast()) on this pool.
    ///
    /// # Panics
    ///
    /// With the first panic of `op`.
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        self.registry.with_here(|here| broadcast_in(here, op))
    }

    /// How many threads of this pool compute at a time. Others may sleep in the middle of a closure: see
    /// [`ThreadPoolBuilder::num_threads`](crate::ThreadPoolBuilder::num_threads).
    #[inline]
    pub fn current_num_threads(&self) -> usize {
        self.registry.host.workers()
    }

    /// The index of the calling thread, if it is in this pool. See [`current_thread_index`].
    #[inline]
    pub fn current_thread_index(&self) -> Option<usize> {
        self.if_here(current_thread_index)
    }

    /// Whether the calling thread has forks of its own left to run, if it is in this pool.
    #[inline]
    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        self.if_here(current_thread_has_pending_tasks)
    }

    /// [`join`](crate::join()) on this pool.
    ///
    /// # Panics
    ///
    /// With the panic of a closure.
    pub fn join<A, B, RA, RB>(&self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| crate::join(oper_a, oper_b))
    }

    /// [`scope`](crate::scope()) on this pool.
    ///
    /// # Panics
    ///
    /// With the first panic inside.
    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| crate::scope(op))
    }

    /// [`scope_fifo`](crate::scope_fifo) on this pool.
    ///
    /// # Panics
    ///
    /// With the first panic inside.
    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| crate::scope_fifo(op))
    }

    /// A scope whose closures run on this pool, and whose body runs on the calling thread.
    ///
    /// # Panics
    ///
    /// With the first panic inside.
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        self.registry.with_here(|here| in_scope(&here.host, op))
    }

    /// As [`ThreadPool::in_place_scope`], with closures that begin in the order in which they were spawned.
    ///
    /// # Panics
    ///
    /// With the first panic inside.
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        self.registry
            .with_here(|here| in_scope_fifo(&here.host, op))
    }

    /// [`spawn`](crate::spawn()) on this pool.
    pub fn spawn<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.registry.with_here(|here| spawn_in(here.clone(), op));
    }

    /// [`spawn_fifo`](crate::spawn_fifo) on this pool.
    pub fn spawn_fifo<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.registry
            .with_here(|here| spawn_fifo_in(here.clone(), op));
    }

    /// [`spawn_broadcast`](crate::spawn_broadcast) on this pool.
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        self.registry.with_here(|here| spawn_broadcast_in(here, op));
    }

    /// [`yield_now`], if the calling thread is in this pool.
    pub fn yield_now(&self) -> Option<Yield> {
        self.if_here(yield_now)
    }

    /// [`yield_local`], if the calling thread is in this pool.
    pub fn yield_local(&self) -> Option<Yield> {
        self.if_here(yield_local)
    }

    fn if_here<T>(&self, ask: impl FnOnce() -> Option<T>) -> Option<T> {
        let host = &self.registry.host;
        let is_here = host.is_here() || handler::runs_for(host);
        is_here.then(ask).flatten()
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("num_threads", &self.current_num_threads())
            .field("host", &self.registry.host)
            .finish()
    }
}

/// What a yield did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// Something else ran.
    Executed,
    /// There was nothing to run.
    Idle,
}

fn yielded(ran: bool) -> Yield {
    if ran { Yield::Executed } else { Yield::Idle }
}

/// The most threads that a pool can have run at a time. More are reduced to it.
pub fn max_num_threads() -> usize {
    MAX_WORKERS
}

/// How many threads of the current pool compute at a time: the number of workers of the calling code's runtime, or else
/// of the global pool. Others may sleep in the middle of a closure: see
/// [`ThreadPoolBuilder::num_threads`](crate::ThreadPoolBuilder::num_threads).
pub fn current_num_threads() -> usize {
    embed::workers().unwrap_or_else(|| Registry::current().host.workers())
}

/// The index of the calling thread in its pool, from 0; `None` outside any.
///
/// It is the number of the worker that the calling stack holds. No other thread of the pool has the same
/// before this one next calls into this crate or into Urgency; after that it may be another. The call ties
/// the worker to the thread until then: urgent work does not take it away meanwhile, nor does other work while the
/// thread sleeps in the kernel.
#[inline]
pub fn current_thread_index() -> Option<usize> {
    embed::worker_index().or_else(handler::index)
}

/// Whether the calling thread has forks of its own left to run; `None` outside any pool.
#[inline]
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    embed::has_local_jobs().or_else(in_handler_without_work)
}

/// Runs a fork of the calling thread if it has one, also a broadcast's; otherwise lets other ready work of the pool go
/// first; `None` outside any pool.
pub fn yield_now() -> Option<Yield> {
    run_local_job().map(|ran| yielded(ran || embed::give_way().unwrap_or(false)))
}

/// Runs a fork of the calling thread if it has one, also a broadcast's; `None` outside any pool.
pub fn yield_local() -> Option<Yield> {
    run_local_job().map(yielded)
}

/// As [`embed::run_local_job`]. The thread of a handler has no work yet, or none any more.
fn run_local_job() -> Option<bool> {
    embed::run_local_job().or_else(in_handler_without_work)
}

fn in_handler_without_work() -> Option<bool> {
    handler::index().map(|_| false)
}

/// The error of the deprecated constructors.
pub(crate) type BoxedError = Box<dyn std::error::Error>;

pub(crate) fn boxed(error: ThreadPoolBuildError) -> BoxedError {
    Box::new(error)
}
