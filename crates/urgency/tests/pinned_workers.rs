//! Pinned workers: each worker's code runs on its processor, whichever thread has the worker.
#![cfg(target_os = "linux")]

mod common;

use common::{ends, one_shot};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    BuildError, Runtime,
    jobs::CoreSet,
    runtime::{Builder, PinError},
};

fn allowed() -> Vec<usize> {
    let all = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| all.is_set(cpu))
        .collect()
}

/// The one processor that the calling thread may run on, and runs on.
fn own_processor() -> usize {
    let set = sched_getaffinity(None).unwrap();
    assert_eq!(set.count(), 1, "the thread is not pinned");
    let cpu = sched_getcpu();
    assert!(set.is_set(cpu), "the thread runs elsewhere");
    cpu
}

fn error(builder: Builder) -> PinError {
    match builder.build().unwrap_err() {
        BuildError::Pin(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn code_runs_on_the_processors_of_the_workers_and_no_two_pieces_on_one() {
    ends(|| {
        let cpus = allowed();
        let runtime = Runtime::builder().pin_workers().build().unwrap();
        assert_eq!(runtime.stats().workers.len(), cpus.len());
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let inside: Arc<Vec<AtomicUsize>> =
            Arc::new((0..CpuSet::MAX_CPU).map(|_| AtomicUsize::new(0)).collect());
        let check = {
            let (seen, inside) = (seen.clone(), inside.clone());
            move || {
                let cpu = own_processor();
                assert_eq!(inside[cpu].fetch_add(1, SeqCst), 0, "two workers on {cpu}");
                assert_eq!(own_processor(), cpu);
                inside[cpu].fetch_sub(1, SeqCst);
                let both = urgency::join(own_processor, own_processor);
                assert!(inside.len() > both.0.max(both.1));
                seen.lock().unwrap().insert(cpu);
            }
        };
        let piece = |_| {
            let check = check.clone();
            let (tell, told) = one_shot();
            let waits = runtime.spawn_fn({
                let check = check.clone();
                move || {
                    check();
                    // The worker goes to another thread here, and comes back to this one.
                    urgency::block_on(told);
                    check();
                }
            });
            let tells = runtime.spawn(async move {
                check();
                urgency::yield_now().await;
                check();
                tell(());
            });
            (waits, tells)
        };
        for _ in 0..20 {
            let pieces: Vec<_> = (0..20).map(piece).collect();
            for (waits, tells) in pieces {
                waits.get().unwrap();
                tells.get().unwrap();
            }
        }
        // Each worker, sooner or later.
        while seen.lock().unwrap().len() < cpus.len() {
            let check = check.clone();
            let sleeps = |_| {
                let check = check.clone();
                runtime.spawn_fn(move || {
                    check();
                    thread::sleep(Duration::from_millis(1));
                })
            };
            let tasks: Vec<_> = (0..cpus.len()).map(sleeps).collect();
            tasks.into_iter().for_each(|task| task.get().unwrap());
        }
        assert_eq!(*seen.lock().unwrap(), cpus.into_iter().collect());
    });
}

#[test]
fn events_timers_and_the_jobs_of_a_core_set_come_to_their_processor() {
    ends(|| {
        let cpu = *allowed().last().unwrap();
        let cores = CoreSet::builder().pinned_to([cpu]).build().unwrap();
        let job = |_| {
            cores.spawn(async move {
                for _ in 0..10 {
                    assert_eq!(own_processor(), cpu);
                    urgency::time::sleep(Duration::from_millis(1)).await;
                }
            })
        };
        let jobs: Vec<_> = (0..3).map(job).collect();
        jobs.into_iter().for_each(|job| job.unwrap().get().unwrap());
    });
}

#[test]
fn a_plain_thread_that_calls_in_keeps_its_processors() {
    ends(|| {
        let before = allowed();
        let runtime = Runtime::builder()
            .pin_workers_to([before[0]])
            .build()
            .unwrap();
        assert_eq!(runtime.run(allowed), before);
        runtime.run(|| urgency::join(|| runtime.spawn_fn(|| ()).get().unwrap(), || ()));
        assert_eq!(allowed(), before);
    });
}

#[test]
fn processors_that_the_process_may_not_use_and_wrong_numbers_are_errors() {
    let cpus = allowed();
    let (first, allowed) = (cpus[0], cpus.len());
    let builder = Runtime::builder;
    assert_eq!(
        error(builder().pin_workers_to([first, 70_000])),
        PinError::NotAllowed {
            cpu: 70_000,
            allowed
        }
    );
    assert_eq!(
        error(builder().pin_workers_to([first, first])),
        PinError::Twice { cpu: first }
    );
    assert_eq!(
        error(builder().workers(3).pin_workers_to([first])),
        PinError::Workers {
            workers: 3,
            processors: 1
        }
    );
    assert_eq!(
        error(builder().workers(allowed + 1).pin_workers()),
        PinError::Workers {
            workers: allowed + 1,
            processors: allowed
        }
    );
    assert!(matches!(
        error(builder().pin_workers_to([])),
        PinError::Workers { workers: 0, .. }
    ));
    assert_eq!(
        error(builder().provided_threads().pin_workers()),
        PinError::ProvidedThreads
    );
    let text = error(builder().pin_workers_to([70_000])).to_string();
    assert!(
        text.contains("70000") && text.contains("taskset -cp"),
        "{text}"
    );
    // A runtime that shares workers has those of the other.
    let runtime = builder().workers(1).build().unwrap();
    let shares = builder().share_workers_with(&runtime).pin_workers().build();
    assert_eq!(
        shares.unwrap_err(),
        BuildError::OfSharedWorkers("pin_workers")
    );
}
