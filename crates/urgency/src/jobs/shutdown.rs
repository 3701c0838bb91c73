//! How a core set is shut down, and which jobs did not end.

use super::JobId;
use std::{error::Error, fmt};

/// How [`CoreSet::shutdown`](super::CoreSet::shutdown) treats the jobs that run or are queued. A runtime has
/// [`Shutdown`](crate::Shutdown) for its tasks.
///
/// ```
/// use urgency::jobs::{CoreSet, JobErrorKind, JobShutdown};
///
/// let cores = CoreSet::builder().cores(1).build()?;
/// let order = cores.spawn_fn(|| "sent")?;
/// let cleanup = cores.job().priority(9).spawn(std::future::pending::<()>())?;
/// cores.shutdown(JobShutdown::DrainDownTo(0));
/// assert_eq!(order.get()?, "sent");
/// assert_eq!(cleanup.get().unwrap_err().kind(), JobErrorKind::Cancelled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobShutdown {
    /// Waits for them.
    Drain,
    /// Waits for the jobs that are at least as urgent as this priority. Less urgent jobs are cancelled at once.
    DrainDownTo(u8),
    /// Cancels them: see [`JobControl::cancel`](super::JobControl::cancel).
    Cancel,
}

/// The jobs that had not ended when the time was over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobsLeft {
    pub(super) ids: Vec<JobId>,
}

impl JobsLeft {
    /// The jobs, the oldest first.
    ///
    /// ```
    /// use std::time::Duration;
    /// use urgency::jobs::{CoreSet, JobsLeft};
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let endless = cores.spawn(std::future::pending::<()>())?;
    /// let left: JobsLeft = cores.drain_within(Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(left.ids(), [endless.id()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ids(&self) -> &[JobId] {
        &self.ids
    }
}

impl fmt::Display for JobsLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} job(s) had not ended when the time was over: ",
            self.ids.len()
        )?;
        for (place, id) in self.ids.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{id}")?;
        }
        Ok(())
    }
}

impl Error for JobsLeft {}
