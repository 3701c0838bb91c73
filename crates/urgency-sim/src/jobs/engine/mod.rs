//! The simulation of jobs: one loop over events.
//!
//! The table of jobs and owners ([`Cores`]) says what the policy has decided. Beside it stands what is the case: which
//! job each core *serves*. A core whose owner changes serves its old job until it comes to the boundary, then nobody
//! for as long as sleeping and waking take, then the owner that the table has by then.
//!
//! Here: events, and jobs that come and go. [`carry`] makes decisions and moves cores, [`progress`] knows how far jobs
//! are, [`tasks`] releases iterations.

mod carry;
mod progress;
mod tasks;

use super::{
    JobSpec, JobsError, JobsMachine, JobsReport, MAX_CORES, Phase, TaskReport, Workload,
    report::FlowTimes,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};
use urgency_policy::{
    cores::{CorePolicy, Cores, Event, JobId},
    dice::Dice,
};

/// After so many timers in a row without any work the policy gives nobody a core.
const MOST_VAIN_TIMERS: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// A phase of the job ends, if nothing changed its speed since.
    PhaseEnd {
        job: u64,
        version: u32,
    },
    /// A core comes to its boundary.
    Boundary {
        core: usize,
        trip: u32,
    },
    /// A core is ready for its new owner.
    Arrival {
        core: usize,
        trip: u32,
    },
    /// A task's next iteration.
    Release {
        job: u64,
        version: u32,
    },
    Timer {
        version: u32,
    },
    /// A job arrives.
    Arrives(usize),
}

/// An event that waits for the cores to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Todo {
    Exit(u64),
    Timer,
    Change(u64, bool),
}

/// A core, as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    serves: Option<JobId>,
    /// It is on its way: events of another trip are void.
    trip: u32,
    moves: bool,
}

#[derive(Debug)]
struct Job {
    spec: usize,
    /// Which phase, and how many rounds of it are left; none between iterations.
    phase: usize,
    left: f64,
    works: bool,
    /// How many cores serve it.
    cores: usize,
    /// How many it had, by the last entry in the report.
    recorded: Option<usize>,
    /// Until when it is accounted for.
    since: u64,
    version: u32,
    /// In the interval: work done and core time.
    work: f64,
    had: f64,
    interval_from: u64,
    /// Iterations that ended after their deadlines.
    late: u64,
    /// Cores that are to leave, and wait for a boundary that does not come by itself.
    stuck: Vec<usize>,
    /// Of a task: releases that wait, the oldest first, and the deadline of the iteration that runs.
    waiting: VecDeque<u64>,
    released: u64,
    deadline: u64,
    next_release: u64,
    releases: u32,
}

struct Engine<'a, P: ?Sized> {
    workload: &'a Workload,
    machine: &'a JobsMachine,
    policy: &'a mut P,
    table: Cores,
    cores: Vec<Core>,
    jobs: BTreeMap<u64, Job>,
    buffer: VecDeque<usize>,
    containers: usize,
    events: BinaryHeap<Reverse<(u64, u64, Happens)>>,
    number: u64,
    now: u64,
    timer: u32,
    /// How many cores are on their way, and what is to be decided when none is.
    moving: usize,
    todo: VecDeque<Todo>,
    /// How many timers in a row came while no work was done.
    vain_timers: u32,
    has_tasks: bool,
    dice: Dice,
    flows: Vec<u64>,
    unfinished: usize,
    /// How many of them are no endless tasks: with the last of these all ends.
    others: usize,
    partitioned: bool,
    /// Without a partition: how many times slower than alone a job is.
    crowd: f64,
    report: JobsReport,
}

/// Lets a policy share a machine's cores between the jobs of a workload.
///
/// # Errors
///
/// If there is no such machine or workload, the policy breaks a rule or refuses a job, or jobs are left that never get
/// a core.
pub fn run<P: CorePolicy + ?Sized>(
    workload: &Workload,
    machine: &JobsMachine,
    policy: &mut P,
) -> Result<JobsReport, JobsError> {
    if !(1..=MAX_CORES).contains(&machine.cores) {
        return Err(JobsError::Cores(machine.cores));
    }
    machine.costs.check()?;
    workload.check()?;
    let jobs = workload.jobs.len();
    let mut engine = Engine {
        workload,
        machine,
        partitioned: policy.is_partitioned(),
        policy,
        table: Cores::new(machine.cores),
        cores: vec![Core::default(); machine.cores],
        jobs: BTreeMap::new(),
        buffer: VecDeque::new(),
        containers: match machine.containers {
            0 => machine.cores.max(2),
            containers => containers,
        },
        events: BinaryHeap::new(),
        number: 0,
        now: 0,
        timer: 0,
        moving: 0,
        todo: VecDeque::new(),
        vain_timers: 0,
        has_tasks: workload.jobs.iter().any(|job| job.iterations.is_some()),
        dice: Dice::new(machine.seed).split(u64::MAX),
        flows: vec![0; jobs],
        unfinished: jobs,
        others: workload.jobs.iter().filter(|job| !is_endless(job)).count(),
        crowd: 1.0,
        report: JobsReport {
            cores: machine.cores,
            ended: vec![0; jobs],
            tasks: vec![TaskReport::default(); jobs],
            ..JobsReport::default()
        },
    };
    engine.run()?;
    engine.report.makespan = engine.now;
    engine.report.flow = FlowTimes::of(&engine.flows);
    Ok(engine.report)
}

impl<P: CorePolicy + ?Sized> Engine<'_, P> {
    fn run(&mut self) -> Result<(), JobsError> {
        for (spec, job) in self.workload.jobs.iter().enumerate() {
            self.at(job.arrival, Happens::Arrives(spec));
        }
        while self.others > 0 {
            let Some(Reverse((time, _, happens))) = self.events.pop() else {
                let jobs = self.unfinished;
                return Err(JobsError::Starved { jobs });
            };
            self.now = time;
            self.table.set_now(time);
            match happens {
                Happens::Arrives(spec) => self.buffer.push_back(spec),
                Happens::PhaseEnd { job, version } => self.phase_end(job, version)?,
                Happens::Boundary { core, trip } if self.cores[core].trip == trip => {
                    self.at_boundary(core);
                }
                Happens::Arrival { core, trip } if self.cores[core].trip == trip => {
                    self.arrives(core);
                }
                Happens::Boundary { .. } | Happens::Arrival { .. } => {}
                Happens::Release { job, version } => self.release(job, version)?,
                Happens::Timer { version } if version == self.timer => {
                    self.vain_timers += 1;
                    if self.vain_timers > MOST_VAIN_TIMERS {
                        let jobs = self.unfinished;
                        return Err(JobsError::Starved { jobs });
                    }
                    self.do_or_wait(Todo::Timer)?;
                }
                Happens::Timer { .. } => {}
            }
            while !self.must_wait()
                && let Some(todo) = self.todo.pop_front()
            {
                self.carry_out(todo)?;
            }
            self.start_buffered()?;
        }
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            self.end(id)?;
        }
        Ok(())
    }

    fn at(&mut self, time: u64, happens: Happens) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, happens)));
    }

    // Jobs come and go.

    fn start_buffered(&mut self) -> Result<(), JobsError> {
        while !self.must_wait()
            && self.todo.is_empty()
            && self.jobs.len() < self.containers
            && let Some(spec) = self.buffer.pop_front()
        {
            self.start(spec)?;
        }
        self.report.most_waiting = self.report.most_waiting.max(self.buffer.len());
        Ok(())
    }

    fn start(&mut self, spec: usize) -> Result<(), JobsError> {
        let id = JobId(spec as u64);
        let given = &self.workload.jobs[spec];
        self.table
            .start(self.policy, id, given.demand)
            .map_err(|cause| JobsError::Refused { job: id, cause })?;
        let is_task = given.iterations.is_some();
        self.account_shared();
        let job = Job {
            spec,
            phase: 0,
            left: given.phases.first().map_or(0.0, |phase| phase.rounds),
            works: !is_task,
            cores: 0,
            recorded: None,
            since: self.now,
            version: 0,
            work: 0.0,
            had: 0.0,
            interval_from: self.now,
            stuck: Vec::new(),
            waiting: VecDeque::new(),
            released: 0,
            deadline: 0,
            next_release: 0,
            late: 0,
            releases: 0,
        };
        self.jobs.insert(id.0, job);
        self.report.most_running = self.report.most_running.max(self.jobs.len());
        self.decide(Event::Start(id), self.machine.costs.start)?;
        if is_task {
            // The first release comes when the cores are there.
            let costs = &self.machine.costs;
            let ready = self.now + costs.start + costs.decide + costs.leave + costs.join;
            self.at(
                ready,
                Happens::Release {
                    job: id.0,
                    version: 0,
                },
            );
        }
        self.schedule_shared();
        Ok(())
    }

    fn end(&mut self, id: u64) -> Result<(), JobsError> {
        self.account(id);
        self.account_shared();
        let job = self.jobs.remove(&id).expect("a job that ends runs");
        let spec = &self.workload.jobs[job.spec];
        self.flows[job.spec] = self.now - spec.arrival;
        self.others -= usize::from(!is_endless(spec));
        self.report.ended[job.spec] = self.now;
        self.unfinished -= 1;
        for core in 0..self.cores.len() {
            if self.cores[core].serves == Some(JobId(id)) {
                self.cores[core].serves = None;
                self.arrived(core);
            }
        }
        self.schedule_shared();
        self.do_or_wait(Todo::Exit(id))
    }
}

/// Whether it is a task that runs for as long as other jobs are there.
fn is_endless(job: &JobSpec) -> bool {
    job.iterations
        .as_ref()
        .is_some_and(|iterations| iterations.count == 0)
}

fn phase_of(workload: &Workload, job: &Job) -> Phase {
    let phases = &workload.jobs[job.spec].phases;
    phases[job.phase.min(phases.len() - 1)]
}
