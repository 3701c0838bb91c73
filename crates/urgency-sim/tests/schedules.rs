//! Tiny schedules that were computed by hand, determinism, and conservation of work, under every policy.

use proptest::prelude::*;
use urgency_policy::{
    level::{
        Adaptive, Criterion, FixedShares, Otherwise, Parameters, Rounds, Schedule, WinnerTakeAll,
    },
    pool::{Kind, Overflow, Plan, PlanError},
};
use urgency_sim::{
    Costs, Machine, MachineError, bounds,
    dag::{Builder, Dag, Yields},
    generate, run,
};

fn machine(workers: usize) -> Machine {
    Machine {
        workers,
        record: 1000,
        ..Machine::default()
    }
}

/// (worker, thread, start, end) of all spans.
fn spans(dag: &Dag, machine: &Machine) -> Vec<(u32, u32, u64, u64)> {
    let report = run(dag, machine).unwrap();
    let span = |s: &urgency_sim::Span| (s.worker, s.thread, s.start, s.end);
    report.schedule.iter().map(span).collect()
}

#[test]
fn a_forked_child_runs_first_and_its_parent_is_stolen() {
    let mut dag = Builder::new();
    let main = dag.root(0, 0);
    let fork = dag.step(main, 10);
    let child = dag.spawn(fork, 0);
    dag.step(child, 30);
    dag.step(main, 20);
    dag.sync(main, child, 5);
    let dag = dag.build().unwrap();
    // Worker 0 goes on with the child; worker 1 steals the parent, which then waits; the child's worker joins.
    let expected = [
        (0, 0, 0, 10),
        (1, 0, 10, 30),
        (0, 1, 10, 40),
        (0, 0, 40, 45),
    ];
    assert_eq!(spans(&dag, &machine(2)), expected);
    let report = run(&dag, &machine(2)).unwrap();
    assert_eq!(
        (report.steals, report.makespan, report.deviations),
        (1, 45, 2)
    );
    // Alone, worker 0 runs all in serial order.
    let serial = run(&dag, &machine(1)).unwrap();
    assert_eq!((serial.makespan, serial.deviations), (65, 0));
}

#[test]
fn urgent_work_is_served_at_the_next_scheduling_point_and_the_abandoned_stack_mugged() {
    let mut dag = Builder::new();
    let low = dag.root(1, 0);
    dag.step(low, 10);
    dag.step(low, 10);
    let high = dag.root(0, 5);
    dag.step(high, 7);
    let dag = dag.build().unwrap();
    let expected = [(0, 0, 0, 10), (0, 1, 10, 17), (0, 0, 17, 27)];
    assert_eq!(spans(&dag, &machine(1)), expected);
    let report = run(&dag, &machine(1)).unwrap();
    assert_eq!((report.abandonments, report.mugs), (1, 1));
    // With a scheduling point each nanosecond it does not wait for the end of the vertex.
    let prompt = Machine {
        check_in: Some(1),
        ..machine(1)
    };
    assert_eq!(run(&dag, &prompt).unwrap().responses[1].time(), 7);
}

#[test]
fn io_is_hidden_behind_other_work() {
    let mut dag = Builder::new();
    for _ in 0..2 {
        let thread = dag.root(0, 0);
        dag.step(thread, 10);
        dag.step_after(thread, 15, 10);
    }
    let dag = dag.build().unwrap();
    let expected = [
        (0, 0, 0, 10),
        (0, 1, 10, 20),
        (0, 0, 25, 35),
        (0, 1, 35, 45),
    ];
    assert_eq!(spans(&dag, &machine(1)), expected);
}

#[test]
fn costs_are_paid_where_they_arise() {
    let mut dag = Builder::new();
    let thread = dag.root(0, 0);
    dag.step(thread, 10);
    dag.step_after(thread, 1000, 10);
    let dag = dag.build().unwrap();
    let costs = Costs {
        queue: 3,
        steal: 2,
        mug: 4,
        hand_off: 0,
        wake: 50,
    };
    let machine = Machine {
        costs,
        patience: 4,
        ..machine(1)
    };
    // It still spins at 0: no wake-up; the queue, and a new stack. Then it sleeps: a wake-up, the queue, and
    // the stack that goes on.
    let expected = [(0, 0, 5, 15), (0, 0, 15 + 1000 + 50 + 3 + 4, 1082)];
    assert_eq!(spans(&dag, &machine), expected);
    let report = run(&dag, &machine).unwrap();
    assert_eq!((report.waking, report.scheduling), (50, 12));
    let total = report.work + report.scheduling + report.waking + report.searching + report.asleep;
    assert_eq!(total, report.makespan);
}

#[test]
fn a_pool_policy_with_a_number_out_of_its_range_is_refused() {
    let mut dag = Builder::new();
    let thread = dag.root(0, 0);
    dag.step(thread, 1);
    let dag = dag.build().unwrap();
    let plan = Plan::FIFO.bounded(1, Overflow::Shared(65));
    let pool = Machine {
        pool: Kind::Queues(plan).into(),
        ..machine(1)
    };
    assert_eq!(
        run(&dag, &pool),
        Err(MachineError::Pool(PlanError::SharedQueues(65)))
    );
}

#[test]
fn fixed_shares_starve_a_level_without_a_worker_and_say_so() {
    let mut dag = Builder::new();
    for level in [0, 1] {
        let thread = dag.root(level, 0);
        dag.step(thread, 10);
    }
    let dag = dag.build().unwrap();
    let fixed = |otherwise| Machine {
        schedule: Schedule::Fixed(FixedShares::new(
            &Criterion::from_shares(&[1.0, 0.0]).unwrap(),
            otherwise,
        )),
        ..machine(2)
    };
    assert_eq!(
        run(&dag, &fixed(Otherwise::Wait)),
        Err(MachineError::Starved { vertices: 1 })
    );
    assert!(run(&dag, &fixed(Otherwise::Donate)).is_ok());
}

#[test]
fn a_far_yield_lets_the_others_of_its_level_run_under_every_policy() {
    // One spins by yielding until the other, which it spawned before, has run: 50 turns are more than enough.
    for (name, kind, _) in Kind::NAMED {
        let mut dag = Builder::new();
        let spinner = dag.root(0, 0);
        let first = dag.step(spinner, 1);
        let other = dag.spawn(first, 0);
        dag.step(other, 1);
        for _ in 0..200 {
            let turn = dag.step(spinner, 1);
            dag.yields(turn, Yields::Far);
        }
        dag.step(spinner, 1);
        let dag = dag.build().unwrap();
        let report = run(
            &dag,
            &Machine {
                pool: kind.into(),
                ..machine(1)
            },
        )
        .unwrap();
        let other = report.responses[1];
        assert!(other.done < 100, "{name}: the other ran at {}", other.done);
    }
}

#[test]
fn each_job_of_a_deque_wakes_a_worker() {
    for pool in ["aging", "proactive"] {
        let mut dag = Builder::new();
        let main = dag.root(0, 0);
        let fork = dag.step(main, 1);
        for _ in 0..4 {
            let child = dag.spawn(fork, 0);
            dag.step(child, 100);
        }
        let dag = dag.build().unwrap();
        let machine = Machine {
            pool: pool.parse().unwrap(),
            patience: 0,
            ..machine(4)
        };
        let report = run(&dag, &machine).unwrap();
        if pool == "aging" {
            assert_eq!((report.idle_while_ready, report.makespan), (0, 101));
        }
        assert!(report.makespan < 150, "{pool}: {}", report.makespan);
    }
}

#[test]
fn a_quantum_counts_what_runs_in_it_though_it_ends_later() {
    // Vertices of five quanta at the urgent level, short ones at the other.
    let mut dag = Builder::new();
    for (level, steps, work) in [(0, 40, 5_000), (1, 4_000, 50)] {
        for _ in 0..4 {
            let root = dag.root(level, 0);
            for _ in 0..steps {
                dag.step(root, work);
            }
        }
    }
    let dag = dag.build().unwrap();
    let parameters = Parameters {
        quantum: 1_000,
        ..Parameters::default()
    };
    let machine = Machine {
        schedule: Schedule::Adaptive(Adaptive::new(2, parameters).unwrap()),
        ..machine(4)
    };
    let report = run(&dag, &machine).unwrap();
    let [urgent, other] = [0, 1].map(|level: usize| report.levels[level].finished);
    assert!(urgent < other / 2 + 50_000, "{urgent} of {other}");
}

#[test]
fn a_round_after_a_sleep_is_not_charged_what_ran_before_it() {
    let mut dag = Builder::new();
    for at in 0..10 {
        let request = dag.root(0, 200 * at);
        dag.step(request, 60);
    }
    for level in [0, 1] {
        let root = dag.root(level, 10_000);
        for _ in 0..100 {
            dag.step(root, 10);
        }
    }
    let dag = dag.build().unwrap();
    let rounds = Rounds::new(Criterion::from_shares(&[0.5, 0.5]).unwrap()).with_length(100);
    let machine = Machine {
        schedule: Schedule::FairlyPrompt(rounds),
        ..machine(1)
    };
    let report = run(&dag, &machine).unwrap();
    let ran = |level| -> u64 {
        let its = report.schedule.iter().filter(|span| span.level == level);
        its.map(|span| span.end.clamp(10_000, 10_400) - span.start.clamp(10_000, 10_400))
            .sum()
    };
    assert!(ran(0) >= 150 && ran(1) >= 150, "{} and {}", ran(0), ran(1));
}

fn schedules(levels: usize) -> Vec<(&'static str, Schedule)> {
    let even = Criterion::from_shares(&vec![1.0 / levels as f64; levels]).unwrap();
    vec![
        ("prompt", Schedule::Prompt),
        (
            "fair",
            Schedule::FairlyPrompt(Rounds::new(even.clone()).with_length(50)),
        ),
        ("winner", Schedule::WinnerTakeAll(WinnerTakeAll::new(50))),
        (
            "adaptive",
            Schedule::Adaptive(
                Adaptive::new(
                    levels,
                    Parameters {
                        quantum: 40,
                        ..Parameters::default()
                    },
                )
                .unwrap(),
            ),
        ),
        (
            "fixed",
            Schedule::Fixed(FixedShares::new(&even, Otherwise::Donate)),
        ),
    ]
}

fn any_dag() -> impl Strategy<Value = Dag> {
    (
        2u32..300,
        1u8..4,
        1u64..30,
        0u64..100,
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(|(vertices, levels, work, latency, inversions, seed)| {
            let parameters = generate::Random {
                vertices,
                levels,
                work,
                latency,
                inversions,
                ..generate::Random::default()
            };
            generate::random(parameters, seed)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_policy_does_all_work_once_in_order_and_accounts_for_every_nanosecond(
        dag in any_dag(),
        workers in 1usize..9,
        seed in any::<u64>(),
        with_costs in any::<bool>(),
        check_in in proptest::option::of(3u64..20),
        which in 0usize..5,
    ) {
        let costs = if with_costs {
            Costs { queue: 2, steal: 3, mug: 2, hand_off: 5, wake: 11 }
        } else {
            Costs::ZERO
        };
        for (_, pool, _) in Kind::NAMED {
            // Each pool policy under one of the schedules; the cases cover the pairs.
            for (name, schedule) in schedules(dag.levels()).into_iter().skip(which).take(1) {
                let machine = Machine {
                    workers, pool: pool.into(), schedule, costs, seed, check_in,
                    deal_interval: 10,
                    record: 100_000,
                    ..Machine::default()
                };
                let report = run(&dag, &machine).unwrap();
                prop_assert_eq!(report.work, dag.total_work());
                prop_assert!(report.makespan >= dag.span());
                let spans: u64 = report.schedule.iter().map(|s| s.end - s.start).sum();
                prop_assert_eq!(spans, report.work);
                prop_assert!(bounds::feasibility(&bounds::contested_stretches(&report)).holds());
                for worker in 0..workers as u32 {
                    let its = report.schedule.iter().filter(|s| s.worker == worker);
                    let mut last = 0;
                    for span in its {
                        prop_assert!(span.start >= last, "{name}: two vertices at once");
                        last = span.end;
                    }
                }
                for response in &report.responses {
                    prop_assert!(response.done > response.ready);
                    prop_assert!(response.stretch().is_none_or(|stretch| stretch >= 1.0));
                }
                // The same seed, the same schedule.
                prop_assert_eq!(run(&dag, &machine).unwrap(), report);
            }
        }
    }

    #[test]
    fn with_a_central_pool_nobody_is_idle_while_anything_is_ready(
        dag in any_dag(),
        workers in 1usize..9,
        check_in in proptest::option::of(1u64..20),
    ) {
        for (name, schedule) in schedules(dag.levels()) {
            if !schedule.is_work_conserving() {
                continue;
            }
            let machine = Machine { workers, schedule, check_in, ..Machine::default() };
            let report = run(&dag, &machine).unwrap();
            prop_assert_eq!(report.idle_while_ready, 0, "{}", name);
        }
    }
}
