//! Why a job was not accepted, and why it has no result. A wait that is refused gives the handle back.

use super::{JobHandle, JobId};
use crate::{BuildError, JoinError};
use std::{any::Any, error::Error, fmt};

/// Why a job was not accepted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubmitError {
    /// As many jobs run and are queued as may, those included that have a place and are not submitted yet: see
    /// [`CoreSetBuilder::most_running`](super::CoreSetBuilder::most_running) and
    /// [`most_queued`](super::CoreSetBuilder::most_queued). [`JobBuilder::reserve`](super::JobBuilder::reserve) waits.
    Full {
        /// How many jobs run.
        running: usize,
        /// How many jobs are queued.
        queued: usize,
        /// How many places have [permits](super::JobPermit) that are not used yet, or go to code that waits for one.
        reserved: usize,
    },
    /// The job cannot be had as it was described: a number is out of its range, the core policy refuses its demand, or
    /// other jobs have been promised the cores that it needs at least.
    Build(BuildError),
    /// The core set accepts no more jobs: see [`CoreSet::close`](super::CoreSet::close).
    ShutDown,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Full {
                running,
                queued,
                reserved,
            } => write!(
                f,
                "the core set runs {running} job(s), has queued {queued}, and has reserved {reserved} place(s), which are as \
                 many as it may: wait for a place (`JobBuilder::reserve`), or build the set with a larger `most_running` \
                 or `most_queued`"
            ),
            SubmitError::Build(error) => write_refused(f, error),
            SubmitError::ShutDown => f.write_str(
                "the core set was closed or shut down, and accepts no more jobs: submit to another one",
            ),
        }
    }
}

impl Error for SubmitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SubmitError::Full { .. } | SubmitError::ShutDown => None,
            SubmitError::Build(error) => Some(error),
        }
    }
}

/// A refused demand speaks of its fields, which a job's description names otherwise.
fn write_refused(f: &mut fmt::Formatter<'_>, error: &BuildError) -> fmt::Result {
    match error {
        BuildError::Demand(refusal) => write!(
            f,
            "the job's demand on the cores (`min_cpus` is its min_cores, `max_cpus` its max_cores): {refusal}"
        ),
        error => fmt::Display::fmt(error, f),
    }
}

impl From<BuildError> for SubmitError {
    fn from(error: BuildError) -> Self {
        SubmitError::Build(error)
    }
}

/// Why a job has no result.
///
/// ```
/// use urgency::jobs::{CoreSet, JobErrorKind};
///
/// let cores = CoreSet::builder().cores(1).build()?;
/// let job = cores.spawn(std::future::pending::<()>())?;
/// job.cancel();
/// assert_eq!(job.get().unwrap_err().kind(), JobErrorKind::Cancelled);
///
/// let error = cores.spawn_fn(|| panic!("no"))?.get().unwrap_err();
/// assert_eq!(error.to_string(), format!("job {} panicked: no", error.id()));
/// assert_eq!(error.into_panic().unwrap().downcast_ref(), Some(&"no"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JobError {
    pub(super) id: JobId,
    pub(super) why: Why,
}

#[derive(Debug)]
pub(super) enum Why {
    Kind(JobErrorKind),
    /// The wait, with the handle that asked for it.
    Refused(JobErrorKind, Box<dyn Any + Send + Sync>),
    /// The root panicked.
    Root(JoinError),
}

/// The reasons of a [`JobError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JobErrorKind {
    /// The root panicked; [`JobError::into_panic`] has the value.
    Panicked,
    /// The job was cancelled before its root had ended.
    Cancelled,
    /// The job's own runtime ended before its root: some code shut it down, or no thread could be had for it.
    ShutDown,
    /// The wait was refused: code of a job waits for its own job, or for a job that waits for it.
    /// [`JobError::into_handle`] gives the handle back.
    WaitsForItself,
    /// The job was queued, and could not be started when its turn had come and no other job of the set ran, or when
    /// code of a job waited for it.
    Refused(BuildError),
}

impl JobError {
    pub(super) fn of(id: JobId, kind: JobErrorKind) -> Self {
        JobError {
            id,
            why: Why::Kind(kind),
        }
    }

    pub(super) fn refused<T: Send + 'static>(kind: JobErrorKind, handle: JobHandle<T>) -> Self {
        JobError {
            id: handle.id(),
            why: Why::Refused(kind, Box::new(handle)),
        }
    }

    /// The job.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Why there is no result.
    pub fn kind(&self) -> JobErrorKind {
        match &self.why {
            Why::Kind(kind) | Why::Refused(kind, _) => kind.clone(),
            Why::Root(_) => JobErrorKind::Panicked,
        }
    }

    /// The value with which the root panicked.
    ///
    /// # Errors
    ///
    /// The error itself, if it has another reason.
    pub fn into_panic(self) -> Result<Box<dyn Any + Send>, JobError> {
        let id = self.id;
        let error = |why| JobError { id, why };
        match self.why {
            Why::Root(root) => root.try_into_panic().map_err(|root| error(Why::Root(root))),
            why => Err(error(why)),
        }
    }

    /// The handle that asked for the wait, if the wait was refused. It is as it was before: other code may wait for the
    /// job.
    ///
    /// ```
    /// use urgency::{jobs::{CoreSet, JobHandle}, sync::oneshot};
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let (give, take) = oneshot::channel::<JobHandle<u32>>();
    /// let (pass, passed) = oneshot::channel();
    /// let job = cores.spawn(async move {
    ///     let myself = take.await.unwrap();
    ///     let refused = myself.await.unwrap_err();
    ///     pass.send(refused.into_handle::<u32>().unwrap()).unwrap();
    ///     42
    /// })?;
    /// give.send(job).unwrap();
    /// assert_eq!(passed.blocking_recv()?.get()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error itself: the wait was not refused, or the job gives something else than a `T`.
    pub fn into_handle<T: Send + 'static>(self) -> Result<JobHandle<T>, JobError> {
        let id = self.id;
        let error = |why| JobError { id, why };
        match self.why {
            Why::Refused(kind, handle) => match handle.downcast() {
                Ok(handle) => Ok(*handle),
                Err(other) => Err(error(Why::Refused(kind, other))),
            },
            why => Err(error(why)),
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        if let Why::Root(root) = &self.why
            && let Some(written) = root.write_panic(f, format_args!("job {id}"))
        {
            return written;
        }
        match self.kind() {
            JobErrorKind::Panicked => write!(f, "job {id} panicked"),
            JobErrorKind::Cancelled => write!(f, "job {id} was cancelled"),
            JobErrorKind::ShutDown => write!(
                f,
                "the runtime of job {id} ended before the job: some code shut it down, or no thread could be had"
            ),
            JobErrorKind::WaitsForItself => write!(
                f,
                "a job waits for job {id}, which is the same or waits for it, and both would wait for ever: let code outside \
                 of these jobs wait, with the handle that this error has (`JobError::into_handle`)"
            ),
            JobErrorKind::Refused(error) => {
                write!(f, "job {id} could not be started: ")?;
                write_refused(f, &error)
            }
        }
    }
}

impl Error for JobError {}
