//! `Handle`: a runtime that other code keeps alive.
//!
//! What a program does *in* a runtime is a method of `Handle`, and [`Runtime`](super::Runtime), which keeps the runtime
//! alive, dereferences to it. What is done *to* a runtime (its shares, its accounts, its end) is a method of `Runtime`.

use super::{context, current};
use crate::sched::{job::Job, switch::block::block_on};
use std::{future::Future, sync::Arc};

/// A handle of a runtime that does not keep it alive: when the last [`Runtime`](crate::Runtime) is dropped, the
/// runtime ends, and what is spawned by a `Handle` after that ends with an error.
///
/// ```
/// use urgency::runtime::Handle;
///
/// let runtime = urgency::Runtime::new()?;
/// let handle = runtime.block_on(async { Handle::current() });
/// assert_eq!(handle.spawn(async { 6 * 7 }).get().unwrap(), 42);
/// drop(runtime);
/// assert!(handle.spawn(async {}).get().is_err());
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Job>,
}

impl Handle {
    /// The runtime of the calling code; on a plain thread that has [entered](Self::enter) none the global one, which
    /// starts here if nothing used it yet.
    pub fn current() -> Self {
        Handle { shared: current() }
    }

    pub(crate) fn shared(&self) -> &Arc<Job> {
        &self.shared
    }

    /// Runs `closure` on the calling thread as a stack of this runtime, at its most urgent level:
    /// the thread gets one of the workers first, and what the closure calls (`join`, `spawn`,
    /// `block_on`, ...) belongs to this runtime. [`At::run`](crate::At::run) names another level. To create work
    /// only, a plain thread needs no worker: [`spawn`](Self::spawn), [`Level::on`](crate::level::Level::on).
    ///
    /// The most urgent level, because a thread outside waits for its call and has other work besides: nothing inside
    /// may keep it out for ever, not even code of that level that goes from one scheduling point to the next without an
    /// end. Long compute from a plain thread belongs to a level of its own.
    ///
    /// Inside another runtime the calling stack keeps its worker there meanwhile, unless the two [share their
    /// workers](crate::Builder::share_workers_with). Inside this one the closure is simply called.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(2).build()?;
    /// let (a, b) = runtime.run(|| urgency::join(|| 6, || 7));
    /// assert_eq!(a * b, 42);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `closure` panics, and if the runtime was shut down.
    pub fn run<R>(&self, closure: impl FnOnce() -> R) -> R {
        context::as_external_of(&self.shared, None, |_| closure())
    }

    /// Polls `future` on the calling thread, as a stack of this runtime, until it is ready.
    ///
    /// # Panics
    ///
    /// If polling the future panics, and if the runtime was shut down.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.run(|| block_on(future))
    }
}

debug_struct!(Handle);
