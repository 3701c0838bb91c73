//! A job as a core policy sees it: the cores that it asks for, the cores that it has, and how it used them.

use super::{DemandError, Group};
use core::fmt;

/// The name of a job in one table of jobs. The mechanism chooses it; a later job has a larger number.
///
/// The runtime enters a job when it has work, and under a new name each time: a job that has had none for a while comes
/// back as the youngest. Its [first](Job::first) name stays. Neither is the name that a program knows a job by
/// (`urgency::jobs::JobId`), and a policy that has to know whose job it is looks at its [`Group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}", self.0)
    }
}

/// What a job asks for. The default is a job without special wishes.
///
/// ```
/// use urgency_policy::cores::Demand;
///
/// let backup = Demand { priority: 1, max_cores: 4, ..Demand::default() };
/// assert_eq!(backup.check(), Ok(()));
/// assert!(Demand { weight: 0, ..backup }.check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Its share relative to the other jobs of its priority, 1 or more; 1 by default. In a group: relative to the other
    /// jobs of the group.
    pub weight: u32,
    /// The group whose share it has a part of; by default it is a group of its own, of its own weight.
    pub group: Option<Group>,
    /// Its priority: 0, the default, is the most urgent. A less urgent job gets what the more urgent ones leave, and
    /// its `min_cores`.
    pub priority: u8,
    /// So many cores it always has; 0 by default. While fewer cores are available than all jobs have been promised (an
    /// affinity that shrinks, workers in reserve), the more urgent jobs have theirs first, and of equals the oldest.
    pub min_cores: usize,
    /// So many cores it has at most, 1 or more; all by default.
    pub max_cores: usize,
    /// When it should be done, by the clock of [`Cores::now`](super::Cores::now), in nanoseconds. The built-in policies
    /// take no notice of it.
    pub deadline: Option<u64>,
    /// That it is a real-time task, for [`Elastic`](super::Elastic).
    pub task: Option<Task>,
}

impl Default for Demand {
    fn default() -> Self {
        Demand {
            weight: 1,
            group: None,
            priority: 0,
            min_cores: 0,
            max_cores: usize::MAX,
            deadline: None,
            task: None,
        }
    }
}

impl Demand {
    /// Whether its numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub fn check(&self) -> Result<(), DemandError> {
        if self.weight == 0 {
            return Err(DemandError::Weight);
        }
        if self.group.is_some_and(|group| group.weight == 0) {
            return Err(DemandError::GroupWeight);
        }
        if self.max_cores == 0 {
            return Err(DemandError::MaxCores);
        }
        if self.min_cores > self.max_cores {
            return Err(DemandError::MinAboveMax {
                min: self.min_cores,
                max: self.max_cores,
            });
        }
        self.task.map_or(Ok(()), |task| task.check())
    }
}

/// How the iterations of a real-time task are released. The simulator releases them so. In the runtime the task's own
/// code does (`jobs::Iterations`), and this only says how.
///
/// ```
/// use urgency_policy::cores::{Release, Task};
///
/// let camera = Task::new(80_000_000, 2_000_000, 33_000_000);
/// let button = Task { release: Release::Sporadic, ..camera };
/// assert_eq!(button.least_cores(33_000_000), camera.least_cores(33_000_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Release {
    /// Each period one, by the clock.
    #[default]
    Periodic,
    /// By events, at least a period apart.
    Sporadic,
}

/// A parallel real-time task: each iteration must be done within a period. Times are in nanoseconds.
///
/// An *elastic* task tolerates periods up to `longest`. A task that tolerates one period only has `longest` equal to
/// `period`.
///
/// ```
/// use urgency_policy::cores::Task;
///
/// let camera = Task::new(80_000_000, 2_000_000, 33_000_000);
/// assert_eq!(camera.least_cores(33_000_000), Some(3), "(80 - 2) / (33 - 2), rounded up");
/// assert_eq!(camera.least_cores(2_000_000), None, "no number of cores is enough");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The most work of an iteration.
    pub work: u64,
    /// The longest path through an iteration, at most `work`.
    pub span: u64,
    /// The period that it would like.
    pub period: u64,
    /// The longest period that it tolerates.
    pub longest: u64,
    /// How readily its period is stretched when cores are short, 1 or more: twice the number, half the resistance.
    pub elasticity: u32,
    /// How its iterations are released. Both kinds need the same number of cores.
    pub release: Release,
}

impl Task {
    /// A periodic task that tolerates this period only.
    pub const fn new(work: u64, span: u64, period: u64) -> Self {
        Task {
            work,
            span,
            period,
            longest: period,
            elasticity: 1,
            release: Release::Periodic,
        }
    }

    /// The least number of cores with which a greedy schedule ends each iteration within `period`; `None` if there is
    /// no such number. This is ⌈(C − L) / (T − L)⌉ of federated scheduling: a greedy schedule on m cores takes at most
    /// (C − L) / m + L.
    pub fn least_cores(&self, period: u64) -> Option<usize> {
        if self.work <= period {
            return Some(1);
        }
        let slack = period.checked_sub(self.span).filter(|&slack| slack > 0)?;
        usize::try_from((self.work - self.span).div_ceil(slack)).ok()
    }

    /// The shortest period that so many cores can keep: (C − L) / m + L, rounded up.
    ///
    /// ```
    /// use urgency_policy::cores::Task;
    ///
    /// let task = Task::new(10, 4, 20); // work 10, span 4
    /// assert_eq!((task.least_period(1), task.least_period(3)), (10, 6));
    /// ```
    ///
    /// # Panics
    ///
    /// If `cores` is 0.
    pub fn least_period(&self, cores: usize) -> u64 {
        (self.work - self.span).div_ceil(cores as u64) + self.span
    }

    pub(super) fn check(&self) -> Result<(), DemandError> {
        let Task {
            work, span, period, ..
        } = *self;
        if span > work || work == 0 {
            return Err(DemandError::Span { span, work });
        }
        if period == 0 || self.longest < period {
            return Err(DemandError::Period {
                period,
                longest: self.longest,
            });
        }
        if self.elasticity == 0 {
            return Err(DemandError::Elasticity);
        }
        Ok(())
    }
}

/// What a job did in the interval before the last timer. Times are in nanoseconds, summed over its cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How long the interval was; 0 before the first one is over.
    pub interval: u64,
    /// How long its cores ran its work.
    pub work: u64,
    /// How long its cores looked for work, slept, or were on the move.
    pub waste: u64,
    /// How many iterations of the task ended in it after their deadlines.
    pub late: u64,
    /// For how long its threads ran beside its cores: in the middle of pieces of work from which cores were taken,
    /// since the pieces came to no scheduling point.
    pub beside: u64,
}

impl Usage {
    /// Of one piece of work no more than this is counted as [`beside`](Self::beside), in nanoseconds: 100 ms. What is
    /// longer is an endless loop.
    ///
    /// ```
    /// use urgency_policy::cores::Usage;
    ///
    /// // Half of a core for a second, beside the cores, in pieces of which none is an endless loop.
    /// let usage = Usage { beside: 5 * Usage::MOST_BESIDE, ..Usage::default() };
    /// assert_eq!(usage.beside, 500_000_000);
    /// ```
    pub const MOST_BESIDE: u64 = 100_000_000;

    /// How many cores it had in the mean.
    pub fn cores(&self) -> f64 {
        match self.interval {
            0 => 0.0,
            interval => (self.work + self.waste) as f64 / interval as f64,
        }
    }
}

/// A job of the table.
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, Job, JobId, Shares};
///
/// let mut cores = Cores::new(2);
/// cores.start(&mut Shares::default(), JobId(1), Demand::default())?;
/// let job: &Job = &cores.jobs()[0];
/// assert_eq!((job.id(), job.cores()), (JobId(1), 0), "nothing was decided yet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(super) id: JobId,
    pub(super) first: JobId,
    pub(super) demand: Demand,
    pub(super) started: u64,
    pub(super) usage: Usage,
    pub(super) cores: usize,
}

impl Job {
    /// Its name.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The name under which it entered for the first time: another one than [`id`](Self::id) if it has
    /// [rested](super::Cores::rest) since.
    pub fn first(&self) -> JobId {
        self.first
    }

    /// What it asks for.
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// When it entered, in nanoseconds.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// What it did in the last interval.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// How many cores it has.
    pub fn cores(&self) -> usize {
        self.cores
    }
}
