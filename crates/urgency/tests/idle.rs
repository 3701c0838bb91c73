//! An idle runtime makes no periodic wake-up: no thread of it enters or leaves the kernel. Nor does a thread without
//! work look for work that no worker may take.
//!
//! Each case runs in a process of its own, so that only its threads are counted.

mod common;

use common::{ends, fib, in_child, is_child, run_time, run_time_of_all, runtime};
use std::{collections::BTreeMap, fs, hint, time::Duration};
use urgency::{
    Runtime,
    jobs::CoreSet,
    join,
    net::TcpListener,
    policy::{Adaptive, Parameters},
    time,
};

/// By thread: its name, how often it gave its core up, and how often it was preempted.
fn switches() -> BTreeMap<String, (String, u64, u64)> {
    let field = |status: &str, name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let threads = fs::read_dir("/proc/self/task").unwrap();
    threads
        .filter_map(|thread| {
            let thread = thread.unwrap();
            let status = fs::read_to_string(thread.path().join("status")).ok()?;
            let count = |name: &str| field(&status, name).parse().unwrap();
            let counts = (
                field(&status, "Name:"),
                count("voluntary_ctxt_switches:"),
                count("nonvoluntary_ctxt_switches:"),
            );
            Some((thread.file_name().into_string().unwrap(), counts))
        })
        .filter(|(_, (name, ..))| name == "urgency")
        .collect()
}

/// After the threads have settled, nothing moves for 300 ms: in the last of three such times at the latest, because a
/// program that stops and continues the process wakes all its threads.
fn assert_idle() {
    // Spares settle, a last relief expires.
    std::thread::sleep(Duration::from_millis(200));
    let mut seen = vec![switches()];
    // Chaos lets spare threads end.
    assert!(
        cfg!(urgency_chaos) || !seen[0].is_empty(),
        "the runtime has threads"
    );
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(300));
        let now = switches();
        if seen.last() == Some(&now) {
            return;
        }
        seen.push(now);
    }
    panic!("name, switches given up and preempted by thread, each 300 ms: {seen:?}");
}

fn case(name: &str, body: fn()) {
    if is_child() {
        ends(body);
    } else {
        in_child(name);
    }
}

#[test]
fn an_idle_runtime_wakes_no_thread() {
    case("an_idle_runtime_wakes_no_thread", || {
        let runtime = runtime(4);
        for _ in 0..20 {
            runtime.run(|| fib(16));
            runtime
                .spawn(async { urgency::yield_now().await })
                .get()
                .unwrap();
        }
        assert_idle();
        drop(runtime);
    });
}

#[test]
fn a_runtime_that_waits_for_a_socket_and_a_far_timer_wakes_no_thread() {
    case(
        "a_runtime_that_waits_for_a_socket_and_a_far_timer_wakes_no_thread",
        || {
            let runtime = runtime(2);
            let server = runtime.spawn(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                listener.accept().await.map(|_| ())
            });
            let timer = runtime.spawn(time::sleep(Duration::from_secs(3600)));
            let pending = runtime.spawn_fn(|| urgency::block_on(std::future::pending::<()>()));
            runtime
                .spawn(async { time::sleep(Duration::from_millis(20)).await })
                .get()
                .unwrap();
            assert_idle();
            assert!(!server.is_finished() && !timer.is_finished() && !pending.is_finished());
        },
    );
}

#[test]
fn a_runtime_that_was_relieved_wakes_no_thread_afterwards() {
    case(
        "a_runtime_that_was_relieved_wakes_no_thread_afterwards",
        || {
            let runtime = runtime(1);
            let (tell, told) = std::sync::mpsc::channel();
            let (start, started) = std::sync::mpsc::channel();
            let blocked = runtime.spawn_fn(move || {
                start.send(()).unwrap();
                told.recv().unwrap();
            });
            started.recv().unwrap();
            runtime
                .spawn(async move { tell.send(()).unwrap() })
                .get()
                .unwrap();
            blocked.get().unwrap();
            assert!(runtime.stats().total().reliefs >= 1);
            assert_idle();
        },
    );
}

#[test]
fn the_global_runtime_wakes_no_thread_when_idle() {
    case("the_global_runtime_wakes_no_thread_when_idle", || {
        assert_eq!(fib(20), 6765);
        urgency::spawn(async {}).get().unwrap();
        assert_idle();
    });
}

/// Adaptive has quanta, which end while somebody works.
#[test]
fn an_idle_runtime_with_an_adaptive_schedule_wakes_no_thread() {
    case(
        "an_idle_runtime_with_an_adaptive_schedule_wakes_no_thread",
        || {
            urgency::levels! { Two: Upper > Lower }
            let adaptive = Adaptive::new(2, Parameters::default()).unwrap();
            let builder = Runtime::builder().workers(4).levels::<Two>();
            let runtime = builder.schedule(adaptive).build().unwrap();
            for _ in 0..20 {
                runtime.at(Upper).spawn_fn(|| fib(16)).get().unwrap();
                runtime.at(Lower).spawn_fn(|| fib(16)).get().unwrap();
            }
            assert_idle();
        },
    );
}

/// Blocked closures and declared blocking calls wait in the kernel, nowhere else.
#[test]
fn a_runtime_whose_stacks_all_wait_wakes_no_thread() {
    case("a_runtime_whose_stacks_all_wait_wakes_no_thread", || {
        let runtime = runtime(2);
        for _ in 0..10 {
            runtime
                .spawn_fn(|| urgency::block_on(std::future::pending::<()>()))
                .detach();
            runtime
                .spawn_fn(|| urgency::blocking(std::thread::park))
                .detach();
        }
        while runtime.stats().levels[0].total.closures < 20 {
            std::thread::yield_now();
        }
        assert_idle();
    });
}

/// The job's one worker computes, and the other worker is not for this job. (A spare thread saw what was queued, got no
/// worker for it, and looked again, for as long as the computation lasted.)
#[test]
fn threads_without_work_do_not_compute_beside_a_job_that_has_as_many_workers_as_it_may() {
    case(
        "threads_without_work_do_not_compute_beside_a_job_that_has_as_many_workers_as_it_may",
        || {
            // A fork is public while a worker is idle.
            let half = || (0..10_000).for_each(|_| hint::spin_loop());
            let root = move || async move {
                let long = urgency::spawn_fn(move || {
                    let (mine, all) = (run_time(), run_time_of_all());
                    while run_time() - mine < Duration::from_millis(300) {
                        join(half, half);
                    }
                    (run_time() - mine, run_time_of_all() - all)
                });
                // Each is queued behind it.
                while !long.is_finished() {
                    time::sleep(Duration::from_millis(1)).await;
                    urgency::spawn_fn(|| ()).detach();
                }
                long.await.unwrap()
            };
            let sets = [
                CoreSet::builder().cores(2),
                CoreSet::builder().cores(2).pinned(),
            ];
            for set in sets.map(|set| set.build().unwrap()) {
                let job = set.job().max_cpus(1).spawn(root()).unwrap();
                let (mine, all) = job.get().unwrap();
                assert!(all < 2 * mine, "{all:?} in all, {mine:?} of it by the work");
            }
        },
    );
}
