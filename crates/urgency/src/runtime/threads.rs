//! What the builder is told of the runtime's threads: how many, how large, their names, and what they call.
//!
//! A thread has a number (`sched/switch/thread_options.rs`). The calls of a program take none, as Tokio's: a program
//! that needs numbers counts its threads itself. A crate with a fork-join interface of its own has threads with
//! indices, and is told the numbers (`embed/threads.rs`).

use super::Builder;
use std::sync::Arc;

impl Builder {
    /// The most threads that the runtime makes. A stack that waits is a parked thread, so this limits
    /// how many closures can wait at once; async tasks need no thread. The default is 16,384. When it
    /// is reached, ready work waits for a thread that runs. If none comes for it within a millisecond, the work runs
    /// on top of a stack that waits, and `Stats::threads_refused` counts it. A thread that waits outside the scheduler,
    /// as in [`blocking`](crate::blocking), can run nothing: if all do, ready work waits for the first that comes back.
    pub fn thread_limit(mut self, threads: usize) -> Self {
        self.of_workers = Some("thread_limit");
        self.threads.limit = threads;
        self
    }

    /// The runtime makes no threads: it has as many as workers, which the program brings with
    /// [`Host::serve`](crate::embed::Host::serve), and no others. A stack that must wait runs other work on top of
    /// itself, and relief has no thread to go on with.
    pub fn provided_threads(mut self) -> Self {
        self.of_workers = Some("provided_threads");
        self.threads.provided = true;
        self
    }

    /// The name of the runtime's threads. The default is `urgency`, which a thread also has if its name would contain a
    /// NUL.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().thread_name("requests").build()?;
    /// let named = runtime.spawn_fn(|| std::thread::current().name() == Some("requests"));
    /// assert!(named.get().unwrap());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn thread_name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.numbered_name(move |_| name.clone())
    }

    /// The names of the runtime's threads: `name` is called for each thread, in the order in which they are made. A
    /// thread for which it panics is named `urgency`, as one whose name would contain a NUL.
    ///
    /// Any thread may call `name` in the middle of a call of the library, such as a spawn. So it must take no lock that
    /// the program holds while it calls the library.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// static MADE: AtomicUsize = AtomicUsize::new(0);
    ///
    /// let name = || format!("requests-{}", MADE.fetch_add(1, Relaxed));
    /// let runtime = urgency::Runtime::builder().thread_name_fn(name).build()?;
    /// let name = runtime.spawn_fn(|| std::thread::current().name().map(String::from));
    /// assert!(name.get().unwrap().unwrap().starts_with("requests-"));
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn thread_name_fn(self, name: impl Fn() -> String + Send + Sync + 'static) -> Self {
        let mut builder = self.numbered_name(move |_| name());
        builder.of_workers = Some("thread_name_fn");
        builder
    }

    /// The size of the threads' stacks, in bytes of address space: at least 64 KiB. The default is what the
    /// environment variable `RUST_MIN_STACK` says, as for the threads of the standard library, or else 2 MiB.
    /// [`Builder::build`] makes a thread of another size, which ends at once, to find out whether the system gives it;
    /// if not, that is [`BuildError::StackSize`](super::BuildError::StackSize).
    ///
    /// Forked work may run on any of these threads: nested calls that only the larger stack of a plain thread has
    /// room for overflow them. See [`scope()`](crate::scope()).
    pub fn thread_stack_size(mut self, bytes: usize) -> Self {
        self.of_workers = Some("thread_stack_size");
        self.threads.stack_size = bytes;
        self
    }

    /// Calls `call` first on each thread that the runtime makes. A panic of it is printed, and the thread goes on.
    /// Threads are made when they are needed, and end when there are many more than workers.
    ///
    /// The thread is in no runtime yet, so [`spawn`](crate::spawn) in `call` starts a task of the global runtime.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// static STARTED: AtomicUsize = AtomicUsize::new(0);
    ///
    /// let runtime = urgency::Runtime::builder()
    ///     .workers(1)
    ///     .on_thread_start(|| { STARTED.fetch_add(1, Relaxed); })
    ///     .build()?;
    /// let started = runtime.spawn_fn(|| STARTED.load(Relaxed));
    /// assert_ne!(started.get().unwrap(), 0);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn on_thread_start(self, call: impl Fn() + Send + Sync + 'static) -> Self {
        self.numbered_start(move |_| call())
    }

    /// As [`Builder::on_thread_start`], last on each thread, which is in no runtime any more.
    pub fn on_thread_stop(self, call: impl Fn() + Send + Sync + 'static) -> Self {
        self.numbered_stop(move |_| call())
    }

    /// `name` gets the number of the thread.
    pub(crate) fn numbered_name(
        mut self,
        name: impl Fn(usize) -> String + Send + Sync + 'static,
    ) -> Self {
        self.of_workers = Some("thread_name");
        self.threads.name = Some(Arc::new(name));
        self
    }

    /// `call` gets the number of the thread.
    pub(crate) fn numbered_start(mut self, call: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.of_workers = Some("on_thread_start");
        self.threads.on_start = Some(Arc::new(call));
        self
    }

    /// `call` gets the number of the thread.
    pub(crate) fn numbered_stop(mut self, call: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.of_workers = Some("on_thread_stop");
        self.threads.on_stop = Some(Arc::new(call));
        self
    }
}
