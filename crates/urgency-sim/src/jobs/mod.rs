//! Many jobs on one set of cores, under the core policies of [`urgency_policy::cores`].
//!
//! 1. A [`Workload`] is what arrives: jobs made of phases, each phase so many equal [`Round`]s; or real-time tasks
//!    whose iterations are released again and again. [`flow`], [`elastic_pair`] and [`feedback_pair`] make the
//!    workloads of the AMCilk paper.
//! 2. A [`JobsMachine`] has cores, containers, and costs.
//! 3. [`run`] lets a policy decide, carries its decisions out, and returns a [`JobsReport`].
//!
//! ```
//! use urgency_policy::cores::Drep;
//! use urgency_sim::jobs::{JobsMachine, Shape, Sizes, flow, run};
//!
//! let machine = JobsMachine { cores: 38, ..JobsMachine::default() };
//! let workload = flow(Sizes::BING, Shape::Rounds, 200, 0.75, &machine);
//! let report = run(&workload, &machine, &mut Drep::new(1))?;
//! assert_eq!(report.flow.count, 200);
//! # Ok::<(), urgency_sim::jobs::JobsError>(())
//! ```
//!
//! # What is exact and what is not
//!
//! - Decisions are exact: it is the policies' own code, on the table that the runtime uses, and each answer is checked.
//! - A job is a fluid within a phase: on x cores it advances a round in the mean time that [`steal`] measures for x
//!   workers, node by node, with the costs of stealing. A machine of 1,024 cores with 50,000 jobs so takes seconds.
//! - A core that moves stops where the policy's [`Boundary`](urgency_policy::cores::Boundary) says. At a scheduling
//!   point: after a uniform part of a node. Where it would steal: after a uniform part of a round, and once more for
//!   each round that it is the one that carries on (1 of x); a job's only core never would. At the end of the job or of
//!   the iteration.
//! - Without a partition all jobs have workers on all cores, and the system shares each core ([`Thieves`]). What its
//!   switches cost is left out.

mod engine;
mod report;
mod steal;
mod workload;

pub use crate::generate::Sizes;
pub use engine::run;
pub use report::{Climb, CoresAt, FlowTimes, JobsReport, TaskReport};
pub use steal::{Crew, Leftovers, Round, Speed, StealCosts, Stolen, steal};
pub(crate) use workload::gap;
pub use workload::{
    Iterations, JobSpec, MOST_LOAD, Phase, Shape, Workload, elastic_pair, feedback_pair, flow,
};

use crate::machine::above;
use serde::{Deserialize, Serialize};
use std::fmt;
use urgency_policy::cores::{DecisionError, JobId, Refusal};

/// The most cores of a machine.
pub const MAX_CORES: usize = crate::machine::MAX_WORKERS;

/// The most that one step of the job layer may cost, in nanoseconds.
pub const MAX_COST: u64 = crate::machine::MAX_COST;

/// What the job layer costs, in nanoseconds; each at most [`MAX_COST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobCosts {
    /// A decision of the policy.
    pub decide: u64,
    /// A job starts, besides the decision and the moves.
    pub start: u64,
    /// A job is removed, besides those.
    pub exit: u64,
    /// A worker goes to sleep at its boundary, without the way there.
    pub leave: u64,
    /// A worker of the new job wakes up.
    pub join: u64,
    /// What thieves do.
    pub steal: StealCosts,
}

impl JobCosts {
    /// Nothing costs anything. (A look at a victim still takes 100 ns, or idle thieves would look all the time.)
    pub const ZERO: JobCosts = JobCosts {
        decide: 0,
        start: 0,
        exit: 0,
        leave: 0,
        join: 0,
        steal: StealCosts {
            attempt: 100,
            steal: 0,
            mug: 0,
        },
    };

    /// What the AMCilk paper measured on 40 cores (section IV-A): a decision 17.5 µs; starting a job 295 µs of
    /// which 272 are the decision and its moves; removing one 10 µs; putting a worker to sleep 85.2 µs of which 5 are
    /// the mean way to the boundary; waking one up 57.5 µs; a steal 1.44 µs; resuming a leftover 7.2 µs. It does
    /// not say what a failed look costs: that is [`Costs::MEASURED`](crate::Costs::MEASURED)'s.
    pub const PAPER: JobCosts = JobCosts {
        decide: 17_500,
        start: 23_000,
        exit: 10_000,
        leave: 80_200,
        join: 57_500,
        steal: StealCosts {
            attempt: 250,
            steal: 1_440,
            mug: 7_200,
        },
    };

    /// What `urgency-bench jobs-costs` measured on the machine with 2 processors on which Urgency is developed (p50,
    /// where no idle processor must be woken): a decision of *shares*; a job's start and removal; a move, 4 µs, of
    /// which half counts as leaving; what goes on after the removal of a job that took its worker, 2 µs later.
    pub const MEASURED: JobCosts = JobCosts {
        decide: 4_400,
        start: 3_700,
        exit: 2_900,
        leave: 2_000,
        join: 2_000,
        steal: StealCosts {
            attempt: 250,
            steal: 250,
            mug: 2_000,
        },
    };

    /// The bars that Urgency's job layer is to meet: 5 µs for a decision, 20 for a start with its moves, 20 for a move,
    /// 10 for a removal, 4 for a leftover; steals as [`Costs::MEASURED`](crate::Costs::MEASURED). They are goals, not
    /// measurements.
    pub const GOAL: JobCosts = JobCosts {
        decide: 5_000,
        start: 5_000,
        exit: 5_000,
        leave: 5_000,
        join: 10_000,
        steal: StealCosts {
            attempt: 250,
            steal: 250,
            mug: 4_000,
        },
    };

    pub(crate) fn check(&self) -> Result<(), JobsError> {
        let JobCosts {
            decide,
            start,
            exit,
            leave,
            join,
            steal,
        } = *self;
        let all = [
            ("decide", decide),
            ("start", start),
            ("exit", exit),
            ("leave", leave),
            ("join", join),
            ("steal.attempt", steal.attempt),
            ("steal.steal", steal.steal),
            ("steal.mug", steal.mug),
        ];
        match above(&all) {
            Some((name, given)) => Err(JobsError::Cost { name, given }),
            None => Ok(()),
        }
    }
}

/// How decisions are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Carrying {
    /// Each core by itself; the next decision may come while cores are on their way.
    #[default]
    EachCore,
    /// One decision after the other: the next one waits until all cores of the last have arrived. So does AMCilk's
    /// source, which holds one lock meanwhile.
    OneDecision,
}

/// What idle thieves do where cores are not partitioned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Thieves {
    /// They let others run: n jobs slow each other down only if together they can use more than all cores.
    #[default]
    Yield,
    /// They spin: each of n jobs has an nth of each core.
    Spin,
}

/// A simulated machine for jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobsMachine {
    /// How many cores, 1 to 1,024.
    pub cores: usize,
    /// How many jobs run at the same time at most; others wait, first come first served. As many as cores in the
    /// paper; 0 stands for that.
    pub containers: usize,
    /// What things cost.
    pub costs: JobCosts,
    /// How decisions are carried out.
    pub carrying: Carrying,
    /// What idle thieves do where cores are not partitioned.
    pub thieves: Thieves,
    /// All randomness of the mechanism and of the workload comes from it.
    pub seed: u64,
    /// How many changes of jobs' cores to keep in the report.
    pub record: usize,
}

impl Default for JobsMachine {
    /// The paper's: 38 cores.
    fn default() -> Self {
        JobsMachine {
            cores: 38,
            containers: 0,
            costs: JobCosts::PAPER,
            carrying: Carrying::default(),
            thieves: Thieves::default(),
            seed: 1,
            record: 0,
        }
    }
}

/// Why a simulation of jobs ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobsError {
    /// The number of cores is not between 1 and 1,024.
    Cores(usize),
    /// A step of the job layer costs more than [`MAX_COST`].
    Cost {
        /// Which of [`JobCosts`].
        name: &'static str,
        /// How much, in nanoseconds.
        given: u64,
    },
    /// A job of the workload is none that can be run.
    Spec {
        /// Which.
        job: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The policy broke a rule.
    Decision {
        /// When, in nanoseconds.
        at: u64,
        /// Which rule.
        cause: DecisionError,
    },
    /// A job was refused.
    Refused {
        /// The job.
        job: JobId,
        /// Why.
        cause: Refusal,
    },
    /// Jobs are left, and the policy gives them no cores.
    Starved {
        /// How many.
        jobs: usize,
    },
}

impl fmt::Display for JobsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cores(cores) => write!(
                f,
                "a machine with {cores} cores was asked for; it can have 1 to {MAX_CORES}"
            ),
            Self::Cost { name, given } => write!(
                f,
                "the cost `{name}` is {given} ns; it can be up to {MAX_COST}"
            ),
            Self::Spec { job, what } => write!(f, "job {job} of the workload {what}"),
            Self::Decision { at, cause } => write!(f, "at {at} ns {cause}"),
            Self::Refused { job, cause } => write!(f, "{job} was refused: {cause}"),
            Self::Starved { jobs } => write!(
                f,
                "{jobs} job(s) are left without cores, and nothing will change that: the policy must give every job a core \
                 some time"
            ),
        }
    }
}

impl std::error::Error for JobsError {}
