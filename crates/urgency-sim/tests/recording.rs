//! What the real runtime records is a computation that the simulator runs, with the bounds checked on both.

use std::{panic::resume_unwind, time::Duration};
use urgency::{JoinHandle, Runtime, time};
use urgency_sim::{Machine, bounds, run, trace};

urgency::levels! { App: Interactive > Batch }

/// Some 0.3 to 10 milliseconds of a processor for a million turns.
fn spin(turns: u64) {
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
}

fn runtime(workers: usize, steps: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers).levels::<App>();
    builder.record(steps).build().unwrap()
}

#[test]
fn a_recorded_program_has_its_threads_levels_edges_and_latencies() {
    let runtime = runtime(1, 10_000);
    let program = runtime.at(Batch).spawn(async {
        spin(1_000_000);
        let child = urgency::at(Interactive).spawn(async {
            spin(1_000_000);
            time::sleep(Duration::from_millis(500)).await;
            spin(1_000_000);
        });
        let other = urgency::spawn_fn(|| {
            let inner = urgency::spawn(async { spin(1_000_000) });
            inner.get().unwrap();
        });
        child.await.unwrap();
        other.await.unwrap();
    });
    program.get().unwrap();
    let recording = runtime.recording().unwrap();
    assert_eq!((recording.threads(), recording.is_complete()), (4, true));
    let dag = trace::read(&recording.to_json()).unwrap();
    let levels: Vec<u8> = dag.threads().iter().map(|thread| thread.level).collect();
    assert_eq!(levels.iter().filter(|&&level| level == 0).count(), 1);
    assert_eq!(
        dag.threads().iter().filter(|t| t.release.is_some()).count(),
        1
    );
    // A processor does not make ten turns in a nanosecond.
    assert!(dag.total_work() >= 400_000, "{}", dag.total_work());
    assert_eq!(dag.latencies(), 1, "the timer");
    // The program waits for the child, which sleeps; less what passes from the timer's start until the poll has ended.
    assert!(dag.span() >= 10_000_000, "{}", dag.span());
    assert!(dag.joins() >= 3, "{} results were taken", dag.joins());
}

#[test]
fn tasks_that_panic_have_the_step_in_which_they_did_and_an_end() {
    let runtime = runtime(1, 10_000);
    let program = runtime.at(Batch).spawn(async {
        let closure = urgency::spawn_fn(|| {
            spin(1_000_000);
            resume_unwind(Box::new(()))
        });
        let future = urgency::spawn(async {
            spin(1_000_000);
            resume_unwind(Box::new(()))
        });
        let both: [JoinHandle<()>; 2] = [closure, future];
        for panics in both {
            assert!(panics.await.unwrap_err().is_panic());
        }
    });
    program.get().unwrap();
    let text = runtime.recording().unwrap().to_json();
    assert_eq!(text.matches("\"finished\"").count(), 3, "{text}");
    let dag = trace::read(&text).unwrap();
    // A processor does not make ten turns in a nanosecond.
    assert!(dag.total_work() >= 200_000, "{}", dag.total_work());
    assert!(dag.joins() >= 2, "{} results were taken", dag.joins());
}

#[test]
fn a_recording_is_scheduled_by_the_simulator_and_its_own_run_is_checked() {
    let runtime = runtime(2, 100_000);
    let requests: Vec<_> = (0..40)
        .map(|n| {
            runtime.at(Batch).spawn(async move {
                let parts: Vec<_> = (0..5)
                    .map(|_| urgency::at(Interactive).spawn(async move { spin(20_000 + n) }))
                    .collect();
                for part in parts {
                    urgency::yield_now().await;
                    part.await.unwrap();
                }
            })
        })
        .collect();
    for request in requests {
        request.get().unwrap();
    }
    let text = runtime.recording().unwrap().to_json();
    let dag = trace::read(&text).unwrap();
    assert_eq!(dag.threads().len(), 240);
    for workers in [1, 2, 16] {
        let machine = Machine {
            workers,
            ..Machine::default()
        };
        let report = run(&dag, &machine).unwrap();
        assert_eq!(report.work, dag.total_work());
        let checks = bounds::all(&dag, &machine, &[report]);
        assert!(
            checks.iter().all(bounds::Check::is_consistent),
            "{checks:?}"
        );
    }
    let recorded = trace::recorded(&text).unwrap().unwrap();
    let names: Vec<_> = recorded.checks.iter().map(|check| check.name).collect();
    assert!(
        names[0].starts_with("Brent") && names[1].starts_with("Theorem 1"),
        "{names:?}"
    );
    assert_eq!(recorded.report.workers, 2);
    assert!(recorded.report.makespan * 2 >= recorded.report.work);
    assert!(recorded.checks.iter().all(bounds::Check::is_consistent));
    assert!(trace::recorded(&trace::write(&dag)).unwrap().is_none());
}

#[test]
fn after_the_limit_nothing_new_is_recorded_and_what_runs_is() {
    let runtime = runtime(1, 20);
    let tasks: Vec<_> = (0..100).map(|n| runtime.spawn(async move { n })).collect();
    let sum: u64 = tasks.into_iter().map(|task| task.get().unwrap()).sum();
    assert_eq!(sum, 4950);
    let recording = runtime.recording().unwrap();
    assert!(!recording.is_complete() && recording.steps() == 20);
    assert!(trace::read(&recording.to_json()).is_ok());
    let plain = Runtime::builder().workers(1).build().unwrap();
    plain.spawn(async {}).get().unwrap();
    assert!(plain.recording().is_none());
}
