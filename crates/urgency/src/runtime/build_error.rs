//! Why a runtime could not be built, and what to do.

#[cfg(doc)]
use super::Builder;
use super::{MAX_WORKERS, PartitionError, PinError};
use crate::LevelId;
use std::{fmt, io};
use urgency_policy::{cores::Refusal, level::ScheduleError, pool::PlanError};

/// Why a [`Runtime`](crate::Runtime) could not be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The number of workers is not between 1 and [`MAX_WORKERS`].
    Workers(usize),
    /// The number of [cores](crate::jobs::CoreSetBuilder::cores) of a core set is not between 1 and [`MAX_WORKERS`].
    Cores(usize),
    /// The thread limit is smaller than the number of workers and two more: one for the poller, and one
    /// for urgent work while the workers' stacks are left.
    Threads {
        /// The limit asked for.
        limit: usize,
        /// The least that this number of workers needs.
        least: usize,
    },
    /// A stack of this size, in bytes, is too small for a thread, or the system does not give a thread one:
    /// [`Builder::thread_stack_size`].
    StackSize(usize),
    /// The workers cannot be pinned to processors.
    Pin(PinError),
    /// The core policy's word about cache and bandwidth cannot be carried out.
    Partition(PartitionError),
    /// A level does not exist that was given a capacity or a pool policy, or the root of a job.
    NoSuchLevel {
        /// The level.
        level: LevelId,
        /// How many levels there are.
        levels: usize,
    },
    /// This setting, a method of the builder, is of the workers and threads, which
    /// [`Builder::share_workers_with`] takes from another runtime; or it is one that a
    /// [job](crate::jobs::JobBuilder::runtime) has from its set or says itself; or one that a core set
    /// [beside a runtime](crate::jobs::CoreSetBuilder::build_beside) has from that.
    OfSharedWorkers(&'static str),
    /// The runtime whose workers were to be shared has ended.
    SharedWorkersEnded,
    /// The runtime whose workers were to be shared has [`Builder::provided_threads`], which serve it alone.
    SharedThreadsProvided,
    /// The workers cannot be shared as [`Builder::demand`] asks, or the core policy refuses it.
    Demand(Refusal),
    /// A schedule or a pool order of the program's own panicked while a job's runtime was built.
    Panicked,
    /// A core set of which no job may run: [`CoreSetBuilder::most_running`](crate::jobs::CoreSetBuilder::most_running).
    MostRunning,
    /// There is a global runtime already.
    GlobalExists,
    /// A number of a pool policy is out of its range.
    Pool(PlanError),
    /// The schedule between levels does not fit the runtime's levels and workers.
    Schedule(ScheduleError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Workers(n) => write!(
                f,
                "a runtime with {n} workers was asked for; it can have 1 to {MAX_WORKERS}: leave \
                 `workers` out for one worker per available CPU"
            ),
            BuildError::Cores(n) => write!(
                f,
                "a core set with {n} cores was asked for; it can have 1 to {MAX_WORKERS}: leave `cores` out for all \
                 CPUs that the process may use"
            ),
            BuildError::Threads { limit, least } => write!(
                f,
                "a thread limit of {limit} is too small for this number of workers; it must be at \
                 least {least}"
            ),
            BuildError::StackSize(bytes) => write!(
                f,
                "threads with stacks of {bytes} bytes were asked for, and there can be none: the size must be at least \
                 64 KiB, and fit into the address space and its limit (`ulimit -v`); the default is RUST_MIN_STACK, or else 2 \
                 MiB"
            ),
            BuildError::Panicked => f.write_str(
                "a schedule or a pool order of the program's own panicked while a job's runtime was built: the panic's \
                 message says where",
            ),
            BuildError::MostRunning => write!(
                f,
                "a core set was asked for that runs 0 jobs at once: `most_running` must be 1 or more"
            ),
            BuildError::Pin(error) => error.fmt(f),
            BuildError::Partition(error) => error.fmt(f),
            BuildError::Schedule(error) => error.fmt(f),
            BuildError::Pool(error) => error.fmt(f),
            BuildError::NoSuchLevel { level, levels } => write!(
                f,
                "level {level} was given a capacity, a pool policy or the root of a job, but the runtime has {levels} \
                 level(s): name one of them, or call `levels::<..>()` (of a job: in `JobBuilder::runtime`)"
            ),
            BuildError::OfSharedWorkers(setting) => write!(
                f,
                "`{setting}` was called on the builder of a runtime that shares the workers of another, of a job, or of a core \
                 set beside a runtime: leave it out, or say it where the first of them is built, or of the job itself"
            ),
            BuildError::SharedWorkersEnded => write!(
                f,
                "the runtime whose workers were to be shared has ended, and its threads with it: share them while it, \
                 or another that shares them, goes on"
            ),
            BuildError::SharedThreadsProvided => write!(
                f,
                "the runtime whose workers were to be shared has provided threads, which serve it alone: build it \
                 without `provided_threads`"
            ),
            BuildError::Demand(refusal) => {
                write!(
                    f,
                    "a runtime's demand on the workers (a worker is a core): {refusal}"
                )
            }
            BuildError::GlobalExists => write!(
                f,
                "the global runtime exists already: call `build_global` before anything uses it, and \
                 once"
            ),
        }
    }
}

impl std::error::Error for BuildError {}

/// For `Runtime::new()?` in a function that gives [`io::Result`]. The error is in it
/// ([`io::Error::get_ref`]).
///
/// ```
/// use urgency::{BuildError, Runtime};
///
/// fn main() -> std::io::Result<()> {
///     let runtime = Runtime::new()?;
///     assert_eq!(runtime.block_on(async { 42 }), 42);
///     Ok(())
/// }
/// ```
impl From<BuildError> for io::Error {
    fn from(error: BuildError) -> Self {
        use BuildError as E;
        let kind = match error {
            E::Workers(_)
            | E::Cores(_)
            | E::Threads { .. }
            | E::StackSize(_)
            | E::NoSuchLevel { .. }
            | E::OfSharedWorkers(_)
            | E::SharedThreadsProvided
            | E::MostRunning
            | E::Pool(_)
            | E::Schedule(_) => io::ErrorKind::InvalidInput,
            E::Pin(PinError::NotSupported) => io::ErrorKind::Unsupported,
            E::Pin(PinError::NotAllowed { .. }) => io::ErrorKind::PermissionDenied,
            E::Pin(_) => io::ErrorKind::InvalidInput,
            E::Partition(PartitionError::NoThread) => io::ErrorKind::WouldBlock,
            E::Partition(PartitionError::NotOurs { .. }) => io::ErrorKind::ResourceBusy,
            E::Partition(_) => io::ErrorKind::InvalidInput,
            E::Demand(Refusal::Demand(_)) => io::ErrorKind::InvalidInput,
            E::Demand(_) => io::ErrorKind::ResourceBusy,
            E::GlobalExists => io::ErrorKind::AlreadyExists,
            E::Panicked | E::SharedWorkersEnded => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// An error of a part is the builder's.
macro_rules! from_parts {
    ($($part:ident => $error:ident),*) => {$(
        impl From<$part> for BuildError {
            fn from(error: $part) -> Self {
                BuildError::$error(error)
            }
        }
    )*};
}

from_parts!(
    PinError => Pin, PartitionError => Partition, Refusal => Demand, PlanError => Pool, ScheduleError => Schedule
);
