//! Length and refusals of a DAG.

use super::*;

#[test]
fn span_counts_latencies_and_release_times() {
    let mut dag = Builder::new();
    let thread = dag.root(0, 100);
    dag.step(thread, 10);
    dag.step_after(thread, 1000, 10);
    let dag = dag.build().unwrap();
    assert_eq!(
        (dag.total_work(), dag.span(), dag.latencies()),
        (20, 1120, 1)
    );
}

#[test]
fn what_takes_longer_than_can_be_added_up_is_refused() {
    let build = |release, works: [u64; 2], latency| {
        let mut dag = Builder::new();
        let thread = dag.root(0, release);
        dag.step(thread, works[0]);
        dag.step_after(thread, latency, works[1]);
        dag.build().map(|dag| dag.span())
    };
    let longest = LONGEST - 2;
    assert_eq!(build(0, [1, 1], longest - 2), Ok(longest));
    assert_eq!(build(0, [1, 1], longest - 1), Err(DagError::TooLong));
    assert_eq!(build(longest, [1, 1], 0), Err(DagError::TooLong));
    for large in [LONGEST, u64::MAX] {
        assert_eq!(build(0, [large, 1], 0), Err(DagError::TooLong));
        assert_eq!(build(0, [large, large], large), Err(DagError::TooLong));
        assert_eq!(build(large, [1, 1], large), Err(DagError::TooLong));
    }
}

#[test]
fn a_cycle_an_empty_thread_and_a_wrong_level_are_named() {
    let mut cycle = Builder::new();
    let thread = cycle.root(0, 0);
    let first = cycle.step(thread, 1);
    let second = cycle.step(thread, 1);
    cycle.edge(second, first, 0);
    assert_eq!(cycle.build(), Err(DagError::Cycle(0)));

    let mut empty = Builder::new();
    let thread = empty.root(0, 0);
    empty.step(thread, 1);
    empty.root(0, 0);
    assert_eq!(empty.build(), Err(DagError::EmptyThread(1)));

    let mut level = Builder::new();
    let thread = level.root(64, 0);
    level.step(thread, 1);
    assert_eq!(
        level.build(),
        Err(DagError::Level {
            thread: 0,
            level: 64
        })
    );
    assert_eq!(Builder::new().build(), Err(DagError::Empty));
}
