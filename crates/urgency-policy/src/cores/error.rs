//! What is wrong with a demand, a job that wants to start, or a decision.

use super::JobId;
use core::fmt;

/// Which number of a [`Demand`](super::Demand) is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DemandError {
    /// The weight is zero.
    Weight,
    /// The weight of the group is zero.
    GroupWeight,
    /// The most cores are zero.
    MaxCores,
    /// The least cores are more than the most.
    MinAboveMax {
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// The span of a task is longer than its work, or there is no work.
    Span {
        /// The span.
        span: u64,
        /// The work.
        work: u64,
    },
    /// The period of a task is zero, or longer than its longest one.
    Period {
        /// The period.
        period: u64,
        /// The longest.
        longest: u64,
    },
    /// The elasticity of a task is zero.
    Elasticity,
}

impl fmt::Display for DemandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weight => write!(
                f,
                "the weight is 0; it must be at least 1 (for a job that may go without cores, set a larger `priority`)"
            ),
            Self::GroupWeight => write!(
                f,
                "the weight of the group is 0; it must be at least 1 (for jobs that may go without cores, set a larger \
                 `priority`)"
            ),
            Self::MaxCores => write!(
                f,
                "max_cores is 0; it must be at least 1 (to keep a job from running, do not start it)"
            ),
            Self::MinAboveMax { min, max } => write!(
                f,
                "min_cores is {min} and max_cores is {max}; the first can be at most the second"
            ),
            Self::Span { span, work } => write!(
                f,
                "a task has a span of {span} ns and work of {work} ns; the work must be above 0 and at least the span"
            ),
            Self::Period { period, longest } => write!(
                f,
                "a task has a period of {period} ns and a longest period of {longest} ns; the first must be above 0 and at \
                 most the second"
            ),
            Self::Elasticity => write!(
                f,
                "the elasticity of a task is 0; it must be at least 1 (for a rigid task, set `longest` to `period`)"
            ),
        }
    }
}

impl core::error::Error for DemandError {}

/// Why a job may not start, or may not change its demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Its demand is not valid.
    Demand(DemandError),
    /// Its number is not larger than the numbers of all jobs before.
    OldId {
        /// The number.
        given: JobId,
        /// The largest one before.
        last: JobId,
    },
    /// There is no such job to change.
    UnknownJob(JobId),
    /// The least cores of all jobs together would be more than there are.
    MinCores {
        /// How many it asks for.
        asked: usize,
        /// How many are not promised to others.
        left: usize,
    },
    /// The policy would have to promise more cores than there are.
    Cores {
        /// How many the job needs at least.
        needed: usize,
        /// How many the other jobs leave.
        left: usize,
    },
    /// A real-time task cannot keep its period with any number of cores.
    Span {
        /// Its span with all allowances, in nanoseconds.
        span: u64,
        /// Its longest period.
        period: u64,
    },
    /// Code of the core policy itself asked for it, inside of `decide` or `admit`.
    Deciding,
    /// The policy panicked when it was asked. Nothing has changed: the old demand holds, the job has not started.
    Panicked {
        /// The policy, by the name of its type.
        policy: &'static str,
    },
    /// A policy's own reason.
    Own(&'static str),
}

impl From<DemandError> for Refusal {
    fn from(cause: DemandError) -> Self {
        Refusal::Demand(cause)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demand(cause) => cause.fmt(f),
            Self::OldId { given, last } => write!(
                f,
                "{given} was to start after {last}; a later job must have a larger number"
            ),
            Self::UnknownJob(job) => write!(
                f,
                "{job} does not run; only a running job's demand can change"
            ),
            Self::MinCores { asked, left } => write!(
                f,
                "min_cores is {asked}, and only {left} core(s) are not promised to other jobs; ask for fewer, or start the \
                 job when another one has ended"
            ),
            Self::Cores { needed, left } => write!(
                f,
                "the job needs {needed} core(s), and the other jobs leave {left}; lengthen its longest period, or start it \
                 when another one has ended"
            ),
            Self::Span { span, period } => write!(
                f,
                "the task needs {span} ns on any number of cores, and its longest period is {period} ns; lengthen it"
            ),
            Self::Deciding => f.write_str(
                "the core policy asked for it inside of `decide` or `admit`, and the answer would have to wait for that \
                 call; let a task or another thread ask",
            ),
            Self::Panicked { policy } => write!(
                f,
                "the core policy {policy} panicked when it was asked whether it can keep this demand, which is refused; the \
                 panic's message says where: mend the policy's `admit`, or ask for something else"
            ),
            Self::Own(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for Refusal {}

/// An owner in words.
struct Owner(Option<JobId>);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(job) => job.fmt(f),
            None => f.write_str("nobody"),
        }
    }
}

/// Which rule a decision breaks. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionError {
    /// There is no such core.
    UnknownCore {
        /// The core.
        core: usize,
        /// How many there are.
        cores: usize,
    },
    /// The core is not available.
    Unavailable {
        /// The core.
        core: usize,
    },
    /// There is no such job.
    UnknownJob {
        /// The job.
        job: JobId,
    },
    /// One decision gives one core to two jobs.
    TwoOwners {
        /// The core.
        core: usize,
        /// The first owner; `None` if the core was to be free.
        first: Option<JobId>,
        /// The second.
        second: Option<JobId>,
    },
    /// A job would have more cores than its most.
    AboveMax {
        /// The job.
        job: JobId,
        /// How many it would have.
        cores: usize,
        /// The most.
        max: usize,
    },
    /// A job would lose a core and have fewer than its least.
    BelowMin {
        /// The job.
        job: JobId,
        /// How many it would have.
        cores: usize,
        /// The least.
        min: usize,
    },
    /// There is not one count for each job.
    Counts {
        /// How many counts were given.
        given: usize,
        /// How many jobs there are.
        jobs: usize,
    },
    /// The counts sum to more cores than are available.
    TooMany {
        /// The sum.
        asked: usize,
        /// How many are available.
        available: usize,
    },
    /// This machine cannot partition its cache.
    NoCacheControl,
    /// These cache ways cannot be given.
    CacheWays {
        /// The job.
        job: JobId,
        /// The ways, as bits.
        ways: u64,
        /// What the machine can do.
        control: super::CacheControl,
    },
    /// This machine cannot limit memory bandwidth.
    NoBandwidthControl,
    /// This bandwidth cannot be given.
    Bandwidth {
        /// The job.
        job: JobId,
        /// The percentage.
        percent: u8,
        /// What the machine can do.
        control: super::BandwidthControl,
    },
    /// The policy put another decision in the place of the one that it was given.
    Replaced,
    /// The timer is not in the future.
    TimerPassed {
        /// For when it was set.
        at: u64,
        /// What the time is.
        now: u64,
    },
}

impl fmt::Display for DecisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCore { core, cores } => write!(
                f,
                "the policy named core {core}; there are {cores}, numbered from 0"
            ),
            Self::Unavailable { core } => write!(
                f,
                "the policy gave away core {core}, which is not available; `Cores::available` lists those that are"
            ),
            Self::UnknownJob { job } => write!(
                f,
                "the policy named {job}, which does not run; `Cores::jobs` lists those that do"
            ),
            Self::TwoOwners {
                core,
                first,
                second,
            } => write!(
                f,
                "the policy gave core {core} to {} and then to {} in one decision; a core has one owner",
                Owner(*first),
                Owner(*second)
            ),
            Self::AboveMax { job, cores, max } => write!(
                f,
                "the policy would give {job} {cores} core(s), and its max_cores is {max}; `Decision::fit` keeps the bounds"
            ),
            Self::BelowMin { job, cores, min } => write!(
                f,
                "the policy would take cores from {job} and leave it {cores}, and its min_cores is {min}; `Decision::fit` \
                 keeps the bounds"
            ),
            Self::Counts { given, jobs } => write!(
                f,
                "the policy gave {given} counts for {jobs} job(s); it needs one for each, in the order of `Cores::jobs`"
            ),
            Self::TooMany { asked, available } => write!(
                f,
                "the policy gave away {asked} cores, and {available} are available"
            ),
            Self::NoCacheControl => write!(
                f,
                "the policy gave out cache ways, and this machine cannot partition its cache; ask `Cores::cache` first"
            ),
            Self::CacheWays { job, ways, control } => write!(
                f,
                "the policy gave {job} the cache ways {ways:#x}; this machine takes at least {} of {} way(s){}",
                control.least,
                control.ways,
                if control.sparse { "" } else { ", side by side" }
            ),
            Self::NoBandwidthControl => write!(
                f,
                "the policy limited memory bandwidth, and this machine cannot; ask `Cores::bandwidth` first"
            ),
            Self::Bandwidth {
                job,
                percent,
                control,
            } => write!(
                f,
                "the policy gave {job} {percent} % of the memory bandwidth; this machine takes {} to 100 in steps of {}",
                control.least, control.step
            ),
            Self::Replaced => f.write_str(
                "the policy put another decision in the place of the one that it was given; call the setters of that one",
            ),
            Self::TimerPassed { at, now } => write!(
                f,
                "the policy set its timer for {at} ns, and the time is {now} ns; it must be later"
            ),
        }
    }
}

impl core::error::Error for DecisionError {}

/// Which number of a policy's parameters is out of its range.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParametersError {
    /// The interval is zero.
    Interval,
    /// The utilisation bound is not above 0 and at most 1.
    Utilisation(f64),
    /// The growth factor is not above 1, or not finite.
    Growth(f64),
    /// The number of parts is zero.
    Parts,
}

impl fmt::Display for ParametersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval => write!(
                f,
                "the interval is 0 ns; it must be longer: 4,000,000 is usual"
            ),
            Self::Utilisation(given) => write!(
                f,
                "the utilisation bound is {given}; it must be above 0 and at most 1: 0.8 to 0.95 is usual"
            ),
            Self::Growth(given) => write!(
                f,
                "the growth factor is {given}; it must be above 1 and finite: 1.2 to 2 is usual"
            ),
            Self::Parts => write!(
                f,
                "the cores were to be divided into 0 parts; it takes at least 1"
            ),
        }
    }
}

impl core::error::Error for ParametersError {}
