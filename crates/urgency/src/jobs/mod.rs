//! Jobs: programs of their own that share one set of cores.
//!
//! A [`CoreSet`] has the cores. A job is submitted to it at any time, from a plain thread, a closure or async code, and
//! has what a runtime has: levels, a schedule, orders, limits, a panic policy, [`Stats`](crate::Stats). The cores go to
//! the jobs by the set's core policy, and are moved while the jobs run.
//!
//! ```
//! use urgency::jobs::CoreSet;
//!
//! let cores = CoreSet::builder().cores(2).build()?;
//! let index = cores.job().weight(3).spawn_fn(|| urgency::join(|| 20, || 22))?;
//! let backup = cores.job().max_cpus(1).priority(1).spawn(async { "saved" })?;
//! assert_eq!(index.get()?, (20, 22));
//! assert_eq!(backup.get()?, "saved");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The life of a job
//!
//! 1. **Submitted.** If fewer jobs run than may, and no queued job has its turn before, it starts at once. If not, it
//!    is queued: the most urgent priority first ([`JobBuilder::priority`]), and the oldest job first within one. A
//!    full queue is an error ([`SubmitError::Full`]).
//! 2. **Running.** Its *root*, the future or closure that was submitted, runs in a *container*: a runtime on the set's
//!    workers. Containers are used again, by jobs of clones of the same [`JobBuilder`]. The accounts of one job are
//!    [`JobControl::stats`]; a container's own ([`Runtime::stats`](crate::Runtime::stats) in code of the job) have what
//!    earlier jobs did there as well.
//! 3. **Ending.** When the root has ended, what it left behind is cancelled, as at the end of a process, and nothing
//!    new starts in the job.
//! 4. **Over.** When all tasks of the job have ended, the waiters have the result, the container is free, and the next
//!    queued job starts. So after a wait nothing of the job runs.
//!
//! A queued job whose turn has come may find that the running ones have been promised the cores that it needs at least
//! ([`JobBuilder::min_cpus`]). It keeps its turn, and starts when one of them is over or asks for less, or a runtime
//! beside them does. Until then it holds back the queued jobs of its own priority and of less urgent ones: if smaller
//! jobs went on to start, it would wait for ever. More urgent jobs start. A job that could start at once, and cannot
//! have its demand, is refused instead.
//!
//! # Back pressure
//!
//! At most [`most_running`](CoreSetBuilder::most_running) jobs run, and [`most_queued`](CoreSetBuilder::most_queued)
//! are queued. A submission beyond that fails, and what was submitted is lost. So a server takes the place first, and
//! reads the work when it has one: [`JobBuilder::reserve`] waits for a place,
//! [`try_reserve`](JobBuilder::try_reserve) tells whether there is one, and the [`JobPermit`] submits.
//!
//! # Waiting for a job
//!
//! A [`JobHandle`] is awaited, or waited for by [`get`](JobHandle::get), from anywhere. Dropping it detaches the job.
//! Its [`JobControl`] is for all other code that cancels, watches or changes the job meanwhile.
//! When code of a job waits for another job:
//!
//! - The awaited job is as urgent as the waiting one for as long as that waits ([`JobBuilder::priority`]), and so are
//!   the jobs that it waits for itself.
//! - If the awaited job is queued it starts at once, beyond the number of jobs that may run: the jobs that run might
//!   all wait for queued ones.
//! - A job that waits for itself, or for a job that waits for it, has an error ([`JobErrorKind::WaitsForItself`]),
//!   which gives the handle back.
//! - A wait is of the code that polls it first, until it is over or dropped, also if other code has its future then.
//!
//! Code of a job that waits for a *task* of another job, by a [`JoinHandle`](crate::JoinHandle), lends that job its
//! priority in the same way, until the wait is over or its handle is dropped. Two jobs may wait for tasks of each
//! other.
//!
//! Jobs that wait for each other by other means (a channel, a lock of [`sync`](crate::sync)) lend nothing by that,
//! and must all run: let [`most_running`](CoreSetBuilder::most_running) be at least their number, and so the parts
//! of a core policy that has a fixed number of them. Nothing starts the queued ones for the sake of such a wait.
//!
//! Code of a runtime on the same workers ([`CoreSet::beside`]) that waits for a job, or for a job's task, lends
//! that job the priority of the runtime's [demand](crate::Runtime::demand) in the same way. It starts no queued
//! job: it has none of the places of jobs that run. A plain thread lends nothing.
//!
//! # Tenants
//!
//! A weight is a job's. Where each tenant is to have a share, however many jobs it brings, let each job name its tenant
//! ([`JobBuilder::group`]): jobs of one group have one share together. A priority comes before all shares, and the
//! queue of a core set is one for all: what a tenant may have waiting is for the program to bound, before it takes a
//! place ([`JobBuilder::reserve`]).
//!
//! A tenant whose pieces of work are small is better off with one job for as long as it is there, or with a runtime of
//! its own on the same workers ([`Builder::share_workers_with`](crate::Builder::share_workers_with)), and its pieces as
//! tasks of that.
//!
//! # Real-time tasks
//!
//! Under *elastic* ([`Elastic`](crate::policy::cores::Elastic)) a job may ask for cores as a real-time task, by its
//! [demand](JobBuilder::demand). A task that cannot be kept is refused. Beside code that does not check in the promise
//! needs an [allowance](crate::policy::cores::Elastic#what-it-promises), and the default has none. The periods of the
//! others give way when cores are short: [`JobControl::period`] is what is kept, and [`Iterations`] release the job's
//! iterations by it, and count the late ones.
//!
//! # The end
//!
//! [`CoreSet::shutdown`] accepts no more jobs and waits for the ones that there are, or cancels them;
//! [`shutdown_within`](CoreSet::shutdown_within) gives up in time, and names the jobs that did not end. Its parts can
//! be had alone: [`CoreSet::close`], [`cancel_all`](CoreSet::cancel_all), [`drain`](CoreSet::drain) and
//! [`drain_within`](CoreSet::drain_within). A set that is dropped is not shut down: its jobs go on.

mod builder;
mod control;
mod error;
mod handle;
mod iterations;
mod permit;
mod record;
mod set;
mod shutdown;
mod times;

pub use builder::JobBuilder;
pub use control::JobControl;
pub use error::{JobError, JobErrorKind, SubmitError};
pub use handle::JobHandle;
pub use iterations::{Iteration, Iterations};
pub use permit::JobPermit;
pub use record::{JobId, JobState, Progress, is_cancelled, report};
pub use set::{CoreSet, CoreSetBuilder, CoreSetStats};
pub use shutdown::{JobShutdown, JobsLeft};
pub use times::JobTimes;
