//! Fractions of a core over time.
//!
//! Three equal jobs on two cores have two thirds of a core each, and a core has one owner. So they take turns. A job
//! has a *credit*: the core time that its share entitled it to and that it did not get. The cores that remain after the
//! whole ones go to the jobs with the largest credit. Over time each job gets its share but for one core during one
//! interval, and no job with a share goes without a core for good.
//!
//! What a job's threads ran beside its cores ([`Usage::beside`](super::Usage::beside)) is core time that it got. (It
//! was not: of four equal jobs on two cores one with pieces of 40 ms had 92 % of what was computed, on 72 threads. Each
//! turn of it began one more piece.)

use super::{Cores, Job, Part, PerJob, divide::hand_out};
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    /// In core-nanoseconds.
    owed: f64,
    /// In cores, since the last decision.
    share: f64,
}

/// The credits of all jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Credits {
    jobs: PerJob<Credit>,
    /// When it was accounted last.
    at: u64,
}

impl Credits {
    /// Accounts for the time since the last decision.
    pub(super) fn settle(&mut self, cores: &Cores) {
        self.jobs.keep_up(cores, |_| Credit::default());
        let passed = cores.now().saturating_sub(self.at) as f64;
        self.at = cores.now();
        for (credit, job) in self.jobs.values_mut().zip(cores.jobs()) {
            credit.owed += (credit.share - job.cores() as f64) * passed;
            if credit.share == 0.0 {
                // What it had beyond a share of nothing was nobody else's.
                credit.owed = credit.owed.max(0.0);
            }
        }
    }

    /// Accounts for what was measured in the interval that is over. What ran beside the cores took that time from the
    /// jobs that had them.
    pub(super) fn charge(&mut self, cores: &Cores) {
        let jobs = cores.jobs();
        let beside: u64 = jobs.iter().map(|job| job.usage().beside).sum();
        let owned: usize = jobs.iter().map(Job::cores).sum();
        let lost = beside as f64 / owned.max(1) as f64;
        for (credit, job) in self.jobs.values_mut().zip(jobs) {
            credit.owed += lost * job.cores() as f64 - job.usage().beside as f64;
        }
    }

    /// Rounds shares to cores for the coming interval.
    pub(super) fn round(&mut self, parts: &[Part], interval: u64) -> Vec<usize> {
        let mut counts: Vec<usize> = parts.iter().map(|part| part.whole).collect();
        let owed: Vec<f64> = self.jobs.values().map(|credit| credit.owed).collect();
        hand_out(parts, &mut counts, |index| {
            owed[index] + parts[index].fraction * interval as f64
        });
        for (credit, part) in self.jobs.values_mut().zip(parts) {
            credit.share = part.share();
        }
        counts
    }
}
