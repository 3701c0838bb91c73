//! The description of a [`CoreSet`]: its cores, and how many jobs it runs and queues.

use super::CoreSet;
use crate::{BuildError, Builder, Runtime};
use urgency_policy::cores::CorePolicy;

/// How many jobs run at once if the builder says nothing.
pub(super) const MOST_RUNNING: usize = 64;

/// How many jobs are queued if the builder says nothing.
pub(super) const MOST_QUEUED: usize = 4096;

/// Builds a [`CoreSet`]; see [`CoreSet::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct CoreSetBuilder {
    pub(super) keeper: Builder,
    /// The method that last said something of the cores.
    pub(super) of_cores: Option<&'static str>,
    most_running: usize,
    most_queued: usize,
}

impl CoreSetBuilder {
    pub(super) fn new() -> CoreSetBuilder {
        CoreSetBuilder {
            keeper: Runtime::builder(),
            of_cores: None,
            most_running: MOST_RUNNING,
            most_queued: MOST_QUEUED,
        }
    }

    /// How many cores the set has: the number of its workers. The default is the number of CPUs that the process may
    /// use.
    pub fn cores(mut self, cores: usize) -> Self {
        self.keeper = self.keeper.workers(cores);
        self.of_cores = Some("cores");
        self
    }

    /// What decides how many cores each job has: see [`Builder::core_policy`]. The default is
    /// [`Shares`](crate::policy::cores::Shares).
    pub fn core_policy(mut self, policy: impl CorePolicy + Clone + Send + Sync + 'static) -> Self {
        self.keeper = self.keeper.core_policy(policy);
        self.of_cores = Some("core_policy");
        self
    }

    /// How many jobs run at once, 1 or more; others are queued. The default is 64. A job that runs takes some memory
    /// for each core and level.
    pub fn most_running(mut self, jobs: usize) -> Self {
        self.most_running = jobs;
        self
    }

    /// How many jobs are queued at most, beside the ones that run. The default is 4096. A queued job that cannot have
    /// its demand yet leaves places of running jobs free; the queue may have these, too.
    pub fn most_queued(mut self, jobs: usize) -> Self {
        self.most_queued = jobs;
        self
    }

    /// Builds the set. It has no thread until a job needs one.
    ///
    /// # Errors
    ///
    /// A number is out of its range.
    ///
    /// # Panics
    ///
    /// With the panic of a core policy of the program's own that is asked what it is like.
    pub fn build(self) -> Result<CoreSet, BuildError> {
        if self.most_running == 0 {
            return Err(BuildError::MostRunning);
        }
        let keeper = self.keeper.build().map_err(|error| match error {
            BuildError::Workers(cores) => BuildError::Cores(cores),
            error => error,
        })?;
        Ok(CoreSet::on(keeper, self.most_running, self.most_queued))
    }

    /// Builds the set on the cores of a runtime, as [`CoreSet::beside`], with these numbers of jobs.
    ///
    /// ```
    /// use urgency::{Runtime, jobs::CoreSet};
    ///
    /// let service = Runtime::builder().workers(2).build()?;
    /// let queries = CoreSet::builder().most_running(8).most_queued(100).build_beside(&service)?;
    /// assert_eq!(queries.spawn_fn(|| 6 * 7)?.get()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A number is out of its range, or the builder says something of the cores, which are the runtime's.
    pub fn build_beside(self, runtime: &Runtime) -> Result<CoreSet, BuildError> {
        if self.most_running == 0 {
            return Err(BuildError::MostRunning);
        }
        if let Some(setting) = self.of_cores {
            return Err(BuildError::OfSharedWorkers(setting));
        }
        let keeper = runtime.clone();
        Ok(CoreSet::on(keeper, self.most_running, self.most_queued))
    }
}
