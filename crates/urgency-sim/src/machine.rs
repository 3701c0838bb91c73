//! The machine of a simulation: workers, schedulers, and what things cost.

use serde::{Deserialize, Serialize};
use std::fmt;
use urgency_policy::{
    level::{Schedule, ScheduleError},
    pool::{AnyOrder, PlanError},
};

/// The most workers of a machine.
pub const MAX_WORKERS: usize = 1024;

/// The most that one step of scheduling may cost, in nanoseconds: so any sum of them is a number of nanoseconds.
pub const MAX_COST: u64 = 1_000_000_000;

/// What scheduling costs, in nanoseconds; each at most [`MAX_COST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// One operation on a queue that all workers share. Operations on the same queue come one after the
    /// other: this is what contention is made of.
    pub queue: u64,
    /// One look at another worker's deque or queue, with or without success (at least 1). Thieves of one
    /// victim come one after the other.
    pub steal: u64,
    /// Continuing a whole deque that another worker left.
    pub mug: u64,
    /// A worker goes from one stack to another that has run before.
    pub hand_off: u64,
    /// From the wake-up of a sleeping worker until it looks for work.
    pub wake: u64,
}

impl Costs {
    /// Nothing costs anything: the machine of the theorems. (A failed look still takes a nanosecond.)
    pub const ZERO: Costs = Costs {
        queue: 0,
        steal: 0,
        mug: 0,
        hand_off: 0,
        wake: 0,
    };

    /// Medians of five runs of `urgency sim --calibrate` alone on the 2-core virtual machine on which Urgency
    /// is developed, rounded. A wake-up was one of 6 or 50 µs there: as the processor slept lightly or
    /// deeply.
    pub const MEASURED: Costs = Costs {
        queue: 60,
        steal: 250,
        mug: 350,
        hand_off: 1_700,
        wake: 48_000,
    };

    pub(crate) fn check(&self) -> Result<(), MachineError> {
        let Costs {
            queue,
            steal,
            mug,
            hand_off,
            wake,
        } = *self;
        let all = [
            ("queue", queue),
            ("steal", steal),
            ("mug", mug),
            ("hand_off", hand_off),
            ("wake", wake),
        ];
        match above(&all) {
            Some((name, given)) => Err(MachineError::Cost { name, given }),
            None => Ok(()),
        }
    }
}

/// The first of these that costs more than it may.
pub(crate) fn above(costs: &[(&'static str, u64)]) -> Option<(&'static str, u64)> {
    costs.iter().copied().find(|(_, cost)| *cost > MAX_COST)
}

/// A simulated machine with its schedulers.
#[derive(Clone, Debug)]
pub struct Machine {
    /// How many workers, 1 to 1,024.
    pub workers: usize,
    /// Which level a worker serves.
    pub schedule: Schedule,
    /// Which context of a level comes next.
    pub pool: AnyOrder,
    /// What things cost.
    pub costs: Costs,
    /// The longest time between two scheduling points of running code, in nanoseconds. A vertex that lasts
    /// longer is interrupted, as by relief. `None`: only where vertices end.
    pub check_in: Option<u64>,
    /// The time between two deals of a worker's bank, in nanoseconds; 100 µs in the fairness paper.
    pub deal_interval: u64,
    /// How many looks in a row may fail before a worker sleeps.
    pub patience: u32,
    /// All randomness comes from it.
    pub seed: u64,
    /// How many spans of the schedule to keep in the report.
    pub record: usize,
}

impl Default for Machine {
    /// Two workers, prompt and aging, without costs.
    fn default() -> Self {
        Machine {
            workers: 2,
            schedule: Schedule::Prompt,
            pool: AnyOrder::default(),
            costs: Costs::ZERO,
            check_in: None,
            deal_interval: 100_000,
            patience: 32,
            seed: 1,
            record: 0,
        }
    }
}

impl Machine {
    pub(crate) fn check(&self) -> Result<(), MachineError> {
        if self.workers == 0 || self.workers > MAX_WORKERS {
            return Err(MachineError::Workers(self.workers));
        }
        if self.check_in == Some(0) {
            return Err(MachineError::CheckIn);
        }
        self.costs.check()?;
        self.pool.check().map_err(MachineError::Pool)
    }
}

/// Why there is no such machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineError {
    /// The number of workers is not between 1 and 1,024.
    Workers(usize),
    /// The time between two scheduling points is zero.
    CheckIn,
    /// A step of scheduling costs more than [`MAX_COST`].
    Cost {
        /// Which of [`Costs`].
        name: &'static str,
        /// How much, in nanoseconds.
        given: u64,
    },
    /// A number of the pool policy is out of its range.
    Pool(PlanError),
    /// A schedule of the user's own does not fit.
    Schedule(ScheduleError),
    /// The schedule has fewer levels than the computation.
    Levels {
        /// How many the schedule has.
        schedule: usize,
        /// How many the computation has.
        dag: usize,
    },
    /// Work remains that no worker may run: under fixed shares, at a level without a worker.
    Starved {
        /// How many vertices.
        vertices: usize,
    },
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineError::Workers(workers) => write!(
                f,
                "a machine with {workers} workers was asked for; it can have 1 to {MAX_WORKERS}"
            ),
            MachineError::CheckIn => write!(
                f,
                "the time between two scheduling points is 0 ns; it must be at least 1"
            ),
            MachineError::Cost { name, given } => write!(
                f,
                "the cost `{name}` is {given} ns; it can be up to {MAX_COST}"
            ),
            MachineError::Pool(cause) => cause.fmt(f),
            MachineError::Schedule(cause) => cause.fmt(f),
            MachineError::Levels { schedule, dag } => write!(
                f,
                "the schedule is for {schedule} levels, and the computation has {dag}; give one number for each level"
            ),
            MachineError::Starved { vertices } => write!(
                f,
                "{vertices} vertices remain that no worker may run: give every level with work a worker, or let idle workers donate"
            ),
        }
    }
}

impl std::error::Error for MachineError {}
