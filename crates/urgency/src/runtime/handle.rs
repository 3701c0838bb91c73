//! `Handle`: a runtime that other code keeps alive.
//!
//! What a program does *in* a runtime is a method of `Handle`, and [`Runtime`](super::Runtime), which keeps the runtime
//! alive, dereferences to it. What is done *to* a runtime (its shares, its accounts, its end) is a method of `Runtime`.

use super::{context, current};
use crate::sched::{job::Job, switch::block::block_on};
use std::{future::Future, sync::Arc, time::Duration};

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
    pub(crate) job: Arc<Job>,
}

impl Handle {
    /// The runtime of the calling code; on a plain thread that has [entered](Self::enter) none the global one, which
    /// starts here if nothing used it yet.
    pub fn current() -> Self {
        Handle { job: current() }
    }

    pub(crate) fn job(&self) -> &Arc<Job> {
        &self.job
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
        context::as_external_of(&self.job, None, |_| closure())
    }

    /// Polls `future` on the calling thread, as a stack of this runtime, until it is ready.
    ///
    /// # Panics
    ///
    /// If polling the future panics, and if the runtime was shut down.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.run(|| block_on(future))
    }

    /// The period that the runtime's real-time task ([`Demand::task`]) has to keep: what the core policy keeps for it
    /// whichever of the runtimes on these workers have work. It is the one that the task would like, or a longer one
    /// that it tolerates if *elastic* has compressed it, and changes when a task comes, goes or changes its demand.
    /// [`Iterations`](crate::jobs::Iterations) release iterations by it.
    ///
    /// `None` if the runtime asks for no task, and in code of a policy.
    ///
    /// ```
    /// use std::time::Duration;
    /// use urgency::{
    ///     Runtime,
    ///     policy::cores::{Demand, Elastic, Task},
    /// };
    ///
    /// let task = |task| Demand { task: Some(task), ..Demand::default() };
    /// // 60 ms of work: on two workers they take 30 and a bit, on one 60.
    /// let elastic = Task { longest: 80_000_000, ..Task::new(60_000_000, 500_000, 40_000_000) };
    /// let builder = Runtime::builder().workers(2).core_policy(Elastic::default());
    /// let runtime = builder.demand(task(elastic)).build()?;
    /// assert_eq!(runtime.period(), Some(Duration::from_millis(40)));
    ///
    /// let rigid = task(Task::new(5_000_000, 500_000, 10_000_000));
    /// let other = Runtime::builder().share_workers_with(&runtime).demand(rigid).build()?;
    /// assert_eq!(runtime.period(), Some(Duration::from_millis(60)));
    /// drop(other);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// [`Demand::task`]: crate::policy::cores::Demand::task
    pub fn period(&self) -> Option<Duration> {
        self.job.period().map(Duration::from_nanos)
    }
}

debug_struct!(Handle);
