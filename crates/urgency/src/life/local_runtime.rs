//! `LocalRuntime`: a runtime and a set of local tasks as one value, which stays on its thread.
//!
//! It is a runtime of [`Builder::new_current_thread`] beside a [`LocalSet`], and adds nothing to the two but that they
//! are entered together and that the set ends first, inside the runtime.

use super::{LocalEnterGuard, LocalSet};
use crate::{
    BuildError, JoinHandle, Runtime,
    runtime::{Builder, EnterGuard, Handle, RuntimeMetrics},
};
use std::{marker::PhantomData, mem::ManuallyDrop, time::Duration};

/// A runtime that stays on the thread which made it, so that the futures of its tasks need not be `Send`.
///
/// The thread runs its tasks while it is in [`block_on`](Self::block_on): local ones there only, others also on a
/// thread of the runtime. Dropping it drops the futures of the local tasks on its thread, and ends the runtime as
/// dropping the last [`Runtime`] does. It is what a [`LocalSet`] in a runtime of [`Builder::new_current_thread`] is.
///
/// ```
/// use std::rc::Rc;
/// use urgency::{runtime::LocalRuntime, task::spawn_local};
///
/// let runtime = LocalRuntime::new()?;
/// let name = Rc::new("local");
/// let length = runtime.block_on(async move { spawn_local(async move { name.len() }).await });
/// assert_eq!(length.unwrap(), 5);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LocalRuntime {
    /// Dropped first, inside the runtime.
    set: ManuallyDrop<LocalSet>,
    runtime: Runtime,
}

/// What a [`LocalRuntime`] alone may be asked for: nothing yet. See [`Builder::build_local`].
///
/// ```
/// use urgency::runtime::{Builder, LocalOptions};
///
/// let runtime = Builder::new_current_thread().build_local(LocalOptions::default())?;
/// assert_eq!(runtime.block_on(async { 42 }), 42);
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LocalOptions {
    /// Neither `Send` nor `Sync`, as in Tokio: options to come may be so.
    thread: PhantomData<*const ()>,
}

impl LocalRuntime {
    /// A runtime of [`Builder::new_current_thread`] that stays on the calling thread.
    ///
    /// # Errors
    ///
    /// As [`Builder::build_local`].
    pub fn new() -> std::io::Result<LocalRuntime> {
        let builder = Builder::new_current_thread();
        Ok(builder.build_local(LocalOptions::default())?)
    }

    /// The runtime, for tasks that may run elsewhere.
    pub fn handle(&self) -> &Handle {
        &self.runtime
    }

    /// Starts a task that stays on this thread. It runs inside [`block_on`](Self::block_on).
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.set.spawn_local(future)
    }

    /// Starts a call that blocks, on another thread; see [`spawn_blocking`](crate::task::spawn_blocking).
    pub fn spawn_blocking<F, R>(&self, closure: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.runtime.spawn_blocking(closure)
    }

    /// Polls `future` on the calling thread until it is ready, and the local tasks beside it. What it calls may
    /// [`spawn_local`](crate::task::spawn_local).
    ///
    /// # Panics
    ///
    /// As [`Handle::block_on`].
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.set.block_on(&self.runtime, future)
    }

    /// Until the guard is dropped, the free functions use this runtime where this thread calls them
    /// ([`Handle::enter`]), and [`spawn_local`](crate::task::spawn_local) starts local tasks of it.
    ///
    /// ```
    /// use urgency::{runtime::LocalRuntime, task::spawn_local};
    ///
    /// let runtime = LocalRuntime::new()?;
    /// let guard = runtime.enter();
    /// let two = spawn_local(async { 2 });
    /// drop(guard);
    /// assert_eq!(runtime.block_on(two).unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> LocalRuntimeEnterGuard<'_> {
        LocalRuntimeEnterGuard {
            _set: self.set.enter(),
            _runtime: self.runtime.enter(),
        }
    }

    /// The runtime's figures. Its local tasks are not among them.
    pub fn metrics(&self) -> RuntimeMetrics {
        self.runtime.metrics()
    }

    /// Drops the local tasks, then ends the runtime as [`Runtime::shutdown_timeout`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = urgency::runtime::LocalRuntime::new()?;
    /// let waits = runtime.spawn_local(std::future::pending::<()>());
    /// runtime.shutdown_timeout(Duration::from_millis(10));
    /// assert!(waits.get().unwrap_err().is_cancelled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(self, within: Duration) {
        let runtime = self.runtime.clone();
        drop(self);
        runtime.shutdown_timeout(within);
    }

    /// As [`shutdown_timeout`](Self::shutdown_timeout), in the way of [`Runtime::shutdown_background`].
    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }
}

impl Drop for LocalRuntime {
    fn drop(&mut self) {
        let _inside = self.runtime.enter();
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::drop(&mut self.set) };
    }
}

debug_struct!(LocalRuntime, |it| set: &*it.set);

/// The calling thread is inside a [`LocalRuntime`] until this is dropped; see [`LocalRuntime::enter`].
///
/// # Panics
///
/// As the drop of a [`LocalEnterGuard`] and of an [`EnterGuard`].
#[derive(Debug)]
#[must_use = "the runtime is left when the guard is dropped"]
pub struct LocalRuntimeEnterGuard<'a> {
    _set: LocalEnterGuard,
    _runtime: EnterGuard<'a>,
}

impl Builder {
    /// As [`build`](Self::build), for a runtime that stays on the calling thread.
    ///
    /// ```
    /// use urgency::runtime::Builder;
    ///
    /// let runtime = Builder::new_current_thread().enable_all().build_local(Default::default())?;
    /// assert_eq!(runtime.block_on(async { 42 }), 42);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_local(self, _options: LocalOptions) -> Result<LocalRuntime, BuildError> {
        Ok(LocalRuntime {
            runtime: self.build()?,
            set: ManuallyDrop::new(LocalSet::new()),
        })
    }
}
