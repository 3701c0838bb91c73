//! A runtime with more workers than processors: forked work uses the processors, and workers beyond them only when
//! threads sleep in the kernel.

mod common;

use common::{ends, fib, runtime};
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{MAX_WORKERS, sync::oneshot};

fn processors() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

/// Calls `join` down to this many leaves. Each returns when all of them are inside.
fn meet(leaves: usize, barrier: &Barrier) {
    if leaves == 1 {
        barrier.wait();
        return;
    }
    let half = leaves / 2;
    urgency::join(|| meet(half, barrier), || meet(leaves - half, barrier));
}

#[test]
fn a_computation_takes_no_threads_beyond_the_processors() {
    let workers = (64 * processors()).min(MAX_WORKERS);
    if workers < 32 * processors() {
        return;
    }
    let runtime = runtime(workers);
    for _ in 0..10 {
        assert_eq!(runtime.run(|| fib(24)), 46_368);
    }
    // One for each processor, some that wait for stolen jobs, and those in the poller. Chaos takes workers from stacks
    // that run, and each of these keeps its thread.
    let peak = runtime.stats().threads_peak;
    let most = workers / if cfg!(urgency_chaos) { 2 } else { 4 };
    assert!(peak < most, "{peak} threads for {workers} workers");
}

#[test]
fn forks_that_sleep_in_the_kernel_get_the_workers_beyond_the_processors() {
    let workers = (4 * processors()).min(MAX_WORKERS);
    let runtime = runtime(workers);
    ends(move || {
        for _ in 0..3 {
            let barrier = Barrier::new(workers);
            runtime.run(|| meet(workers, &barrier));
        }
    });
}

#[test]
fn tasks_that_sleep_in_the_kernel_get_the_workers_beyond_the_processors() {
    let workers = (4 * processors()).min(MAX_WORKERS);
    let runtime = runtime(workers);
    ends(move || {
        let barrier = Arc::new(Barrier::new(workers));
        let meets = |_| {
            let barrier = barrier.clone();
            runtime.spawn(async move { barrier.wait().is_leader() })
        };
        let tasks: Vec<_> = (0..workers).map(meets).collect();
        let leaders = tasks
            .into_iter()
            .map(|task| usize::from(task.get().unwrap()));
        assert_eq!(leaders.sum::<usize>(), 1);
    });
}

/// An expiry of relief asks a stack to check in, and a later one takes the worker of a stack that did not. (The count
/// for the reserve asked first, and the look for workers found the question and took for an answer that there was
/// none.)
#[test]
fn a_stack_that_sleeps_for_less_than_a_period_at_a_time_keeps_its_worker() {
    let workers = processors() + 1;
    let runtime = runtime(workers);
    let began = Instant::now();
    ends({
        let runtime = runtime.clone();
        move || {
            let sleeps = |_| {
                runtime.spawn_fn(|| {
                    for _ in 0..500 {
                        thread::sleep(Duration::from_micros(200));
                        urgency::scheduling_point();
                    }
                })
            };
            let closures: Vec<_> = (0..=workers).map(sleeps).collect();
            closures
                .into_iter()
                .for_each(|closure| closure.get().unwrap());
        }
    });
    let reliefs = runtime.stats().total().reliefs;
    let periods = began.elapsed().as_millis() as u64;
    assert!(reliefs < periods / 4, "{reliefs} reliefs in {periods} ms");
}

/// The thief that takes the first fork of a stack that waits is the only thread that knows of the rest. (It left no
/// entry for it unless a worker was hungry at that moment.)
#[test]
fn a_worker_without_work_finds_the_forks_of_a_stack_that_waits() {
    const CHILDREN: usize = 4;
    let runtime = runtime(4 * processors());
    ends(move || {
        for _ in 0..50 {
            let begun = Arc::new(AtomicUsize::new(0));
            // Nobody is hungry when the first child begins: all processors are busy until then.
            let busy: Vec<_> = (1..processors())
                .map(|_| {
                    let begun = begun.clone();
                    runtime.spawn_fn(move || spin_until(|| begun.load(SeqCst) > 0))
                })
                .collect();
            let owner = runtime.spawn_fn(move || {
                let (tell, told) = oneshot::channel();
                urgency::scope(|s| {
                    let begun = &begun;
                    let mut tell = Some(tell);
                    for child in 0..CHILDREN {
                        let tell = tell.take_if(|_| child == CHILDREN - 1);
                        s.spawn(move || {
                            begun.fetch_add(1, SeqCst);
                            tell.into_iter().for_each(|tell| tell.send(()).unwrap());
                            spin_until(|| begun.load(SeqCst) > child + 1 || child > 0);
                        });
                    }
                    told.blocking_recv().unwrap();
                });
            });
            owner.get().unwrap();
            busy.into_iter().for_each(|task| task.get().unwrap());
        }
    });
}

fn spin_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
        urgency::scheduling_point();
    }
}
