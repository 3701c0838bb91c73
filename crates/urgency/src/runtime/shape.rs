//! The builder's methods that Tokio's has under other names, for programs that come over.

use super::{Builder, Handle, Runtime};
use crate::sched::switch::thread_options::STACK_SIZE;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A panic in a program leaves nothing of the runtime half changed: what runs in it is caught at the task.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

/// What a program that was written for Tokio may ask of a runtime: [`Handle::runtime_flavor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// Tasks run on the thread that is in `block_on`, and on no other. No runtime here is that.
    CurrentThread,
    /// Tasks run on threads of the runtime.
    MultiThread,
}

impl Handle {
    /// [`RuntimeFlavor::MultiThread`], also where [`Builder::new_current_thread`] made the runtime: its tasks may run
    /// on threads of its own, and call [`block_in_place`](crate::task::block_in_place).
    ///
    /// ```
    /// use urgency::{runtime::{Builder, RuntimeFlavor}, task};
    ///
    /// let runtime = Builder::new_current_thread().build()?;
    /// assert_eq!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
    /// assert_eq!(runtime.block_on(async { task::block_in_place(|| 42) }), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        RuntimeFlavor::MultiThread
    }
}

impl Builder {
    /// A builder for a runtime with one worker, for which a thread that is in [`block_on`](Handle::block_on) works
    /// while the future waits: tasks are polled there, as with Tokio, without a switch to another thread. The runtime
    /// has threads of its own as well, for closures, for events while all wait, and for tasks while no thread is in
    /// `block_on`.
    ///
    /// A task that waits in a blocking form (`get`, `blocking_recv`) keeps the thread that polls it, so it must not
    /// wait for what the future in `block_on` is to do. (Tokio panics at each such wait.) Take `Builder::workers(1)`
    /// for tasks that do: then tasks run on threads of the runtime only. They do as well if the runtime has several
    /// levels or workers, a larger stack for its threads, or shares its worker.
    ///
    /// ```
    /// use std::thread;
    /// use urgency::{runtime::Builder, spawn};
    ///
    /// let runtime = Builder::new_current_thread().build()?;
    /// let task = async { spawn(async { thread::current().id() }).await.unwrap() };
    /// assert_eq!(runtime.block_on(task), thread::current().id());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn new_current_thread() -> Builder {
        let mut builder = Builder::new().workers(1);
        builder.is_current_thread = true;
        builder
    }

    /// Whether threads in `block_on` lend themselves to a runtime with so many workers.
    pub(super) fn lends(&self, workers: usize) -> bool {
        let has_usual_stacks = self.threads.stack_size <= STACK_SIZE;
        self.is_current_thread && workers == 1 && self.levels.len() == 1 && has_usual_stacks
    }

    /// A builder for a runtime with a worker for each CPU that the process may use.
    pub fn new_multi_thread() -> Builder {
        Builder::new()
    }

    /// As [`Builder::workers`].
    pub fn worker_threads(self, workers: usize) -> Builder {
        self.workers(workers)
    }

    /// Changes nothing: a runtime always has I/O and timers, and pays for them when they are used.
    ///
    /// ```
    /// use urgency::runtime::Builder;
    ///
    /// // As it is written for Tokio.
    /// let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    /// assert_eq!(runtime.stats().workers.len(), 2);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn enable_all(self) -> Builder {
        self
    }

    /// As [`enable_all`](Self::enable_all).
    pub fn enable_io(self) -> Builder {
        self
    }

    /// As [`enable_all`](Self::enable_all).
    pub fn enable_time(self) -> Builder {
        self
    }

    /// A runtime whose clock stands still from the start, for tests: see [`time::pause`](crate::time::pause).
    ///
    /// # Panics
    ///
    /// [`Builder::build`] does then, if the process is out of descriptors.
    ///
    /// ```
    /// use urgency::{runtime::Builder, time::{Duration, sleep}};
    ///
    /// let runtime = Builder::new_current_thread().start_paused(true).build()?;
    /// runtime.block_on(sleep(Duration::from_secs(3600))); // at once
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn start_paused(mut self, start_paused: bool) -> Builder {
        self.of_workers = start_paused.then_some("start_paused").or(self.of_workers);
        self.start_paused = start_paused;
        self
    }
}
