//! When a job was submitted, when it started, and when it was over.

use std::time::{Duration, Instant};

/// When the steps of a job's life were: see [`JobControl::times`](super::JobControl::times).
///
/// ```
/// use urgency::jobs::{CoreSet, JobTimes};
///
/// let cores = CoreSet::builder().cores(1).build()?;
/// let job = cores.spawn_fn(|| (1..1000).sum::<u32>())?;
/// let control = job.control();
/// job.get()?;
/// let times: JobTimes = control.times();
/// let all = times.over.unwrap() - times.submitted;
/// assert_eq!(all, times.queued() + times.running().unwrap());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobTimes {
    /// When it was submitted.
    pub submitted: Instant,
    /// When it started; `None` if it is queued, or never started.
    pub started: Option<Instant>,
    /// When it was over: nothing of it ran any more. `None` before.
    pub over: Option<Instant>,
}

impl JobTimes {
    pub(super) fn now() -> Self {
        JobTimes {
            submitted: Instant::now(),
            started: None,
            over: None,
        }
    }

    /// How long it was queued, until now if it is.
    pub fn queued(&self) -> Duration {
        let end = self.started.or(self.over).unwrap_or_else(Instant::now);
        end.saturating_duration_since(self.submitted)
    }

    /// How long it ran, until now if it does; `None` if it has not started.
    pub fn running(&self) -> Option<Duration> {
        let end = self.over.unwrap_or_else(Instant::now);
        Some(end.saturating_duration_since(self.started?))
    }
}
