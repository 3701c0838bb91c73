//! What a simulation of jobs found.

use crate::report::quantile;
use serde::Serialize;

/// Flow times: from a job's arrival to its end, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowTimes {
    /// How many jobs.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// The mean of the last quarter of the jobs divided by the mean of the second: far above 1 if jobs pile up.
    pub growth: f64,
}

impl FlowTimes {
    /// Of flow times in the order of arrival.
    pub(super) fn of(times: &[u64]) -> Self {
        let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len().max(1) as f64;
        let quarter = times.len() / 4;
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        FlowTimes {
            count: times.len(),
            mean: mean(times),
            p50: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            p99: quantile(&sorted, 0.99),
            max: sorted.last().copied().unwrap_or(0),
            growth: mean(&times[times.len() - quarter..])
                / mean(&times[quarter..2 * quarter]).max(1.0),
        }
    }
}

/// What became of a real-time task's iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskReport {
    /// How many were released.
    pub released: u32,
    /// How many ended after their deadline.
    pub missed: u32,
    /// How often it asked for a shorter period.
    pub bursts: u32,
    /// How many of these the policy refused.
    pub refused: u32,
}

/// A job had so many cores from then on, by the policy's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CoresAt {
    /// When, in nanoseconds.
    pub time: u64,
    /// The job's number.
    pub job: u64,
    /// How many cores.
    pub cores: usize,
}

/// How a job came to many cores: from the first step after it had few until it has many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Climb {
    /// How often its cores became more.
    pub steps: usize,
    /// How long that took, in nanoseconds.
    pub nanos: u64,
}

/// What a simulation of jobs found. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobsReport {
    /// How many cores there were.
    pub cores: usize,
    /// When the last job had ended.
    pub makespan: u64,
    /// The jobs' flow times; of a task, from its arrival to the end of its last iteration.
    pub flow: FlowTimes,
    /// By job, in the order of arrival: when it ended.
    #[serde(skip)]
    pub ended: Vec<u64>,
    /// By job, in the order of arrival: what became of its iterations, if it is a task.
    pub tasks: Vec<TaskReport>,
    /// Work that was done, in core-nanoseconds.
    pub work: f64,
    /// Core time that jobs had.
    pub owned: f64,
    /// How often the policy was asked.
    pub decisions: u64,
    /// How many cores it moved.
    pub moves: u64,
    /// The most jobs that ran at a time.
    pub most_running: usize,
    /// The most jobs that waited for a container.
    pub most_waiting: usize,
    /// How jobs' cores changed, if that was to be recorded.
    pub allotments: Vec<CoresAt>,
}

impl JobsReport {
    /// The part of all cores' time in which work was done.
    pub fn utilisation(&self) -> f64 {
        self.work / (self.cores as f64 * self.makespan.max(1) as f64)
    }

    /// How a job came from at most a quarter of the cores to at least three quarters, each time that it did; of what
    /// was recorded.
    pub fn climbs(&self, job: u64) -> Vec<Climb> {
        let mut climbs = Vec::new();
        // Of the climb that it may be on: when it began, and its steps.
        let (mut had, mut began, mut steps) = (0, None, None);
        for &CoresAt { time, cores, .. } in self.allotments.iter().filter(|at| at.job == job) {
            if cores < had && 4 * cores <= self.cores {
                (began, steps) = (None, Some(0));
            }
            if cores > had
                && let Some(steps) = &mut steps
            {
                *steps += 1;
                began.get_or_insert(time);
            }
            if 4 * cores >= 3 * self.cores
                && let Some(steps) = steps.take()
            {
                let nanos = time - began.unwrap_or(time);
                climbs.push(Climb { steps, nanos });
            }
            had = cores;
        }
        climbs
    }
}
