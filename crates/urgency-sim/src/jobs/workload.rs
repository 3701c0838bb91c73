//! What arrives: the workloads of the AMCilk paper's case studies, and what is known of them.

use super::{JobsError, JobsMachine, Round, Sizes, Speed};
use crate::dag::LONGEST;
use urgency_policy::{
    cores::{Demand, Task},
    dice::Dice,
};

/// The largest load of [`flow`], in parts of the machine.
pub const MOST_LOAD: f64 = 100.0;

/// So many rounds of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Which of the workload's speeds.
    pub speed: usize,
    /// How many rounds, of which the last may be a part.
    pub rounds: f64,
    /// That they are one tree: a worker has work of its own until the end of the phase.
    pub one_tree: bool,
}

/// What jobs of a size consist of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// A series of small fork-join trees, as in the source of the AMCilk paper's generator.
    #[default]
    Rounds,
    /// One tree of the same work, in leaves of 10 µs.
    Loop,
}

/// A task's releases.
#[derive(Clone, Debug, PartialEq)]
pub struct Iterations {
    /// How many; 0 for as long as there are jobs other than tasks without a number.
    pub count: u32,
    /// From which iteration on, and for how many, the task wants a third of its period.
    pub bursts: Vec<(u32, u32)>,
}

/// A job that arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// When, in nanoseconds.
    pub arrival: u64,
    /// What it asks for.
    pub demand: Demand,
    /// What it does, one after the other; in each iteration, if it is a task.
    pub phases: Vec<Phase>,
    /// That it is a task.
    pub iterations: Option<Iterations>,
}

/// Jobs in the order of their arrival, and the kinds of rounds that they consist of.
#[derive(Clone, Debug)]
pub struct Workload {
    /// By kind of round.
    pub speeds: Vec<Speed>,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
}

impl Workload {
    pub(super) fn check(&self) -> Result<(), JobsError> {
        let mut all = 0.0;
        for (job, spec) in self.jobs.iter().enumerate() {
            let refused = |what| Err(JobsError::Spec { job, what });
            if spec.arrival > LONGEST {
                return refused("arrives later than 2^53 ns");
            }
            if spec.demand.task.is_some_and(|task| task.longest > LONGEST) {
                return refused("tolerates a period of more than 2^53 ns");
            }
            if spec.phases.is_empty() {
                return refused("has no phase");
            }
            for phase in &spec.phases {
                let Some(speed) = self.speeds.get(phase.speed) else {
                    return refused("has a phase of a speed that is not in the workload");
                };
                if phase.rounds.is_nan() || phase.rounds < 0.0 {
                    return refused("has a phase with less than no rounds");
                }
                all += phase.rounds * speed.round().work() as f64;
            }
            if all > LONGEST as f64 {
                return refused("makes all work together more than 2^53 ns");
            }
        }
        Ok(())
    }
}

/// The nominal size of a round, in nanoseconds.
const NOMINAL: u64 = 64_000;

/// The mean time between two arrivals of [`flow`], in nanoseconds.
pub(crate) fn gap(sizes: Sizes, load: f64, cores: usize) -> f64 {
    let work = sizes.mean() / NOMINAL as f64 * Round::BING.work() as f64;
    work / (load * cores as f64)
}

/// Jobs of the AMCilk paper's flow-time experiment (section V-A): Poisson arrivals at a load of the machine's cores. A
/// job has as much work as a series of [`Round::BING`], one for each 64 µs of its size.
///
/// # Panics
///
/// If the load is not above 0 and at most [`MOST_LOAD`], or so small that the jobs would arrive over more than
/// [`LONGEST`].
pub fn flow(sizes: Sizes, shape: Shape, jobs: usize, load: f64, machine: &JobsMachine) -> Workload {
    assert!(
        load > 0.0 && load <= MOST_LOAD,
        "a load of {load} was asked for; it can be above 0 and up to {MOST_LOAD}"
    );
    let gap = gap(sizes, load, machine.cores);
    assert!(
        jobs as f64 * gap <= LONGEST as f64,
        "{jobs} jobs at a load of {load:?} would arrive over {:.0} ns; it can be {LONGEST}",
        jobs as f64 * gap
    );
    let (round, one_tree) = match shape {
        Shape::Rounds => (Round::BING, false),
        Shape::Loop => (Round::LOOP, true),
    };
    let each = Round::BING.work() as f64 / round.work() as f64;
    // The same jobs at every load, closer together.
    let mut dice = Dice::new(machine.seed);
    let mut arrival = 0.0;
    let jobs = (0..jobs).map(|_| {
        arrival -= (1.0 - dice.unit()).ln() * gap;
        let rounds = (sizes.draw(&mut dice) / NOMINAL).max(1) as f64 * each;
        JobSpec {
            arrival: arrival as u64,
            demand: Demand::default(),
            phases: vec![Phase {
                speed: 0,
                rounds,
                one_tree,
            }],
            iterations: None,
        }
    });
    Workload {
        jobs: jobs.collect(),
        speeds: vec![speed(round, machine)],
    }
}

fn speed(round: Round, machine: &JobsMachine) -> Speed {
    Speed::measure(round, machine.cores, machine.costs.steal, machine.seed)
}

/// Two jobs that alternate ten times between high and low parallelism, in opposite phases (section V-C).
///
/// High is one loop of 12,800,000 iterations; low is 4,000 loops of 100. The body of neither is known, nor how they
/// are cut. Here both have the same body, and two numbers are fitted to the paper's times, alone on 38 cores 1.65 s
/// and on 19 cores 2.32 s: an iteration takes 199 ns, and a loop 4.6 µs besides. A high phase then has 2.55 s of
/// work, cut into 8,192 chunks. A low loop takes 24.5 µs, in one chunk: cut into 4 or 128, it would be over after 9
/// to 12 µs, and the job alone after 1.0 to 1.1 s.
pub fn feedback_pair(machine: &JobsMachine) -> Workload {
    const ALTERNATIONS: usize = 10;
    let high = Round {
        depth: 13,
        leaf: 311_000,
        inner: 100,
        serial: 100,
    };
    let low = Round {
        depth: 0,
        leaf: 19_900,
        inner: 0,
        serial: 4_600,
    };
    let phases = [(0, 1.0), (1, 4000.0)].map(|(speed, rounds)| Phase {
        speed,
        rounds,
        one_tree: rounds == 1.0,
    });
    let job = |first: usize| JobSpec {
        arrival: 0,
        demand: Demand::default(),
        phases: (0..2 * ALTERNATIONS)
            .map(|n| phases[(n + first) % 2])
            .collect(),
        iterations: None,
    };
    Workload {
        speeds: vec![speed(high, machine), speed(low, machine)],
        jobs: vec![job(0), job(1)],
    }
}

/// Two elastic tasks (section V-B): the first has this period and `count` iterations, in ten bursts of 1 to 10 of which
/// it wants a third of the period; the second has a period of 50 ms and tolerates 125.
///
/// What the tasks compute is not known. Here the first one has work for 6 of 38 cores, the second for 20; they declare
/// a tenth more work and twice the span, for what stealing costs.
pub fn elastic_pair(period: u64, count: u32, machine: &JobsMachine) -> Workload {
    const SECOND: u64 = 50_000_000;
    let round = Round {
        depth: 9,
        leaf: 20_000,
        inner: 1_000,
        serial: 1_000,
    };
    let mut dice = Dice::new(machine.seed);
    let mut bursts: Vec<(u32, u32)> = (0..10)
        .map(|_| {
            let from = dice.below(u64::from(count.max(1))) as u32;
            (from, 1 + dice.below(10) as u32)
        })
        .collect();
    bursts.sort_unstable();
    let part = machine.cores as f64 / 38.0;
    let task = |cores: f64, period: u64, longest: u64, iterations| {
        let work = cores * part * period as f64;
        let rounds = work / round.work() as f64;
        let span = (rounds.ceil() * round.span() as f64 * 2.0) as u64;
        let declared = ((work * 1.1) as u64).max(span);
        JobSpec {
            arrival: 0,
            demand: Demand {
                task: Some(Task {
                    longest,
                    ..Task::new(declared, span, period)
                }),
                ..Demand::default()
            },
            phases: vec![Phase {
                speed: 0,
                rounds,
                one_tree: false,
            }],
            iterations: Some(iterations),
        }
    };
    let endless = Iterations {
        count: 0,
        bursts: Vec::new(),
    };
    Workload {
        speeds: vec![speed(round, machine)],
        jobs: vec![
            task(6.0, period, period, Iterations { count, bursts }),
            task(20.0, SECOND, SECOND * 5 / 2, endless),
        ],
    }
}
