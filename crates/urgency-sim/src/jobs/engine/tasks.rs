//! Real-time tasks: releases, periods and deadlines.
//!
//! A periodic task is released each period. A sporadic one is released at random, a period to two after the last time.

use super::{Engine, Happens, Todo};
use crate::jobs::JobsError;
use urgency_policy::cores::{CorePolicy, Demand, Event, JobId, Release, Request, Task};

impl<P: CorePolicy + ?Sized> Engine<'_, P> {
    pub(super) fn release(&mut self, id: u64, version: u32) -> Result<(), JobsError> {
        let Some(job) = self.jobs.get(&id).filter(|job| job.releases == version) else {
            return Ok(());
        };
        let spec = job.spec;
        let given = &self.workload.jobs[spec];
        let iterations = given.iterations.as_ref().expect("a task is released");
        let number = self.report.tasks[spec].released;
        let in_burst = |number| {
            let bursts = iterations.bursts.iter();
            bursts
                .clone()
                .any(|&(from, count)| (from..from.saturating_add(count)).contains(&number))
        };
        if in_burst(number) != (number > 0 && in_burst(number - 1)) {
            self.do_or_wait(Todo::Change(id, in_burst(number)))?;
        }
        self.report.tasks[spec].released += 1;
        let period = self.period(id);
        let job = self.jobs.get_mut(&id).expect("it is there");
        job.waiting.push_back(self.now);
        if !job.works {
            self.begin_iteration(id);
        }
        if iterations.count == 0 || self.report.tasks[spec].released < iterations.count {
            let late = match given.demand.task.map(|task| task.release) {
                Some(Release::Sporadic) => self.dice.below(period),
                _ => 0,
            };
            self.release_at(id, self.now + period + late);
        }
        Ok(())
    }

    pub(super) fn release_at(&mut self, id: u64, time: u64) {
        let job = self.jobs.get_mut(&id).expect("it is there");
        job.releases += 1;
        job.next_release = time;
        let version = job.releases;
        self.at(time, Happens::Release { job: id, version });
    }

    /// The period that the task has to keep: the policy's, as far as the task tolerates that, or else the one that the
    /// task would like.
    pub(super) fn period(&self, id: u64) -> u64 {
        let task = self.table.job(JobId(id)).and_then(|job| job.demand().task);
        let kept = self.policy.period(JobId(id), &self.table);
        task.map_or(1, |task| match kept {
            Some(period) => period.min(task.longest).max(task.period),
            None => task.period,
        })
    }

    pub(super) fn change_period(&mut self, id: u64, shorter: bool) -> Result<(), JobsError> {
        let Some(spec) = self.jobs.get(&id).map(|job| job.spec) else {
            return Ok(());
        };
        let usual = self.workload.jobs[spec].demand;
        let demand = Demand {
            task: usual.task.map(|task| match shorter {
                true => Task {
                    period: task.period / 3,
                    longest: task.longest / 3,
                    ..task
                },
                false => task,
            }),
            ..usual
        };
        self.report.tasks[spec].bursts += u32::from(shorter);
        if self.table.change(self.policy, JobId(id), demand).is_err() {
            self.report.tasks[spec].refused += u32::from(shorter);
            return Ok(());
        }
        self.decide(Event::Request(Request::Demand(JobId(id))), 0)
    }

    pub(super) fn begin_iteration(&mut self, id: u64) {
        self.account(id);
        let period = self.period(id);
        let phases = &self.workload.jobs[self.jobs[&id].spec].phases;
        let job = self.jobs.get_mut(&id).expect("it is there");
        job.released = job.waiting.pop_front().expect("an iteration was released");
        job.deadline = job.released + period;
        job.works = true;
        job.phase = 0;
        job.left = phases.first().map_or(0.0, |phase| phase.rounds);
        self.schedule(id);
    }

    /// A task whose period was stretched has until then, and its next iteration comes no sooner: it was admitted with
    /// that.
    pub(super) fn longer_deadlines(&mut self) {
        let ids: Vec<u64> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.works)
            .map(|(&id, _)| id)
            .collect();
        for id in ids {
            if self.workload.jobs[self.jobs[&id].spec].iterations.is_some() {
                let period = self.period(id);
                let job = self.jobs.get_mut(&id).expect("it is there");
                let end = job.released + period;
                job.deadline = job.deadline.max(end);
                if job.next_release > self.now && job.next_release < end {
                    self.release_at(id, end);
                }
            }
        }
    }

    pub(super) fn iteration_end(&mut self, id: u64) -> Result<(), JobsError> {
        let now = self.now;
        let job = self.jobs.get_mut(&id).expect("it is there");
        job.works = false;
        job.phase = 0;
        job.version += 1;
        let spec = job.spec;
        let is_late = now > job.deadline;
        job.late += u64::from(is_late);
        self.report.tasks[spec].missed += u32::from(is_late);
        let stuck = std::mem::take(&mut job.stuck);
        let more = !job.waiting.is_empty();
        for core in stuck {
            self.travel_if_leaving(core, JobId(id), 0);
        }
        let released = self.report.tasks[spec].released;
        let count = |spec: usize| {
            let iterations = self.workload.jobs[spec].iterations.as_ref();
            iterations.map_or(0, |iterations| iterations.count)
        };
        if more {
            self.begin_iteration(id);
        } else if count(spec) > 0 && released == count(spec) {
            self.end(id)?;
        }
        Ok(())
    }
}
