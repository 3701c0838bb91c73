//! `Handle`: a runtime that other code keeps alive.

use super::{Runtime, context, current, level_on, spawn_fn_on, spawn_on};
use crate::{JoinHandle, sched::job::Job, scheduling_point};
use std::{fmt, future::Future, sync::Arc};

/// A handle of a runtime that does not keep it alive: when the last [`Runtime`] is dropped, the runtime ends, and what
/// is spawned by a `Handle` after that ends with an error.
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
    shared: Arc<Job>,
}

impl Handle {
    /// The runtime of the calling code; on a plain thread the global one, which starts here if nothing used it yet.
    pub fn current() -> Self {
        Handle { shared: current() }
    }

    /// As [`spawn`](crate::spawn), on this runtime; from outside at its least urgent level.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = spawn_on(&self.shared, level_on(&self.shared), future);
        scheduling_point();
        handle
    }

    /// As [`spawn_blocking`](crate::task::spawn_blocking), on this runtime.
    pub fn spawn_blocking<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let closure = move || crate::blocking(closure);
        let handle = spawn_fn_on(&self.shared, level_on(&self.shared), closure);
        scheduling_point();
        handle
    }

    /// As [`Runtime::block_on`].
    ///
    /// # Panics
    ///
    /// If polling the future panics, and if the runtime has ended.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        context::as_external_of(&self.shared, None, |_| crate::block_on(future))
    }
}

impl Runtime {
    /// A handle that does not keep the runtime alive.
    pub fn handle(&self) -> Handle {
        let shared = self.shared.clone();
        Handle { shared }
    }

    /// As [`spawn_blocking`](crate::task::spawn_blocking), on this runtime.
    pub fn spawn_blocking<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle().spawn_blocking(closure)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
