//! The papers' bounds on random computations over seeds, and what happens where a premise fails.

use urgency_policy::{
    level::{Criterion, Rounds, Schedule},
    pool::Kind,
};
use urgency_sim::{
    Machine, Report,
    bounds::{self, Check},
    dag::{Builder, Dag},
    generate::{self, Random},
    run,
};

fn prompt(workers: usize) -> Machine {
    Machine {
        workers,
        check_in: Some(1),
        ..Machine::default()
    }
}

fn random(seed: u64, levels: u8) -> Dag {
    let parameters = Random {
        vertices: 400,
        levels,
        work: 5,
        ..Random::default()
    };
    generate::random(parameters, seed)
}

fn assert_holds(check: &Check) {
    assert!(check.broken.is_empty(), "{check:?}");
    assert!(check.holds(), "{check:?}");
}

#[test]
fn brent_holds_for_every_greedy_schedule() {
    for seed in 0..60 {
        let dag = random(seed, 3);
        for workers in [1, 2, 7, 32] {
            let report = run(&dag, &prompt(workers)).unwrap();
            assert_holds(&bounds::brent(&dag, &prompt(workers), &report));
        }
    }
}

#[test]
fn theorem_1_holds_for_every_thread_of_well_formed_computations() {
    let mut checked = 0;
    for seed in 0..25 {
        let dag = random(seed, 3);
        for workers in [1, 3, 8] {
            let report = run(&dag, &prompt(workers)).unwrap();
            for thread in bounds::sample(&dag, 40) {
                let check = bounds::prompt_response(&dag, &prompt(workers), &report, thread);
                assert_holds(&check.unwrap());
                checked += 1;
            }
        }
    }
    assert!(checked > 2000);
}

#[test]
fn a_span_has_what_the_thread_waits_for_from_outside() {
    let holds = |dag: Dag, thread, measured| {
        let report = run(&dag, &prompt(1)).unwrap();
        let check = bounds::prompt_response(&dag, &prompt(1), &report, thread).unwrap();
        assert_holds(&check);
        assert_eq!(check.measured, measured, "{check:?}");
    };
    // A root that is released later.
    let mut dag = Builder::new();
    let waits = dag.root(0, 0);
    dag.step(waits, 1);
    let brings = dag.root(0, 1000);
    let end = dag.step(brings, 1);
    let got = dag.step(waits, 1);
    dag.edge(end, got, 0);
    holds(dag.build().unwrap(), waits, 1002.0);
    // I/O that was started before the thread began.
    let mut dag = Builder::new();
    let main = dag.root(0, 0);
    let start = dag.step(main, 1);
    let reads = dag.spawn(start, 0);
    dag.step(reads, 1);
    let late = dag.step_after(main, 1000, 1);
    let got = dag.step(reads, 1);
    dag.edge(late, got, 0);
    holds(dag.build().unwrap(), reads, 1002.0);
    // What stands before a root, whose response begins with its release.
    let mut dag = Builder::new();
    let before = dag.root(0, 0);
    let request = dag.step(before, 100);
    let behind = dag.root(0, 0);
    let next = dag.step(behind, 1);
    dag.edge(request, next, 0);
    holds(dag.build().unwrap(), behind, 101.0);
}

#[test]
fn theorem_1_fails_for_a_thread_that_waits_for_less_urgent_work() {
    // Level 0 waits for level 2 while level 1 has endless work.
    let mut dag = Builder::new();
    let urgent = dag.root(0, 0);
    let fork = dag.step(urgent, 1);
    let low = dag.spawn(fork, 2);
    dag.step(low, 10);
    dag.get(urgent, low, 1);
    let middle = dag.root(1, 0);
    for _ in 0..1000 {
        dag.step(middle, 1);
    }
    let dag = dag.build().unwrap();
    let report = run(&dag, &prompt(1)).unwrap();
    let check = bounds::prompt_response(&dag, &prompt(1), &report, urgent).unwrap();
    assert!(!check.holds() && check.ratio() > 50.0, "{check:?}");
    assert!(check.broken.iter().any(|b| b.contains("ill-formed")));
    assert!(check.is_consistent());
}

fn fair(workers: usize, shares: &[f64], lots: u64) -> Machine {
    let criterion = Criterion::from_shares(shares).unwrap();
    let rounds = Rounds::new(criterion).with_length(1).independent(lots);
    Machine {
        schedule: Schedule::FairlyPrompt(rounds),
        ..prompt(workers)
    }
}

#[test]
fn theorems_2_and_3_hold_in_expectation_over_seeds() {
    let mut nearest = [0.0f64; 2];
    for seed in 0..6 {
        let dag = random(seed, 3);
        for workers in [1, 4] {
            let shares = [0.5, 0.3, 0.2];
            let reports: Vec<Report> = (0..40)
                .map(|lots| run(&dag, &fair(workers, &shares, lots)).unwrap())
                .collect();
            let machine = fair(workers, &shares, 0);
            for thread in bounds::sample(&dag, 12) {
                let alone = bounds::fair_response_alone(&dag, &machine, &reports, thread);
                let general = bounds::fair_response(&dag, &machine, &reports, thread);
                for (nearest, check) in nearest.iter_mut().zip([alone, general]) {
                    let check = check.unwrap();
                    assert!(check.is_consistent(), "{check:?}");
                    if check.broken.is_empty() {
                        *nearest = nearest.max(check.ratio());
                    }
                }
            }
        }
    }
    // The checks are not vacuous.
    assert!(nearest.iter().all(|ratio| *ratio > 0.3), "{nearest:?}");
}

#[test]
fn proactive_stealing_keeps_its_bounds_on_time_steals_and_deviations() {
    let pool: Kind = "proactive".parse().unwrap();
    for seed in 0..8 {
        for workers in [2, 8, 32] {
            let machine = Machine {
                workers,
                pool: pool.into(),
                seed,
                // Thieves never sleep, as in the analysis.
                patience: u32::MAX,
                ..Machine::default()
            };
            for dag in [
                generate::fork_join(9, 2, 1),
                generate::futures(300, 1, seed),
                generate::map_reduce(256, 50, 4, 1),
                generate::wavefront(40, 40, 1),
            ] {
                let report = run(&dag, &machine).unwrap();
                assert_holds(&bounds::cilk_time(&dag, &machine, &report));
                assert_holds(&bounds::steal_attempts(&dag, &machine, &report));
                assert_holds(&bounds::deviations(&dag, &machine, &report));
            }
        }
    }
}

#[test]
fn the_stretches_of_saturated_levels_are_the_reciprocals_of_their_shares() {
    // The fairness paper's experiment, smaller: a kernel below an endless sink below requests.
    let workers = 4;
    let (kernel, grain) = (2_000_000, 1_000);
    let of = |shares: &[f64], time: u64| {
        let dag = generate::three_levels(workers, time, 100_000, kernel, grain);
        let criterion = Criterion::from_shares(shares).unwrap();
        let machine = Machine {
            workers,
            schedule: Schedule::FairlyPrompt(Rounds::new(criterion).with_length(10_000)),
            ..Machine::default()
        };
        run(&dag, &machine).unwrap()
    };
    let base = of(&[0.0, 0.0, 1.0], 4_000_000).responses[1].time() as f64;
    for (shares, stretch) in [([0.5, 0.0, 0.5], 2.0), ([0.5, 0.25, 0.25], 4.0)] {
        let report = of(&shares, 8_000_000);
        // What the report says by itself, while the sink, the requests and the kernel all have work.
        let by_level = bounds::contested_stretches(&report);
        assert!((by_level[2] / stretch - 1.0).abs() < 0.05, "{by_level:?}");
        assert!((report.responses[1].stretch().unwrap() / stretch - 1.0).abs() < 0.05);
        let sum = bounds::feasibility(&by_level);
        assert!((0.95..=1.0).contains(&sum.measured), "{sum:?}");
        let measured = report.responses[1].time() as f64 / base;
        assert!(
            (measured / stretch - 1.0).abs() < 0.05,
            "{measured} for {stretch}"
        );
    }
}

#[test]
fn a_level_that_uses_little_of_a_small_share_waits_for_no_round_of_its_own() {
    let (workers, round) = (2, 100_000);
    let dag = generate::three_levels(workers, 20_000_000, 400_000, 2_000_000, 1_000);
    let criterion = Criterion::from_shares(&[0.05, 0.45, 0.5]).unwrap();
    let machine = Machine {
        workers,
        schedule: Schedule::FairlyPrompt(Rounds::new(criterion).with_length(round)),
        ..Machine::default()
    };
    let report = run(&dag, &machine).unwrap();
    let requests = report.responses.iter().filter(|r| r.root && r.level == 0);
    // The first come before anybody has an account.
    let slowest = requests.skip(10).map(|request| request.time()).max();
    // Each round but one in twenty is another level's.
    assert!(slowest.unwrap() < round / 5, "{slowest:?}");
}

#[test]
fn without_fairness_the_kernel_below_an_endless_sink_starves() {
    let dag = generate::three_levels(2, 1_000_000, 50_000, 100_000, 1_000);
    let report = run(&dag, &prompt_coarse(2)).unwrap();
    let sink = report.levels[1].finished;
    assert!(
        report.responses[1].done > sink,
        "the kernel ended before the sink"
    );
    let fair = Machine {
        schedule: Schedule::FairlyPrompt(
            Rounds::new(Criterion::from_shares(&[0.5, 0.25, 0.25]).unwrap()).with_length(5_000),
        ),
        ..prompt_coarse(2)
    };
    let report = run(&dag, &fair).unwrap();
    assert!(report.responses[1].done < report.levels[1].finished / 2);
}

fn prompt_coarse(workers: usize) -> Machine {
    Machine {
        workers,
        ..Machine::default()
    }
}

/// A level with a single thread beside one with plenty of work, half of the machine for each.
fn lone_thread(pool: Kind, workers: usize) -> f64 {
    let mut dag = Builder::new();
    let lone = dag.root(1, 0);
    for _ in 0..2_000 {
        dag.step(lone, 100);
    }
    let plenty = dag.root(0, 0);
    let mut fork = dag.step(plenty, 1);
    for _ in 0..40 * workers {
        // The spawner goes on first, so that the bank fills.
        let next = dag.step(plenty, 1);
        let thread = dag.spawn(fork, 0);
        for _ in 0..200 {
            dag.step(thread, 100);
        }
        fork = next;
    }
    let dag = dag.build().unwrap();
    let rounds = Rounds::new(Criterion::from_shares(&[0.5, 0.5]).unwrap()).with_length(1_000);
    let machine = Machine {
        workers,
        pool: pool.into(),
        schedule: Schedule::FairlyPrompt(rounds.independent(4)),
        deal_interval: 500,
        ..Machine::default()
    };
    let report = run(&dag, &machine).unwrap();
    // Its share of one processor.
    200_000.0 / report.responses[lone as usize].time() as f64
}

#[test]
fn a_level_with_one_thread_gets_a_fraction_of_its_share_in_banks_and_all_of_it_in_a_central_pool() {
    let central = lone_thread(Kind::Aging, 8);
    let banks = lone_thread("banks".parse().unwrap(), 8);
    // With 8 workers some worker's primary level is nearly always the thread's.
    assert!(central > 0.9, "{central}");
    // Only the worker that has it counts, half of the time.
    assert!((0.3..0.7).contains(&banks), "{banks}");
}

#[test]
fn per_level_sums_of_reciprocal_stretches_are_feasible() {
    assert!(bounds::feasibility(&[2.0, 4.0, 4.0]).holds());
    assert!(!bounds::feasibility(&[1.5, 2.0]).holds());
}
