//! How far jobs are: fluids within a phase, as fast as their cores make them.

use super::{Engine, Happens, Job, phase_of};
use crate::jobs::{JobsError, Speed, Thieves};
use urgency_policy::cores::{CorePolicy, JobId, Usage};

impl<P: CorePolicy + ?Sized> Engine<'_, P> {
    pub(super) fn speed(&self, job: &Job) -> &Speed {
        &self.workload.speeds[phase_of(self.workload, job).speed]
    }

    /// How many nanoseconds a round of this job takes now.
    pub(super) fn round_time(&self, job: &Job) -> f64 {
        if self.partitioned {
            return self.speed(job).time(job.cores);
        }
        self.speed(job).time(self.cores.len()) * self.crowd
    }

    /// Accounts for what the job did until now.
    pub(super) fn account(&mut self, id: u64) {
        let job = &self.jobs[&id];
        let passed = (self.now - job.since) as f64;
        let rounds = match job.works {
            true => (passed / self.round_time(job)).min(job.left),
            false => 0.0,
        };
        let work = rounds * self.speed(job).round().work() as f64;
        let cores = match self.partitioned {
            true => job.cores as f64,
            false => self.cores.len() as f64 / self.jobs.len().max(1) as f64,
        };
        let job = self.jobs.get_mut(&id).expect("it is there");
        job.left -= rounds;
        job.work += work;
        job.had += cores * passed;
        job.since = self.now;
        if work > 0.0 {
            self.vain_timers = 0;
        }
        self.report.work += work;
        self.report.owned += cores * passed;
    }

    /// The job's speed has changed: its phase ends at another time.
    pub(super) fn schedule(&mut self, id: u64) {
        let job = &self.jobs[&id];
        let (time, left, works) = (self.round_time(job), job.left, job.works);
        let job = self.jobs.get_mut(&id).expect("it is there");
        job.version += 1;
        let version = job.version;
        if works && time.is_finite() {
            let end = self.now + (left * time).ceil() as u64;
            self.at(end, Happens::PhaseEnd { job: id, version });
        }
    }

    /// Without a partition the number of jobs is about to change, and with it everybody's speed.
    pub(super) fn account_shared(&mut self) {
        if !self.partitioned {
            for id in self.jobs.keys().copied().collect::<Vec<_>>() {
                self.account(id);
            }
        }
    }

    /// It has changed.
    pub(super) fn schedule_shared(&mut self) {
        if !self.partitioned {
            let cores = self.cores.len();
            let used = |job: &Job| {
                let speed = self.speed(job);
                speed.round().work() as f64 / speed.time(cores)
            };
            self.crowd = match self.machine.thieves {
                Thieves::Spin => self.jobs.len() as f64,
                Thieves::Yield => self.jobs.values().map(used).sum::<f64>() / cores as f64,
            };
            self.crowd = self.crowd.max(1.0);
            for id in self.jobs.keys().copied().collect::<Vec<_>>() {
                self.schedule(id);
            }
        }
    }

    pub(super) fn phase_end(&mut self, id: u64, version: u32) -> Result<(), JobsError> {
        if self.jobs.get(&id).is_none_or(|job| job.version != version) {
            return Ok(());
        }
        self.account(id);
        let phases = &self.workload.jobs[self.jobs[&id].spec].phases;
        let job = self.jobs.get_mut(&id).expect("it is there");
        job.phase += 1;
        match phases.get(job.phase) {
            Some(phase) => {
                job.left = phase.rounds;
                if !self.partitioned {
                    self.account_shared();
                    self.schedule_shared();
                    return Ok(());
                }
            }
            None if self.workload.jobs[job.spec].iterations.is_some() => {
                return self.iteration_end(id);
            }
            None => return self.end(id),
        }
        self.schedule(id);
        Ok(())
    }

    pub(super) fn measure(&mut self) -> Result<(), JobsError> {
        let ids: Vec<u64> = self.jobs.keys().copied().collect();
        for id in ids {
            self.account(id);
            let now = self.now;
            let job = self.jobs.get_mut(&id).expect("it is there");
            let work = std::mem::take(&mut job.work) as u64;
            let had = std::mem::take(&mut job.had) as u64;
            let usage = Usage {
                interval: now - job.interval_from,
                work,
                waste: had.saturating_sub(work),
                late: std::mem::take(&mut job.late),
                ..Usage::default()
            };
            job.interval_from = now;
            let broken = |cause| JobsError::Decision { at: now, cause };
            self.table.measure(JobId(id), usage).map_err(broken)?;
        }
        Ok(())
    }
}
