//! Why a job was not accepted, and why it has no result.

use super::JobId;
use crate::{BuildError, JoinError, JoinErrorKind};
use std::{any::Any, error::Error, fmt};

/// Why a job was not accepted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubmitError {
    /// As many jobs run and are queued as may: see
    /// [`CoreSetBuilder::most_running`](super::CoreSetBuilder::most_running) and
    /// [`most_queued`](super::CoreSetBuilder::most_queued).
    Full {
        /// How many jobs run.
        running: usize,
        /// How many jobs are queued.
        queued: usize,
    },
    /// The job cannot be had as it was described: a number is out of its range, the core policy refuses its demand, or
    /// other jobs have been promised the cores that it needs at least.
    Build(BuildError),
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Full { running, queued } => write!(
                f,
                "the core set runs {running} job(s) and has queued {queued}, which are as many as it may: wait for one of \
                 them, or build the set with a larger `most_running` or `most_queued`"
            ),
            SubmitError::Build(error) => error.fmt(f),
        }
    }
}

impl Error for SubmitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SubmitError::Full { .. } => None,
            SubmitError::Build(error) => Some(error),
        }
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
    /// Code of the job shut down the job's own runtime before its root had ended.
    ShutDown,
    /// The wait was refused: code of a job waits for its own job, or for a job that waits for it.
    WaitsForItself,
    /// The job was queued, and could not be started when its turn had come and no other job of the set ran.
    Refused(BuildError),
}

impl JobError {
    pub(super) fn of(id: JobId, kind: JobErrorKind) -> Self {
        JobError {
            id,
            why: Why::Kind(kind),
        }
    }

    /// The job.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Why there is no result.
    pub fn kind(&self) -> JobErrorKind {
        match &self.why {
            Why::Kind(kind) => kind.clone(),
            Why::Root(error) => match error.kind() {
                JoinErrorKind::Panicked => JobErrorKind::Panicked,
                JoinErrorKind::ShutDown => JobErrorKind::ShutDown,
                _ => JobErrorKind::Cancelled,
            },
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
            why @ Why::Kind(_) => Err(error(why)),
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        match self.kind() {
            JobErrorKind::Panicked => write!(f, "job {id} panicked"),
            JobErrorKind::Cancelled => write!(f, "job {id} was cancelled"),
            JobErrorKind::ShutDown => write!(f, "job {id} shut its own runtime down"),
            JobErrorKind::WaitsForItself => write!(
                f,
                "a job waits for job {id}, which is the same or waits for it, and both would wait for ever: let code outside \
                 of these jobs wait"
            ),
            JobErrorKind::Refused(error) => write!(f, "job {id} could not be started: {error}"),
        }
    }
}

impl Error for JobError {}
