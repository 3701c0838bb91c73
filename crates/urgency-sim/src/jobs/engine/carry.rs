//! Decisions, and how cores come from one job to another.

use super::{Engine, Happens, Job, Todo, phase_of};
use crate::jobs::{Carrying, CoresAt, JobsError};
use urgency_policy::cores::{Boundary, CorePolicy, Event, JobId};

impl<P: CorePolicy + ?Sized> Engine<'_, P> {
    /// A decision comes at once, or after those before it: [`Carrying`](crate::jobs::Carrying).
    pub(super) fn do_or_wait(&mut self, todo: Todo) -> Result<(), JobsError> {
        if self.must_wait() || !self.todo.is_empty() {
            self.todo.push_back(todo);
            return Ok(());
        }
        self.carry_out(todo)
    }

    pub(super) fn must_wait(&self) -> bool {
        self.machine.carrying == Carrying::OneDecision && self.moving > 0
    }

    pub(super) fn carry_out(&mut self, todo: Todo) -> Result<(), JobsError> {
        match todo {
            Todo::Exit(id) => {
                let at = self.now;
                let broken = |cause| JobsError::Decision { at, cause };
                self.table.exit(JobId(id)).map_err(broken)?;
                let costs = self.machine.costs;
                self.decide(Event::Exit(JobId(id)), costs.exit)?;
                // What was given away while it still served the job that has ended.
                let ready = self.now + costs.exit + costs.decide + costs.join;
                for core in 0..self.cores.len() {
                    let idle = self.cores[core].serves.is_none() && !self.cores[core].moves;
                    if idle && self.table.owner(core).is_some() {
                        self.travel(core, ready, true);
                    }
                }
                Ok(())
            }
            Todo::Timer => {
                self.measure()?;
                self.decide(Event::Timer, 0)
            }
            Todo::Change(id, shorter) => self.change_period(id, shorter),
        }
    }

    pub(super) fn decide(&mut self, event: Event, before: u64) -> Result<(), JobsError> {
        let now = self.now;
        let decision = self
            .table
            .decide(self.policy, event)
            .map_err(|cause| JobsError::Decision { at: now, cause })?;
        let moves = decision.moves().to_vec();
        let timer = decision.timer();
        self.report.decisions += 1;
        self.report.moves += moves.len() as u64;
        self.record();
        // Later than this is never: what begins then would end beyond all numbers.
        if let Some(at) = timer.filter(|&at| at <= u64::MAX / 2) {
            self.timer += 1;
            self.at(
                at,
                Happens::Timer {
                    version: self.timer,
                },
            );
        }
        let from = now + before + self.machine.costs.decide;
        for change in moves {
            let core = self.cores[change.core];
            match (core.serves, core.moves) {
                // It comes back before it has left.
                (Some(serves), true) if change.to == Some(serves) => {
                    self.arrived(change.core);
                }
                // At the end of its way it looks at the table.
                (_, true) => {}
                (Some(serves), false) => {
                    let way = self.way_to_boundary(serves);
                    self.travel(change.core, from + way, false);
                }
                (None, false) if change.to.is_some() => {
                    self.travel(change.core, from + self.machine.costs.join, true);
                }
                (None, false) => {}
            }
        }
        if self.has_tasks {
            self.longer_deadlines();
        }
        Ok(())
    }

    /// Notes whose number of cores is another one than before.
    fn record(&mut self) {
        let time = self.now;
        for seen in self.table.jobs() {
            if self.report.allotments.len() >= self.machine.record {
                return;
            }
            let (job, cores) = (seen.id().0, seen.cores());
            // A job that has ended may be in the table for as long as its exit waits for cores that move.
            if let Some(state) = self.jobs.get_mut(&job)
                && state.recorded.replace(cores) != Some(cores)
            {
                self.report.allotments.push(CoresAt { time, job, cores });
            }
        }
    }

    pub(super) fn travel(&mut self, core: usize, until: u64, arrives: bool) {
        self.arrived(core);
        self.moving += 1;
        self.cores[core].moves = true;
        let trip = self.cores[core].trip;
        let happens = match arrives {
            true => Happens::Arrival { core, trip },
            false => Happens::Boundary { core, trip },
        };
        self.at(until, happens);
    }

    /// A core is not on its way any more; what was to come of it is void.
    pub(super) fn arrived(&mut self, core: usize) {
        let slot = &mut self.cores[core];
        slot.trip += 1;
        self.moving -= usize::from(std::mem::take(&mut slot.moves));
    }

    /// How long a core that serves this job runs until it comes to a boundary.
    pub(super) fn way_to_boundary(&mut self, id: JobId) -> u64 {
        let job = &self.jobs[&id.0];
        if !job.works {
            return 0;
        }
        let speed = self.speed(job);
        let longest = match self.policy.boundary() {
            Boundary::Point => speed.round().frame() as f64,
            Boundary::Steal => self.time_to_steal(job),
            Boundary::Job => 0.0,
        };
        (self.dice.unit() * longest) as u64
    }

    /// How long a core of this job has work of its own, at most.
    pub(super) fn time_to_steal(&self, job: &Job) -> f64 {
        let rounds = match phase_of(self.workload, job).one_tree {
            true => job.left,
            false => 1.0,
        };
        rounds * self.speed(job).time(job.cores)
    }

    /// A core that is to leave its job is at what may be its boundary.
    pub(super) fn at_boundary(&mut self, core: usize) {
        let id = self.cores[core]
            .serves
            .expect("it has served somebody until now");
        let job = &self.jobs[&id.0];
        let (count, works) = (job.cores, job.works);
        match self.policy.boundary() {
            Boundary::Job if works => return self.stick(core, id),
            Boundary::Steal if works && count == 1 => return self.stick(core, id),
            Boundary::Steal if works && self.dice.below(count as u64) == 0 => {
                // It is the one that goes on with the next round.
                let round = self.time_to_steal(&self.jobs[&id.0]) as u64;
                let trip = self.cores[core].trip;
                return self.at(self.now + round, Happens::Boundary { core, trip });
            }
            _ => {}
        }
        self.leave(core);
    }

    pub(super) fn stick(&mut self, core: usize, id: JobId) {
        let job = self
            .jobs
            .get_mut(&id.0)
            .expect("the job that it serves runs");
        job.stuck.push(core);
    }

    pub(super) fn leave(&mut self, core: usize) {
        let id = self.cores[core].serves.take().expect("it serves somebody");
        self.account(id.0);
        let job = self
            .jobs
            .get_mut(&id.0)
            .expect("the job that it serves runs");
        job.cores -= 1;
        let resume = self.machine.costs.steal.mug as f64;
        let speed = &self.workload.speeds[phase_of(self.workload, job).speed];
        if job.works {
            // Somebody else resumes what it left.
            job.left += resume / speed.round().work() as f64;
        }
        self.schedule(id.0);
        let costs = &self.machine.costs;
        let until = self.now + costs.leave + costs.join;
        self.travel(core, until, true);
    }

    /// A core is ready for its owner of this moment.
    pub(super) fn arrives(&mut self, core: usize) {
        self.arrived(core);
        let owner = self.table.owner(core);
        let Some(owner) = owner.filter(|owner| self.jobs.contains_key(&owner.0)) else {
            return;
        };
        self.cores[core].serves = Some(owner);
        self.account(owner.0);
        let job = self.jobs.get_mut(&owner.0).expect("an owner runs");
        job.cores += 1;
        let stuck = match self.policy.boundary() {
            Boundary::Steal => std::mem::take(&mut job.stuck),
            _ => Vec::new(),
        };
        self.schedule(owner.0);
        for core in stuck {
            let way = self.way_to_boundary(owner);
            self.travel_if_leaving(core, owner, way);
        }
    }

    /// A core that was stuck may leave now, unless it has been given back.
    pub(super) fn travel_if_leaving(&mut self, core: usize, id: JobId, way: u64) {
        let leaves = self.cores[core].serves == Some(id) && self.cores[core].moves;
        if leaves && self.table.owner(core) != Some(id) {
            self.travel(core, self.now + way, false);
        }
    }
}
