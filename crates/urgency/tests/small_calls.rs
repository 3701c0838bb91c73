//! Parallel calls that are over before a sleeping worker could come: they wake none. And calls that are not, after many
//! of these: they get their worker.

mod common;

use common::{ends, in_child, is_child, runtime, stolen};
use std::{
    collections::HashSet,
    fs, hint,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};
use urgency::{Runtime, join};

/// Short beside a wake-up.
const BRANCH: Duration = Duration::from_micros(3);

fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        hint::spin_loop();
    }
}

/// Small parallel calls, with pauses in which workers fall asleep.
fn small_calls(count: u32, call: impl Fn(&(dyn Fn() + Sync))) {
    for _ in 0..count {
        thread::sleep(Duration::from_millis(1));
        call(&|| {
            join(|| work(BRANCH), || work(BRANCH));
        });
    }
}

/// How often the runtime's threads gave their processors up.
fn switches() -> u64 {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let count = |status: String| {
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            value.unwrap().trim().to_owned()
        };
        let switches = field("voluntary_ctxt_switches:").parse::<u64>().unwrap();
        if field("Name:") == "urgency" {
            switches
        } else {
            0
        }
    };
    threads
        .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).ok())
        .map(count)
        .sum()
}

/// One switch in two calls, where it was three in one call before.
fn wake_few_threads(runtime: &Runtime, call: impl Fn(&(dyn Fn() + Sync))) {
    small_calls(100, &call);
    let before = switches();
    small_calls(1000, &call);
    let switches = switches() - before;
    let stats = runtime.stats();
    assert!(
        switches < 1000,
        "{switches} switches of the runtime's threads in 1000 small calls; {stats:?}"
    );
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "counts the usual decisions")]
fn small_calls_from_outside_wake_no_thread_each() {
    if !is_child() {
        return in_child("small_calls_from_outside_wake_no_thread_each");
    }
    ends(|| {
        let runtime = runtime(2);
        wake_few_threads(&runtime, |both| runtime.run(both));
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "counts the usual decisions")]
fn small_calls_by_a_worker_wake_no_thread_each() {
    if !is_child() {
        return in_child("small_calls_by_a_worker_wake_no_thread_each");
    }
    ends(|| {
        let runtime = runtime(2);
        runtime.run(|| wake_few_threads(&runtime, |both| both()));
    });
}

/// The first branch has no scheduling point, and ends when the other one has begun: the relief timer brings a worker.
#[test]
fn a_fork_that_was_held_back_in_a_long_branch_gets_a_worker() {
    ends(|| {
        let runtime = runtime(2);
        for _ in 0..5 {
            small_calls(40, |both| runtime.run(both));
            runtime.run(|| stolen(|| ()));
        }
    });
}

/// A tree whose leaves are longer than a wake-up has scheduling points: it needs no timer.
#[test]
fn a_tree_after_many_small_calls_has_all_workers() {
    ends(|| {
        let runtime = runtime(2);
        for _ in 0..3 {
            small_calls(40, |both| runtime.run(both));
            let threads = Mutex::new(HashSet::new());
            // Until another thread took part.
            while threads.lock().unwrap().len() < 2 {
                runtime.run(|| tree(6, &threads));
            }
        }
    });
}

fn tree(depth: u32, threads: &Mutex<HashSet<thread::ThreadId>>) {
    if depth == 0 {
        work(Duration::from_micros(200));
        threads.lock().unwrap().insert(thread::current().id());
        return;
    }
    join(|| tree(depth - 1, threads), || tree(depth - 1, threads));
}
