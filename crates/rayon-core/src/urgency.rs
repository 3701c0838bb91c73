//! What this crate adds to rayon's interface: pools at a level of a runtime.
//!
//! Code that runs in an Urgency task needs nothing of it: there, parallel iterators run on that task's
//! runtime and at its level.

use crate::{ThreadPool, registry::Registry};
use urgency::{LevelId, Runtime, embed::Host};

/// A pool that is one level of `runtime`: what is installed, joined or spawned there runs on that runtime's
/// workers, at that level, beside everything else.
///
/// Dropping the pool ends nothing. When the runtime has ended, the pool still works, with threads that end
/// when they find nothing to do.
///
/// # Panics
///
/// If the runtime has no such level.
///
/// # Examples
///
/// ```
/// urgency::levels! { App: Interactive > Batch }
/// let runtime = urgency::Runtime::builder().levels::<App>().build()?;
/// let batch = rayon_core::urgency::pool_at(&runtime, Batch);
/// batch.install(|| {
///     assert_eq!(urgency::current_level(), Batch.into());
///     rayon_core::join(|| 6, || 7)
/// });
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[track_caller]
pub fn pool_at(runtime: &Runtime, level: impl Into<LevelId>) -> ThreadPool {
    ThreadPool::of(Registry::of_host(Host::of_at(runtime, level)))
}

/// Places pools on `runtime`: all pools that [`ThreadPoolBuilder`](crate::ThreadPoolBuilder) builds from now on, for
/// instance in crates that make a pool of their own (polars does), and the global pool if it is not in use yet. The
/// placement holds until the next call.
///
/// A placed pool has the runtime's workers. Closures that code of the runtime runs in the pool stay at the level of
/// that code, also inside [`blocking`](urgency::blocking()). Closures that come from outside the runtime run at
/// `level`. So one such crate can be used by urgent and by background work at the same time.
///
/// A pool that bounds something keeps threads of its own: a pool of fewer threads than `runtime` has workers, or a pool
/// with a stack size, with start or exit handlers, or with threads that the program makes. So does a pool with a panic
/// handler.
///
/// # Panics
///
/// If the runtime has no such level.
///
/// # Examples
///
/// ```
/// use rayon_core::{ThreadPoolBuilder, urgency::place_pools};
///
/// urgency::levels! { App: Interactive > Batch }
/// let runtime = urgency::Runtime::builder().workers(2).levels::<App>().build()?;
/// place_pools(&runtime, Batch);
/// // Somewhere in a crate that knows nothing of it:
/// let pool = ThreadPoolBuilder::new().num_threads(2).build()?;
/// assert_eq!(pool.install(urgency::current_level), Batch.into());
/// let inside = runtime.at(Interactive).run(|| pool.install(urgency::current_level));
/// assert_eq!(inside, Interactive.into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn place_pools(runtime: &Runtime, level: impl Into<LevelId>) {
    Registry::set_place(Host::of_at(runtime, level));
}
