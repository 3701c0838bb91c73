//! Workloads of a user's own, with numbers that no generator makes.

mod common;

use common::ends;
use urgency_policy::cores::{Demand, Elastic, Shares, Task};
use urgency_sim::jobs::{
    Iterations, JobCosts, JobSpec, JobsMachine, JobsReport, Phase, Round, Speed, Workload, run,
};

const MACHINE: JobsMachine = JobsMachine {
    cores: 4,
    containers: 0,
    costs: JobCosts::ZERO,
    carrying: urgency_sim::jobs::Carrying::EachCore,
    thieves: urgency_sim::jobs::Thieves::Yield,
    seed: 1,
    record: 0,
};

fn workload(jobs: Vec<JobSpec>) -> Workload {
    let speed = Speed::measure(Round::BING, MACHINE.cores, MACHINE.costs.steal, 1);
    Workload {
        speeds: vec![speed],
        jobs,
    }
}

/// A job of so many rounds of 320 µs.
fn job(arrival: u64, rounds: f64) -> JobSpec {
    JobSpec {
        arrival,
        demand: Demand::default(),
        phases: vec![Phase {
            speed: 0,
            rounds,
            one_tree: false,
        }],
        iterations: None,
    }
}

/// A task with a round each 2 ms; so many, or without a number if 0.
fn task(arrival: u64, count: u32) -> JobSpec {
    JobSpec {
        demand: Demand {
            task: Some(Task::new(400_000, 100_000, 2_000_000)),
            ..Demand::default()
        },
        iterations: Some(Iterations {
            count,
            bursts: Vec::new(),
        }),
        ..job(arrival, 1.0)
    }
}

fn elastic(jobs: Vec<JobSpec>) -> JobsReport {
    ends(move || run(&workload(jobs), &MACHINE, &mut Elastic::default()).unwrap())
}

#[test]
fn a_task_without_a_number_of_iterations_ends_with_the_last_other_job_of_any_kind() {
    // Beside a task, a job that ends before that and one that ends later; beside a job alone; beside nothing.
    for (others, released) in [
        (vec![task(0, 20), job(0, 1.0)], 20),
        (vec![task(0, 2), job(20_000_000, 1.0)], 10),
        (vec![job(20_000_000, 1.0)], 10),
        (vec![], 0),
    ] {
        let jobs = [task(0, 0)].into_iter().chain(others);
        let report = elastic(jobs.collect());
        assert_eq!(report.ended[0], report.makespan);
        assert!(report.tasks[0].released >= released, "{report:?}");
    }
    let before_it_arrives = elastic(vec![job(0, 1.0), task(1_000_000_000, 0)]);
    assert_eq!(before_it_arrives.tasks[1].released, 0);
}

#[test]
fn a_job_that_cannot_be_run_is_an_error_that_names_it_and_what_is_wrong() {
    let with = |phase: Phase| JobSpec {
        phases: vec![phase],
        ..job(0, 1.0)
    };
    let [phase] = job(0, 1.0).phases[..] else {
        unreachable!()
    };
    let rare = Task::new(1, 1, u64::MAX);
    let mut of_a_task = task(0, 1);
    of_a_task.demand.task = Some(rare);
    for (wrong, what) in [
        (job(u64::MAX, 1.0), "arrives later than 2^53 ns"),
        (job(0, f64::NAN), "less than no rounds"),
        (job(0, -1.0), "less than no rounds"),
        (job(0, f64::INFINITY), "more than 2^53 ns"),
        (job(0, 1e300), "more than 2^53 ns"),
        (
            with(Phase { speed: 7, ..phase }),
            "a speed that is not in the workload",
        ),
        (of_a_task, "a period of more than 2^53 ns"),
        (
            JobSpec {
                phases: Vec::new(),
                ..job(0, 1.0)
            },
            "has no phase",
        ),
    ] {
        let refused = run(
            &workload(vec![job(0, 1.0), wrong]),
            &MACHINE,
            &mut Shares::default(),
        );
        let said = refused.unwrap_err().to_string();
        assert!(
            said.starts_with("job 1 of the workload") && said.contains(what),
            "{said}"
        );
    }
    let mut bursts = task(0, 3);
    bursts.iterations.as_mut().unwrap().bursts = vec![(u32::MAX, u32::MAX)];
    assert_eq!(elastic(vec![bursts]).tasks[0].bursts, 0);
}
