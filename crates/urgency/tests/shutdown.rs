//! Shutdown and drop: they account for every task, and never hang.

mod common;

use common::{Random, ends, fib, quiet, runtime};
use std::{
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    time::Duration,
};
use urgency::{
    JoinErrorKind, JoinHandle, Report, Runtime, Shutdown, block_on, blocking, join, scope, spawn,
    spawn_fn, time, yield_now,
};

#[track_caller]
fn adds_up(report: Report) {
    let sum = report.finished + report.panicked + report.cancelled + report.left;
    assert_eq!(sum, report.spawned, "{report:?}");
}

#[test]
fn draining_waits_for_what_is_alive_and_for_what_that_spawns() {
    fn tree(depth: u32, count: Arc<AtomicUsize>) {
        count.fetch_add(1, SeqCst);
        for _ in 0..if depth == 0 { 0 } else { 3 } {
            let count = count.clone();
            spawn(async move {
                yield_now().await;
                tree(depth - 1, count);
            })
            .detach();
        }
    }
    for workers in [1, 2, 4] {
        ends(move || {
            let runtime = runtime(workers);
            let count = Arc::new(AtomicUsize::new(0));
            let theirs = count.clone();
            runtime.spawn_fn(move || tree(6, theirs)).detach();
            let report = runtime.shutdown(Shutdown::Drain);
            assert_eq!(count.load(SeqCst), 1093);
            assert_eq!(
                (report.spawned, report.finished),
                (1093, 1093),
                "{report:?}"
            );
        });
    }
}

#[test]
fn draining_waits_for_timers_and_blocked_closures() {
    ends(|| {
        let runtime = runtime(2);
        let sleeper = runtime.spawn(time::sleep(Duration::from_millis(20)));
        let blocked =
            runtime.spawn_fn(|| blocking(|| std::thread::sleep(Duration::from_millis(20))));
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!((report.spawned, report.finished), (2, 2));
        sleeper.get().unwrap();
        blocked.get().unwrap();
    });
}

#[test]
fn cancelling_drops_the_futures_and_lets_closures_end() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    ends(|| {
        let runtime = runtime(2);
        let dropped = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let guard = Dropped(dropped.clone());
                runtime.spawn(async move {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                })
            })
            .collect();
        let (tell, told) = mpsc::channel();
        let closure = runtime.spawn_fn(move || {
            tell.send(()).unwrap();
            let pending = spawn(std::future::pending::<()>());
            pending.get().unwrap_err().kind()
        });
        told.recv().unwrap();
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(dropped.load(SeqCst), 100);
        assert_eq!(report.left, 0, "{report:?}");
        adds_up(report);
        for task in tasks {
            let error = task.get().unwrap_err();
            assert_eq!(error.kind(), JoinErrorKind::Cancelled);
            let text = error.to_string();
            assert!(text.contains("let a shutdown drain its runtime"), "{text}");
        }
        let kind = closure.get().unwrap();
        assert!(matches!(
            kind,
            JoinErrorKind::Cancelled | JoinErrorKind::ShutDown
        ));
    });
}

#[test]
fn a_shutdown_within_a_time_reports_what_still_runs() {
    ends(|| {
        let runtime = runtime(2);
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..3 {
            let (stop, (tell, told)) = (stop.clone(), mpsc::channel());
            runtime
                .spawn_fn(move || {
                    tell.send(()).unwrap();
                    while !stop.load(Relaxed) {
                        hint::spin_loop();
                    }
                })
                .detach();
            told.recv().unwrap();
        }
        runtime.spawn(std::future::pending::<()>()).detach();
        let report = runtime.shutdown_within(Shutdown::Drain, Duration::from_millis(50));
        assert_eq!((report.spawned, report.left, report.cancelled), (4, 3, 1));
        stop.store(true, Relaxed);
    });
}

/// Many threads spawn, cancel, drop, wait and panic while the runtime is shut down beneath them.
fn random_load(seed: u64, workers: usize, how: Shutdown, within: Option<Duration>) {
    let runtime = Arc::new(runtime(workers));
    let done = Arc::new(AtomicUsize::new(0));
    let spawners: Vec<_> = (0..3)
        .map(|thread| {
            let (runtime, done) = (runtime.clone(), done.clone());
            let mut random = Random::new(seed * 3 + thread);
            std::thread::spawn(move || {
                let mut kept: Vec<JoinHandle<u64>> = Vec::new();
                for _ in 0..300 {
                    let (n, shape) = (random.below(8), random.below(8));
                    let done = done.clone();
                    let handle = match shape {
                        0 => runtime.spawn(async move { panic!("on purpose {n}") }),
                        1 => runtime.spawn_fn(move || panic!("on purpose {n}")),
                        2 => runtime.spawn(std::future::pending()),
                        3 => runtime.spawn(async move {
                            time::sleep(Duration::from_micros(50 * n)).await;
                            n
                        }),
                        4 => runtime.spawn_fn(move || {
                            let inner = spawn(async move { fib(n) });
                            if n == 3 {
                                inner.abort();
                            }
                            inner.get().unwrap_or(0)
                        }),
                        5 => runtime.spawn(async move {
                            let inner = spawn_fn(move || fib(n + 5));
                            yield_now().await;
                            inner.await.unwrap_or(0)
                        }),
                        6 => runtime.spawn_fn(move || {
                            scope(|s| {
                                for _ in 0..n {
                                    s.spawn(|| fib(5));
                                }
                            });
                            blocking(std::thread::yield_now);
                            n
                        }),
                        _ => runtime.spawn(async move {
                            for _ in 0..n {
                                yield_now().await;
                            }
                            done.fetch_add(1, SeqCst);
                            n
                        }),
                    };
                    match random.below(4) {
                        0 => drop(handle),
                        1 => {
                            handle.abort();
                            kept.push(handle);
                        }
                        2 if shape != 2 => {
                            let _ = catch_unwind(AssertUnwindSafe(|| handle.get()));
                        }
                        _ => kept.push(handle),
                    }
                }
                kept
            })
        })
        .collect();
    let kept: Vec<_> = spawners
        .into_iter()
        .flat_map(|s| s.join().unwrap())
        .collect();
    let runtime = Arc::into_inner(runtime).unwrap();
    let report = match within {
        Some(within) => runtime.shutdown_within(how, within),
        None => runtime.shutdown(how),
    };
    // A closure whose thread has no processor may be late.
    assert!(
        report.left == 0 || within.is_some(),
        "seed {seed}: {report:?}"
    );
    assert!(report.spawned >= 900, "seed {seed}: {report:?}");
    assert!(report.panicked > 0, "seed {seed}: {report:?}");
    adds_up(report);
    // Every handle tells its end.
    for handle in kept {
        let _ = catch_unwind(AssertUnwindSafe(|| handle.get()));
    }
}

#[test]
fn the_account_adds_up_after_a_random_load_with_panics_cancellations_and_drops() {
    quiet();
    for seed in 0..if cfg!(debug_assertions) { 8 } else { 30 } {
        ends(move || random_load(seed, 1 + seed as usize % 4, Shutdown::Cancel, None));
        let within = Some(Duration::from_millis(100));
        ends(move || random_load(seed, 1 + seed as usize % 4, Shutdown::Drain, within));
    }
}

#[test]
fn dropping_a_runtime_with_blocked_closures_does_not_hang() {
    ends(|| {
        let (tell, told) = mpsc::channel::<()>();
        let told = Arc::new(Mutex::new(told));
        let runtime = runtime(2);
        let handles: Vec<_> = (0..6)
            .map(|i| {
                let told = told.clone();
                runtime.spawn_fn(move || match i % 3 {
                    0 => drop(blocking(|| told.lock().unwrap().recv())),
                    1 => drop(told.lock().unwrap().recv()),
                    _ => drop(spawn(std::future::pending::<()>()).get()),
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(5));
        drop(runtime);
        drop(tell);
        for handle in handles {
            let _ = handle.get();
        }
    });
}

#[test]
fn dropping_a_runtime_with_endless_loops_does_not_hang() {
    ends(|| {
        let stop = Arc::new(AtomicBool::new(false));
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let loops: Vec<_> = (0..2 * workers)
                .map(|_| {
                    let stop = stop.clone();
                    runtime.spawn_fn(move || {
                        while !stop.load(Relaxed) {
                            hint::spin_loop();
                        }
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(workers as u64));
            let queued = runtime.spawn(std::future::pending::<()>());
            drop(runtime);
            assert_eq!(queued.get().unwrap_err().kind(), JoinErrorKind::ShutDown);
            drop(loops);
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn a_runtime_can_be_dropped_by_one_of_its_own_tasks() {
    ends(|| {
        for round in 0..60 {
            let runtime = Arc::new(runtime(1 + round % 3));
            let pending = runtime.spawn(std::future::pending::<()>());
            let (tell, told) = mpsc::channel();
            let (give, take) = mpsc::channel::<Arc<Runtime>>();
            let last = move || {
                let runtime = blocking(|| take.recv().unwrap());
                let runtime = Arc::into_inner(runtime).expect("the last one");
                drop(runtime);
                tell.send(fib(10)).unwrap();
            };
            match round % 2 {
                0 => runtime.spawn_fn(last).detach(),
                _ => runtime.spawn(async move { last() }).detach(),
            }
            give.send(runtime).unwrap();
            assert_eq!(told.recv().unwrap(), 55);
            assert_eq!(pending.get().unwrap_err().kind(), JoinErrorKind::ShutDown);
        }
    });
}

/// It cannot wait for itself: it is reported as left.
#[test]
fn a_runtime_can_be_shut_down_by_one_of_its_own_tasks() {
    ends(|| {
        for round in 0..40 {
            let how = if round % 4 < 2 {
                Shutdown::Drain
            } else {
                Shutdown::Cancel
            };
            let runtime = Arc::new(runtime(1 + round % 3));
            let other = runtime.spawn(async {
                yield_now().await;
                7
            });
            let (tell, told) = mpsc::channel();
            let (give, take) = mpsc::channel::<Arc<Runtime>>();
            let last = move || {
                let runtime = blocking(|| take.recv().unwrap());
                let runtime = Arc::into_inner(runtime).expect("the last one");
                tell.send(runtime.shutdown(how)).unwrap();
            };
            match round % 2 {
                0 => runtime.spawn_fn(last).detach(),
                _ => runtime.spawn(async move { last() }).detach(),
            }
            give.send(runtime).unwrap();
            let report = told.recv().unwrap();
            assert_eq!((report.spawned, report.left), (2, 1), "{report:?}");
            adds_up(report);
            if how == Shutdown::Drain {
                assert_eq!(other.get().unwrap(), 7);
            }
        }
    });
}

#[test]
fn a_runtime_can_be_dropped_and_shut_down_by_a_task_of_another() {
    ends(|| {
        let one = runtime(2);
        for round in 0..40 {
            let other = runtime(2);
            for _ in 0..20 {
                other.spawn(async { yield_now().await }).detach();
            }
            let pending = other.spawn(std::future::pending::<()>());
            let ended = one.spawn_fn(move || match round % 3 {
                0 => drop(other),
                1 => drop(other.shutdown(Shutdown::Cancel)),
                _ => {
                    let report = other.shutdown_within(Shutdown::Drain, Duration::from_millis(5));
                    adds_up(report);
                }
            });
            assert!(pending.get().is_err());
            ended.get().unwrap();
        }
        assert_eq!(one.run(|| fib(10)), 55);
    });
}

#[test]
fn runtimes_live_side_by_side_and_each_runs_its_own() {
    ends(|| {
        let runtimes: Vec<_> = (1..=4).map(runtime).collect();
        let sums = std::thread::scope(|s| {
            let threads: Vec<_> = runtimes
                .iter()
                .map(|runtime| {
                    s.spawn(|| {
                        let tasks: Vec<_> = (0..100)
                            .map(|i| runtime.spawn(async move { fib(i % 12) }))
                            .collect();
                        let forked = runtime.run(|| fib(14));
                        let sum: u64 = tasks.into_iter().map(|task| task.get().unwrap()).sum();
                        sum + forked
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
        for runtime in runtimes {
            let report = runtime.shutdown(Shutdown::Drain);
            assert_eq!((report.spawned, report.finished), (100, 100));
        }
    });
}

#[test]
fn handles_cross_runtimes() {
    ends(|| {
        let (one, other) = (runtime(1), runtime(1));
        let inner = other.spawn_fn(|| fib(10));
        let outer = one.spawn_fn(move || inner.get().unwrap() + 1);
        let outermost = other.spawn(async move { outer.await.unwrap() + 1 });
        assert_eq!(one.block_on(outermost).unwrap(), 57);
    });
}

#[test]
fn runtimes_run_in_one_another() {
    ends(|| {
        let (one, other) = (runtime(1), runtime(1));
        for _ in 0..100 {
            let sum = one.run(|| {
                let (a, b) = join(
                    || other.run(|| join(|| one.run(|| fib(8)), || fib(8))),
                    || other.block_on(async { spawn(async { fib(8) }).await.unwrap() }),
                );
                a.0 + a.1 + b
            });
            assert_eq!(sum, 63);
        }
        let stats = (one.stats(), other.stats());
        assert!(stats.0.threads <= 8 && stats.1.threads <= 8, "{stats:?}");
    });
}

#[test]
fn a_thousand_runtimes_come_and_go() {
    ends(|| {
        for i in 0..if cfg!(debug_assertions) { 200 } else { 1000 } {
            let runtime = runtime(1 + i % 3);
            let task = runtime.spawn(async { spawn_fn(|| fib(5)).await.unwrap() });
            if i % 3 == 0 {
                assert_eq!(task.get().unwrap(), 5);
            }
            match i % 4 {
                0 => drop(runtime),
                1 => drop(runtime.shutdown(Shutdown::Cancel)),
                _ => assert_eq!(runtime.shutdown(Shutdown::Drain).left, 0),
            }
        }
    });
}

/// A stack that waits when its runtime is dropped is woken with an error, and unwinds in good order.
#[test]
fn waiting_stacks_unwind_when_their_runtime_is_dropped() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let handles: Vec<_> = (0..20)
                .map(|_| {
                    let (begun, ended) = (begun.clone(), ended.clone());
                    runtime.spawn_fn(move || {
                        begun.fetch_add(1, SeqCst);
                        let pending = spawn(std::future::pending::<()>());
                        let (kind, _) = join(|| pending.get().unwrap_err().kind(), || fib(5));
                        ended.fetch_add(1, SeqCst);
                        kind
                    })
                })
                .collect();
            // A worker counts a closure before it claims it. A closure that nobody has claimed ends with its runtime.
            while begun.load(SeqCst) < 20 {
                std::thread::yield_now();
            }
            drop(runtime);
            for handle in handles {
                let kind = handle.get().unwrap();
                assert_eq!(kind, JoinErrorKind::ShutDown);
            }
            assert_eq!(ended.load(SeqCst), 20);
            assert_eq!(block_on(async { 1 }), 1);
        }
    });
}
