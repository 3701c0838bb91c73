//! Two runtimes on one set of workers: each has its own of all that a program has, and both go on whatever the other
//! does.
//!
//! Each test runs with 1, 2 and 8 workers.

mod common;

use common::{ends, fib};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    BuildError, LevelId, Runtime, Shutdown, join,
    net::{TcpListener, TcpStream, UnixStream},
    scope, spawn, spawn_fn,
    sync::{Mutex, mpsc},
    time::sleep,
    yield_now,
};

urgency::levels! { Two: High > Low }
urgency::levels! { Three: First > Second > Third }

/// A runtime and another one on its workers.
fn two(workers: usize) -> (Runtime, Runtime) {
    let first = Runtime::builder()
        .workers(workers)
        .levels::<Two>()
        .build()
        .unwrap();
    let second = Runtime::builder()
        .share_workers_with(&first)
        .levels::<Three>()
        .build()
        .unwrap();
    (first, second)
}

/// Runs a test's body with 1, 2 and 8 workers.
#[track_caller]
fn with_two(body: impl Fn(Runtime, Runtime) + Send + Sync + 'static) {
    let body = Arc::new(body);
    for workers in [1, 2, 8] {
        let body = body.clone();
        ends(move || {
            let (first, second) = two(workers);
            body(first, second);
        });
    }
}

/// Keeps all workers of a runtime busy with work that has scheduling points, until it is dropped.
struct Load {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
}

impl Load {
    /// Endless forks in as many closures as workers, and tasks that yield for ever.
    fn on(runtime: &Runtime) -> Load {
        let load = Load {
            stop: Arc::default(),
            rounds: Arc::default(),
        };
        for _ in 0..runtime.stats().workers.len() {
            let (stop, rounds) = (load.stop.clone(), load.rounds.clone());
            runtime
                .spawn_fn(move || {
                    while !stop.load(SeqCst) {
                        fib(8);
                        rounds.fetch_add(1, SeqCst);
                    }
                })
                .detach();
            let stop = load.stop.clone();
            runtime
                .spawn(async move {
                    while !stop.load(SeqCst) {
                        yield_now().await;
                    }
                })
                .detach();
        }
        load
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
    }
}

/// All that a program does, on the calling code's runtime.
fn everything() {
    assert_eq!(fib(12), 144);
    let count = AtomicUsize::new(0);
    scope(|s| {
        for _ in 0..20 {
            s.spawn(|| {
                count.fetch_add(1, SeqCst);
            });
        }
    });
    assert_eq!(count.into_inner(), 20);
    let (a, b) = join(
        || spawn(async { 1 }).get().unwrap(),
        || spawn_fn(|| 2).get().unwrap(),
    );
    assert_eq!(a + b, 3);
    urgency::block_on(async {
        sleep(Duration::from_millis(2)).await;
        yield_now().await;
    });
    urgency::blocking(|| thread::sleep(Duration::from_millis(1)));
    let panicked = spawn_fn(|| -> () { std::panic::resume_unwind(Box::new("on purpose")) });
    assert!(panicked.get().unwrap_err().is_panic());
}

#[test]
fn each_does_everything_that_a_runtime_does() {
    with_two(|first, second| {
        for runtime in [&first, &second, &first] {
            runtime.run(everything);
            runtime.spawn_fn(everything).get().unwrap();
        }
    });
}

#[test]
fn both_do_everything_at_once() {
    with_two(|first, second| {
        let handles: Vec<_> = (0..8)
            .map(|at| [&first, &second][at % 2].spawn_fn(everything))
            .collect();
        for handle in handles {
            handle.get().unwrap();
        }
        for (runtime, levels) in [(&first, 2), (&second, 3)] {
            assert_eq!(runtime.stats().levels.len(), levels);
            let report = runtime.shutdown(Shutdown::Drain);
            // Each of the four spawned two that finish and one that panics.
            assert_eq!((report.spawned, report.finished), (16, 12), "{report:?}");
            assert_eq!((report.panicked, report.left), (4, 0), "{report:?}");
        }
    });
}

#[test]
fn each_makes_progress_while_the_other_keeps_all_workers_busy() {
    with_two(|first, second| {
        for (busy, quiet) in [(&first, &second), (&second, &first)] {
            let load = Load::on(busy);
            // It has all workers.
            while load.rounds.load(SeqCst) < 100 {
                thread::sleep(Duration::from_millis(1));
            }
            for _ in 0..5 {
                quiet.spawn_fn(everything).get().unwrap();
                quiet.run(everything);
            }
            let before = load.rounds.load(SeqCst);
            while load.rounds.load(SeqCst) < before + 100 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

#[test]
fn both_make_progress_while_both_have_more_than_the_workers_can_do() {
    with_two(|first, second| {
        let loads = [Load::on(&first), Load::on(&second)];
        for _ in 0..5 {
            let before: Vec<_> = loads.iter().map(|load| load.rounds.load(SeqCst)).collect();
            for (load, before) in loads.iter().zip(before) {
                while load.rounds.load(SeqCst) < before + 20 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    });
}

#[test]
fn code_that_does_not_check_in_does_not_keep_its_worker_from_the_other() {
    with_two(|first, second| {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..first.stats().workers.len() {
            let stop = stop.clone();
            let spins = move || {
                while !stop.load(SeqCst) {
                    std::hint::spin_loop();
                }
            };
            first.spawn_fn(spins).detach();
        }
        thread::sleep(Duration::from_millis(20));
        second.spawn_fn(everything).get().unwrap();
        stop.store(true, SeqCst);
        assert_eq!(first.shutdown(Shutdown::Drain).left, 0);
    });
}

#[test]
fn code_of_one_waits_for_tasks_of_the_other_whatever_their_levels() {
    with_two(|first, second| {
        let other = second.clone();
        let chain = first.at(High).spawn_fn(move || {
            let inner = other.at(Third).spawn_fn(|| fib(10));
            let closure = inner.get().unwrap();
            let other = other.clone();
            closure + other.run(|| spawn(async { fib(5) }).get().unwrap())
        });
        assert_eq!(chain.get().unwrap(), 60);
        let other = first.clone();
        let chain = second.spawn(async move { other.at(Low).spawn(async { 7 }).await.unwrap() });
        assert_eq!(chain.get().unwrap(), 7);
    });
}

#[test]
fn one_runs_code_in_the_other_and_back_in_itself() {
    with_two(|first, second| {
        let handles: Vec<_> = (0..8)
            .map(|_| {
                let (own, other) = (first.clone(), second.clone());
                first.spawn_fn(move || other.run(|| own.run(|| other.run(|| fib(9)))))
            })
            .collect();
        for handle in handles {
            assert_eq!(handle.get().unwrap(), 34);
        }
    });
}

#[test]
fn channels_and_mutexes_join_the_two() {
    const MESSAGES: usize = 500;
    with_two(|first, second| {
        let (to, mut from) = mpsc::channel(4);
        let (back, mut answers) = mpsc::channel(4);
        let total = Arc::new(Mutex::new(0));
        let theirs = total.clone();
        let server = second.spawn(async move {
            while let Some(number) = from.recv().await {
                *theirs.lock().await += number;
                back.send(number + 1).await.unwrap();
            }
        });
        let ours = total.clone();
        let client = first.spawn(async move {
            for number in 0..MESSAGES {
                to.send(number).await.unwrap();
                assert_eq!(answers.recv().await, Some(number + 1));
                *ours.lock().await += 1;
            }
        });
        client.get().unwrap();
        server.get().unwrap();
        let total = first.block_on(async { *total.lock().await });
        assert_eq!(total, MESSAGES * (MESSAGES - 1) / 2 + MESSAGES);
    });
}

#[test]
fn both_do_io_through_one_driver() {
    with_two(|first, second| {
        let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let server = second.spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4];
            stream.read_exact(&mut buffer).await.unwrap();
            stream.write_all(&buffer).await.unwrap();
        });
        let client = first.spawn_fn(move || {
            urgency::block_on(async {
                let stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(b"ping").await.unwrap();
                let mut buffer = [0; 4];
                stream.read_exact(&mut buffer).await.unwrap();
                buffer
            })
        });
        assert_eq!(&client.get().unwrap(), b"ping");
        server.get().unwrap();
    });
}

#[test]
fn one_is_shut_down_while_the_other_goes_on() {
    with_two(|first, second| {
        let load = Load::on(&second);
        for _ in 0..10 {
            first.spawn_fn(|| fib(10)).detach();
        }
        first
            .spawn(async { sleep(Duration::from_secs(1000)).await })
            .detach();
        let report = first.shutdown(Shutdown::Cancel);
        assert_eq!((report.spawned, report.left), (11, 0), "{report:?}");
        assert!(
            catch_unwind(AssertUnwindSafe(|| first.run(|| ()))).is_err(),
            "it lets nobody in"
        );
        let before = load.rounds.load(SeqCst);
        while load.rounds.load(SeqCst) < before + 100 {
            thread::sleep(Duration::from_millis(1));
        }
        second.run(everything);
        drop(load);
        assert_eq!(second.shutdown(Shutdown::Drain).left, 0);
    });
}

#[test]
fn closures_that_sleep_or_read_end_with_their_runtime_though_the_driver_goes_on() {
    with_two(|first, second| {
        let (reading, other_end) = UnixStream::pair().unwrap();
        let started = Arc::new(AtomicUsize::new(0));
        let begun = started.clone();
        first
            .spawn_fn(move || {
                begun.fetch_add(1, SeqCst);
                urgency::block_on(sleep(Duration::from_secs(1000)));
            })
            .detach();
        let begun = started.clone();
        let read = first.spawn_fn(move || {
            begun.fetch_add(1, SeqCst);
            urgency::block_on(async { reading.read(&mut [0]).await.is_err() })
        });
        while started.load(SeqCst) < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        read.detach();
        thread::sleep(Duration::from_millis(5));
        first.shutdown_within(Shutdown::Cancel, Duration::from_millis(1));
        let limit = Instant::now() + Duration::from_secs(60);
        while first.shutdown(Shutdown::Cancel).left > 0 {
            assert!(Instant::now() < limit, "they wait on");
            thread::sleep(Duration::from_millis(1));
        }
        second.run(everything);
        drop(other_end);
    });
}

#[test]
fn the_first_is_dropped_and_the_second_has_its_workers() {
    with_two(|first, second| {
        let workers = first.stats().workers.len();
        first.spawn_fn(|| fib(15)).detach();
        drop(first);
        assert_eq!(second.stats().workers.len(), workers);
        second.run(everything);
        let third = Runtime::builder()
            .share_workers_with(&second)
            .build()
            .unwrap();
        third.run(everything);
        drop(second);
        third.run(everything);
        assert_eq!(third.shutdown(Shutdown::Drain).left, 0);
        let error = Runtime::builder()
            .share_workers_with(&third)
            .build()
            .unwrap_err();
        assert_eq!(error, BuildError::SharedWorkersEnded);
    });
}

#[test]
fn jobs_that_come_and_go_leave_nothing_behind() {
    with_two(|first, second| {
        let load = Load::on(&first);
        for _ in 0..20 {
            let third = Runtime::builder()
                .share_workers_with(&first)
                .build()
                .unwrap();
            let tasks: Vec<_> = (0..5).map(|_| third.spawn(async { fib(5) })).collect();
            for task in tasks {
                assert_eq!(task.get().unwrap(), 5);
            }
            assert_eq!(third.shutdown(Shutdown::Drain).finished, 5);
        }
        second.run(everything);
        drop(load);
        let report = first.shutdown(Shutdown::Drain);
        assert_eq!((report.left, report.panicked), (0, 0), "{report:?}");
    });
}

#[test]
fn every_task_of_both_is_accounted_for() {
    const TASKS: usize = 300;
    with_two(|first, second| {
        let other = second.clone();
        let spawner = first.spawn_fn(move || {
            for task in 0..TASKS {
                let level = [LevelId::from(First), Second.into(), Third.into()][task % 3];
                other
                    .at(level)
                    .spawn_fn(move || fib(task as u64 % 8))
                    .detach();
            }
        });
        for task in 0..TASKS {
            second.spawn(async move { yield_now().await }).detach();
            first
                .at([LevelId::from(High), Low.into()][task % 2])
                .spawn(async {
                    sleep(Duration::from_micros(50)).await;
                })
                .detach();
        }
        spawner.get().unwrap();
        let reports = [
            first.shutdown(Shutdown::Drain),
            second.shutdown(Shutdown::Drain),
        ];
        let expected = [TASKS as u64 + 1, 2 * TASKS as u64];
        for (report, expected) in reports.iter().zip(expected) {
            assert_eq!(report.spawned, expected);
            assert_eq!(report.finished, expected, "{report:?}");
        }
    });
}

/// How many descriptors of the process are instances of epoll.
fn epolls() -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().contains("[eventpoll]"))
        .count()
}

#[test]
fn the_second_brings_neither_threads_nor_an_epoll() {
    if !common::is_child() {
        return common::in_child("the_second_brings_neither_threads_nor_an_epoll");
    }
    ends(|| {
        let (first, second) = two(2);
        assert_eq!(epolls(), 1);
        let load = Load::on(&first);
        let tasks: Vec<_> = (0..100).map(|_| second.spawn_fn(|| fib(12))).collect();
        for task in tasks {
            task.get().unwrap();
        }
        drop(load);
        second.block_on(sleep(Duration::from_millis(1)));
        assert_eq!(epolls(), 1);
        assert_eq!(first.stats().threads, second.stats().threads);
        // Two that work, two that are revoked, the poller and a second one, and a few spares.
        let peak = second.stats().threads_peak;
        assert!(peak <= 16, "{peak} threads");
    });
}

#[test]
fn what_belongs_to_the_workers_cannot_be_set_by_a_runtime_that_shares_them() {
    let first = Runtime::builder().workers(2).build().unwrap();
    let builder = || Runtime::builder().share_workers_with(&first);
    let error = |builder: urgency::Builder| builder.build().unwrap_err();
    for (builder, setting) in [
        (builder().workers(2), "workers"),
        (builder().thread_limit(100), "thread_limit"),
        (builder().lower_threads(false), "lower_threads"),
        (builder().thread_name("other"), "thread_name"),
        (
            builder().thread_name_fn(|| "other".into()),
            "thread_name_fn",
        ),
        (builder().on_thread_start(|| ()), "on_thread_start"),
        (builder().start_paused(true), "start_paused"),
    ] {
        let error = error(builder);
        assert_eq!(error, BuildError::OfSharedWorkers(setting));
        assert!(error.to_string().contains(setting));
    }
    let third = builder().levels::<Three>().build().unwrap();
    assert_eq!(third.stats().levels.len(), 3);
    first.run(everything);
    third.run(everything);
}
