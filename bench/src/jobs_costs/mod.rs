//! What the layer of jobs costs, by operation (paper 004, section IV-A; AMCilk needs 295, 272, 7.2, 10 and 17.5 µs).
//!
//! - `jobs-costs-life`: a job is submitted by a task of another job, which waits for it. `start` is from the call that
//!   submits to the first instruction of the job's root; `removal` from the last instruction of the root until the
//!   waiting task has the answer, and the container is parked.
//! - `jobs-costs-wake`: the same, submitted by a plain thread while all workers sleep: an idle processor must be woken.
//! - `jobs-costs-move`: a job of priority 0 is submitted while less urgent jobs have all workers. `move` is from the
//!   policy's decision to the first instruction on the worker that moved, `start` from the call that submits. `back` is
//!   from the root's last instruction until the job that submitted goes on: with one worker the removal, and the mug of
//!   what that job left. (Until 27 November 2026 the submitting job was less urgent than the load, and beside a load of
//!   90 % it starved: there was no sample.)
//! - `jobs-costs-mug`: `stack` is from the end of what a worker left a stack for until that stack goes on; `deque` is
//!   for each fork of a deque whose stack has lost its worker, from one fork to the next, the thief's part. The job has
//!   one worker at a time. (Until 27 November 2026 it had two beside a load. `stack` was 0.2 µs with no load: by the
//!   code one look of a loop, since an idle worker had taken the stack already.)
//! - `jobs-costs-decide`: one decision with 40 jobs on 38 cores, by policy: what a job that starts, a job that ends,
//!   and the end of an interval cost.
//! - `jobs-costs-spin`: all workers have stacks that spin and never check in. `late` is from the decision that another
//!   job has one of the workers until that job's code runs.
//!
//! `ours` is on one worker and one processor: no idle processor must be woken. The others have two workers, and beside
//! the measured jobs an open loop of jobs of priority 1, of about a millisecond each, that use 0, 30, 60, 75 and 90 %
//! of the time of two processors. `load_share` is what was computed of it. A load is compared with
//! `load-0`, which has the same two workers.

mod decide;
mod life;
mod load;
mod moves;
mod mug;
mod spin;

use load::Load;
use urgency::jobs::CoreSet;
use urgency_measure::{Bar, Experiment, Sample, Scale, class, machine};

/// How often an operation is measured.
#[derive(Clone, Copy)]
struct Config {
    rounds: u32,
    load: Beside,
}

/// What the machine does beside.
#[derive(Clone, Copy)]
enum Beside {
    /// There is one worker on one processor.
    OneProcessor,
    /// There are two workers, and jobs that use so much of both processors.
    Jobs(f64),
}

/// The names of what the machine does beside.
const BESIDE: [(&str, Beside); 6] = [
    ("ours", Beside::OneProcessor),
    ("load-0", Beside::Jobs(0.0)),
    ("load-30", Beside::Jobs(0.30)),
    ("load-60", Beside::Jobs(0.60)),
    ("load-75", Beside::Jobs(0.75)),
    ("load-90", Beside::Jobs(0.90)),
];

impl Config {
    /// The set of cores, and what runs there beside.
    fn cores(self, policy: impl Fn(urgency::jobs::CoreSetBuilder) -> CoreSet) -> (CoreSet, Load) {
        match self.load {
            Beside::OneProcessor => {
                class::bind_to_one_processor();
                let set = policy(CoreSet::builder().cores(1));
                (set.clone(), Load::none())
            }
            Beside::Jobs(share) => {
                let set = policy(CoreSet::builder().cores(2).most_queued(100_000));
                (set.clone(), Load::on(&set, share))
            }
        }
    }
}

/// Nanoseconds of the monotonic clock.
fn now() -> u64 {
    machine::now_ns()
}

/// All of them.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let rounds = |full, quick| scale.pick(full, quick);
    vec![
        life(rounds(3_000, 20)),
        wake(rounds(2_000, 20)),
        moves(rounds(2_000, 20)),
        mug(rounds(5_000, 20)),
        decide(rounds(20_000, 50)),
        spin(rounds(500, 3)),
    ]
}

/// A contender for each of [`BESIDE`], and the bars of the loads: with 60 to 90 % an operation costs less than a fifth
/// more than on the same two workers without a load.
fn beside(
    mut experiment: Experiment,
    metrics: &[&'static str],
    run: impl Fn(Beside) -> Sample + Clone + 'static,
) -> Experiment {
    for (name, load) in BESIDE {
        let run = run.clone();
        experiment = experiment.contender(name, move || run(load));
    }
    for metric in metrics {
        for load in ["load-60", "load-75", "load-90"] {
            experiment = experiment.bar(Bar::times_at_most(load, metric, 1.2, &["load-0"]));
        }
    }
    experiment
}

fn life(rounds: u32) -> Experiment {
    let experiment = Experiment::new("jobs-costs-life", "a job starts and is removed").table(
        "ours",
        &[
            "start_p50_ns",
            "start_p99_ns",
            "removal_p50_ns",
            "removal_p99_ns",
            "load_share",
        ],
    );
    beside(
        experiment,
        &["start_p50_ns", "removal_p50_ns"],
        move |load| life::run(Config { rounds, load }),
    )
    .bar(Bar::at_most("ours", "start_p50_ns", 20_000.0))
    .bar(Bar::at_most("ours", "removal_p50_ns", 10_000.0))
}

fn wake(rounds: u32) -> Experiment {
    Experiment::new(
        "jobs-costs-wake",
        "a job of a plain thread starts and is removed while all workers sleep",
    )
    .table(
        "ours",
        &[
            "start_p50_ns",
            "start_p99_ns",
            "removal_p50_ns",
            "removal_p99_ns",
        ],
    )
    .contender("ours", move || life::run_waking(rounds))
}

fn moves(rounds: u32) -> Experiment {
    let experiment = Experiment::new(
        "jobs-costs-move",
        "a worker moves from one job to a more urgent one, and back",
    )
    .table(
        "ours",
        &[
            "move_p50_ns",
            "move_p99_ns",
            "start_p50_ns",
            "start_p99_ns",
            "back_p50_ns",
            "back_p99_ns",
        ],
    );
    beside(experiment, &["move_p50_ns"], move |load| {
        moves::run(Config { rounds, load })
    })
    .bar(Bar::at_most("ours", "move_p50_ns", 20_000.0))
}

fn mug(rounds: u32) -> Experiment {
    let experiment = Experiment::new(
        "jobs-costs-mug",
        "a stack, and the forks of a deque, that lost their worker go on",
    )
    .table(
        "ours",
        &[
            "stack_p50_ns",
            "stack_p99_ns",
            "deque_p50_ns",
            "deque_p99_ns",
        ],
    );
    beside(experiment, &["stack_p50_ns", "deque_p50_ns"], move |load| {
        mug::run(Config { rounds, load })
    })
    .bar(Bar::at_most("ours", "stack_p50_ns", 4_000.0))
    .bar(Bar::at_most("ours", "deque_p50_ns", 500.0))
}

fn decide(rounds: u32) -> Experiment {
    let experiment = Experiment::new(
        "jobs-costs-decide",
        "a policy decides about 40 jobs on 38 cores",
    )
    .table(
        "shares",
        &[
            "start_p50_ns",
            "start_p99_ns",
            "exit_p50_ns",
            "exit_p99_ns",
            "timer_p50_ns",
            "timer_p99_ns",
        ],
    );
    decide::POLICIES.into_iter().fold(experiment, |all, name| {
        all.contender(name, move || decide::run(name, rounds))
            .bar(Bar::at_most(name, "start_p50_ns", 5_000.0))
            .bar(Bar::at_most(name, "exit_p50_ns", 5_000.0))
            .bar(Bar::at_most(name, "timer_p50_ns", 5_000.0))
    })
}

fn spin(rounds: u32) -> Experiment {
    Experiment::new(
        "jobs-costs-spin",
        "a job that never checks in loses a worker, 2 workers",
    )
    .table(
        "ours",
        &["late_p50_ns", "late_p99_ns", "late_p999_ns", "late_max_ns"],
    )
    .contender("ours", move || spin::run(rounds))
    .bar(Bar::at_most("ours", "late_p99_ns", 2_000_000.0))
}
