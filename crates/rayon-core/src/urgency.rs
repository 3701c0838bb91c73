//! What this crate adds to rayon's interface: pools at a level of a runtime.
//!
//! Code that runs in an Urgency task needs nothing of it: there, parallel iterators run on that task's runtime and at
//! its level.

use crate::{ThreadPool, registry::Registry};
use urgency::{LevelId, Runtime, embed::Host};

/// A pool that is one level of `runtime`: what is installed, joined or spawned there runs on that runtime's workers,
/// at that level, beside everything else.
///
/// Dropping the pool ends nothing. When the runtime has ended, the pool still works, with threads that end when they
/// find nothing to do.
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
