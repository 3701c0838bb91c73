//! `Runtime` as a handle: clones, the current one, and what the end by one handle means for all others.

mod common;

use common::{ends, fib, in_child, is_child, quiet, runtime, with_levels};
use std::{
    future::pending,
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
    thread,
    time::Duration,
};
use urgency::{
    JoinErrorKind, Runtime, Shutdown, join, scheduling_point, scope, spawn, spawn_fn, time,
    yield_now,
};

urgency::levels! { App: High > Middle > Low }

#[test]
fn the_last_handle_ends_the_runtime_and_no_other_does() {
    ends(|| {
        let first = runtime(2);
        let pending = first.spawn(pending::<()>());
        let second = first.clone();
        let third = first.run(Runtime::current);
        drop(first);
        assert_eq!(second.spawn(async { 1 }).get().unwrap(), 1);
        drop(second);
        assert_eq!(third.run(|| fib(10)), 55);
        assert!(!pending.is_finished());
        drop(third);
        assert_eq!(pending.get().unwrap_err().kind(), JoinErrorKind::ShutDown);
    });
}

#[test]
fn a_task_that_keeps_a_handle_keeps_its_runtime_until_a_shutdown() {
    ends(|| {
        let runtime = runtime(1);
        let (tell, told) = mpsc::channel();
        let (go, may_go) = urgency::sync::oneshot::channel::<()>();
        let kept = runtime.spawn(async move {
            let own = Runtime::current();
            tell.send(own.clone()).unwrap();
            drop(tell);
            let _ = may_go.await;
            own.spawn(async { 7 }).await.unwrap()
        });
        let other = told.recv().unwrap();
        drop(runtime);
        drop(other);
        go.send(()).unwrap();
        assert_eq!(kept.get().unwrap(), 7);
    });
}

#[test]
fn the_current_runtime_is_the_one_whose_code_runs() {
    ends(|| {
        let (one, three) = (runtime(1), runtime(3));
        let workers = || Runtime::current().stats().workers.len();
        assert_eq!(one.run(workers), 1);
        assert_eq!(
            three.run(|| (workers(), one.run(workers), workers())),
            (3, 1, 3)
        );
        let inside = three.spawn(async move { (workers(), urgency::blocking(workers)) });
        assert_eq!(inside.get().unwrap(), (3, 3));
    });
}

/// One thread looks at the statistics all the time, others spawn, a task shuts down.
#[test]
fn a_shutdown_in_the_middle_of_everything_tells_every_waiter() {
    for (round, workers) in (0..20).map(|round| (round, 1 + round % 2)) {
        ends(move || {
            let runtime = with_levels::<App>(workers);
            let over = Arc::new(AtomicBool::new(false));
            let metrics = {
                let (runtime, over) = (runtime.clone(), over.clone());
                thread::spawn(move || {
                    while !over.load(SeqCst) {
                        assert_eq!(runtime.stats().levels.len(), 3);
                    }
                })
            };
            let reindex = runtime.at(Low).spawn_fn(|| {
                while !matches!(spawn(async {}).get(), Err(error) if error.kind() == JoinErrorKind::ShutDown) {
                    fib(8);
                }
            });
            let spawners: Vec<_> = (0..2)
                .map(|_| {
                    let runtime = runtime.clone();
                    thread::spawn(move || {
                        while runtime
                            .at(Middle)
                            .spawn(async { yield_now().await })
                            .get()
                            .is_ok()
                        {}
                    })
                })
                .collect();
            let (tell, told) = mpsc::channel();
            let signal = runtime.at(High).spawn(async move {
                time::sleep(Duration::from_millis(2)).await;
                let how = if round < 10 {
                    Shutdown::Cancel
                } else {
                    Shutdown::DrainDownTo(Middle.into())
                };
                let limit = Duration::from_millis(50);
                tell.send(Runtime::current().shutdown_within(how, limit))
                    .unwrap();
            });
            let report = told.recv().unwrap();
            assert!(report.spawned > 0, "{report:?}");
            let _ = signal.get();
            spawners
                .into_iter()
                .for_each(|spawner| spawner.join().unwrap());
            let _ = reindex.get();
            over.store(true, SeqCst);
            metrics.join().unwrap();
            assert_eq!(
                runtime.spawn(async {}).get().unwrap_err().kind(),
                JoinErrorKind::ShutDown
            );
        });
    }
}

#[test]
fn many_shutdowns_at_once_all_end_and_report_the_same_account() {
    ends(|| {
        for how in [Shutdown::Drain, Shutdown::Cancel] {
            let runtime = runtime(2);
            for _ in 0..50 {
                runtime.spawn(async { yield_now().await }).detach();
            }
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let runtime = runtime.clone();
                    thread::spawn(move || runtime.shutdown(how))
                })
                .collect();
            let reports: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            assert!(
                reports
                    .iter()
                    .all(|report| report.spawned == 50 && report.left == 0),
                "{reports:?}"
            );
            assert_eq!(runtime.shutdown(how), reports[0]);
        }
    });
}

/// Neither can wait for the other.
#[test]
fn two_tasks_that_shut_down_their_own_runtime_do_not_wait_for_each_other() {
    for (workers, how) in [1, 2]
        .into_iter()
        .flat_map(|w| [(w, Shutdown::Drain), (w, Shutdown::Cancel)])
    {
        ends(move || {
            let runtime = runtime(workers);
            let both = Arc::new(Barrier::new(2));
            let (tell, told) = mpsc::channel();
            for is_async in [false, true] {
                let (both, tell) = (both.clone(), tell.clone());
                let end = move || {
                    urgency::blocking(|| both.wait());
                    tell.send(Runtime::current().shutdown(how)).unwrap();
                };
                match is_async {
                    true => runtime.spawn(async move { end() }).detach(),
                    false => runtime.spawn_fn(end).detach(),
                }
            }
            for _ in 0..2 {
                let report = told.recv().unwrap();
                assert_eq!(report.spawned, 2, "{report:?}");
            }
        });
    }
}

#[test]
fn a_plain_thread_inside_drains_all_others_and_goes_on() {
    ends(|| {
        let runtime = runtime(2);
        let report = runtime.run(|| {
            spawn(time::sleep(Duration::from_millis(20))).detach();
            let report = runtime.shutdown(Shutdown::Drain);
            assert_eq!(fib(12), 144);
            assert_eq!(
                spawn(async {}).get().unwrap_err().kind(),
                JoinErrorKind::ShutDown
            );
            report
        });
        assert_eq!((report.finished, report.left), (1, 0));
    });
}

/// It waits for a worker that an endless loop holds, after the shutdown has given that loop up.
#[test]
fn a_plain_thread_inside_is_not_left_behind_by_a_shutdown() {
    for workers in [1, 2] {
        ends(move || {
            let runtime = runtime(workers);
            let (stop, inside) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
            let (go, gone) = mpsc::channel::<()>();
            let guest = {
                let (runtime, inside) = (runtime.clone(), inside.clone());
                thread::spawn(move || {
                    runtime.run(|| {
                        urgency::blocking(|| {
                            inside.wait();
                            gone.recv().unwrap();
                        });
                        fib(10)
                    })
                })
            };
            inside.wait();
            for _ in 0..workers {
                let (stop, (tell, told)) = (stop.clone(), mpsc::channel());
                let endless = move || {
                    tell.send(()).unwrap();
                    while !stop.load(Relaxed) {
                        hint::spin_loop();
                    }
                };
                runtime.spawn_fn(endless).detach();
                told.recv().unwrap();
            }
            let report = runtime.shutdown_within(Shutdown::Cancel, Duration::from_millis(20));
            assert_eq!(report.left, workers as u64, "{report:?}");
            go.send(()).unwrap();
            assert_eq!(guest.join().unwrap(), 55);
            stop.store(true, Relaxed);
        });
    }
}

#[test]
fn a_plain_thread_that_comes_after_a_shutdown_is_told_so() {
    quiet();
    ends(|| {
        let runtime = runtime(1);
        let other = runtime.clone();
        runtime.shutdown(Shutdown::Drain);
        let refused = catch_unwind(AssertUnwindSafe(|| other.run(|| 1))).unwrap_err();
        let text = refused.downcast::<&str>().unwrap();
        assert!(text.contains("was shut down"), "{text}");
        assert_eq!(
            other.spawn_fn(|| 1).get().unwrap_err().kind(),
            JoinErrorKind::ShutDown
        );
        assert_eq!(other.stats().levels.len(), 1);
    });
}

#[test]
fn the_global_runtime_can_be_shut_down_from_anywhere() {
    if !is_child() {
        return in_child("the_global_runtime_can_be_shut_down_from_anywhere");
    }
    quiet();
    let task = spawn_fn(|| {
        let own = Runtime::current();
        own.spawn(pending::<()>()).detach();
        own.shutdown_within(Shutdown::Cancel, Duration::from_secs(20))
    });
    assert_eq!(task.get().unwrap().left, 1);
    assert_eq!(
        spawn(async {}).get().unwrap_err().kind(),
        JoinErrorKind::ShutDown
    );
    assert!(catch_unwind(|| join(|| 1, || 2)).is_err());
    assert!(catch_unwind(|| scope(|_| ())).is_err());
    assert_eq!(urgency::block_on(async { 3 }), 3);
}

/// As many closures as workers at each level go from one scheduling point to the next until the test ends.
fn endless(runtime: &Runtime, workers: usize, levels: &[urgency::LevelId]) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for &level in levels.iter().rev() {
        let (tell, told) = mpsc::channel();
        for _ in 0..workers {
            let (stop, tell) = (stop.clone(), tell.clone());
            let closure = move || {
                tell.send(()).unwrap();
                while !stop.load(Relaxed) {
                    scheduling_point();
                }
            };
            runtime.at(level).spawn_fn(closure).detach();
        }
        for _ in 0..workers {
            told.recv().unwrap();
        }
    }
    stop
}

#[test]
fn a_plain_thread_enters_beside_closures_that_check_in_and_never_end() {
    let (high, middle, low) = (High.into(), Middle.into(), Low.into());
    for levels in [vec![low], vec![middle], vec![high], vec![high, middle, low]] {
        for workers in [1, 2] {
            let levels = levels.clone();
            ends(move || {
                let runtime = with_levels::<App>(workers);
                let stop = endless(&runtime, workers, &levels);
                for _ in 0..20 {
                    assert_eq!(runtime.run(|| fib(8)), 21);
                }
                let entered: Vec<_> = (0..4)
                    .map(|_| {
                        let runtime = runtime.clone();
                        thread::spawn(move || runtime.run(|| fib(8)))
                    })
                    .collect();
                for entered in entered {
                    assert_eq!(entered.join().unwrap(), 21);
                }
                let spawned = runtime.run(|| High.spawn(async |_| 1)).erase();
                stop.store(true, Relaxed);
                assert_eq!(spawned.get().unwrap(), 1);
            });
        }
    }
}

/// Also at a level of its own choice: among equals nobody keeps it out.
#[test]
fn a_plain_thread_enters_a_level_beside_equals_that_never_end() {
    for workers in [1, 2] {
        ends(move || {
            let runtime = with_levels::<App>(workers);
            let stop = endless(&runtime, workers, &[Low.into()]);
            for _ in 0..20 {
                assert_eq!(Low.on(&runtime).run(|_| fib(8)), 21);
            }
            stop.store(true, Relaxed);
        });
    }
}

#[test]
fn a_plain_thread_spawns_typed_work_without_a_worker() {
    let all = [High.into(), Middle.into(), Low.into()];
    for workers in [1, 2] {
        ends(move || {
            let runtime = with_levels::<App>(workers);
            let stop = endless(&runtime, workers, &all);
            let before = runtime.stats();
            let waits = Low.on(&runtime).spawn(async |cx| {
                let inner = High.spawn_fn(|_| 20);
                inner.wait(cx).await.unwrap() + 1
            });
            let closure = Middle
                .on(&runtime)
                .spawn_fn(|cx| High.spawn(async |_| 2).get(cx).unwrap());
            assert_eq!((waits.level(), closure.level()), (Low, Middle));
            assert!(!waits.is_finished());
            let after = runtime.stats();
            assert_eq!(
                before.levels[0].total.hand_offs,
                after.levels[0].total.hand_offs
            );
            stop.store(true, Relaxed);
            assert_eq!(
                (waits.erase().get().unwrap(), closure.erase().get().unwrap()),
                (21, 2)
            );
        });
    }
}

#[test]
fn typed_work_of_another_order_is_refused_where_it_is_spawned() {
    quiet();
    let one_level = runtime(1);
    let refused = catch_unwind(AssertUnwindSafe(|| {
        High.on(&one_level).spawn(async |_| ()).detach()
    }));
    let text = refused.unwrap_err().downcast::<String>().unwrap();
    assert!(
        text.contains("`App`") && text.contains("`OneLevel`"),
        "{text}"
    );
}
