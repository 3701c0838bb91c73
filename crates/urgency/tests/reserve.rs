//! A runtime with more workers than processors: forked work uses the processors, and workers beyond them only when
//! threads sleep in the kernel.

mod common;

use common::{ends, fib, runtime};
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
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
    // One for each processor, some that wait for stolen jobs, and those in the poller.
    let peak = runtime.stats().threads_peak;
    assert!(peak < workers / 4, "{peak} threads for {workers} workers");
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

urgency::levels! { Levels: Urgent > Batch }

/// Computes for about so many microseconds, without a scheduling point.
fn compute(micros: u64) {
    let end = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// A stack counted as held up whose thread the kernel had not run, because of another worker's thread. So each worker
/// beyond the processors was a reason for more of them: urgent closures from outside beside 64 workers had a p99 of
/// 100 ms and more.
#[test]
fn computing_stacks_that_wait_for_a_processor_take_no_workers_beyond_the_processors() {
    let workers = (32 * processors()).min(MAX_WORKERS);
    if workers < 16 * processors() {
        return;
    }
    for leaf in [10, 3_000] {
        let runtime = urgency::Runtime::builder()
            .workers(workers)
            .levels::<Levels>();
        let runtime = runtime.build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let [running, most] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let computes = |_| {
            let (stop, running, most) = (stop.clone(), running.clone(), most.clone());
            runtime.at(Batch).spawn_fn(move || {
                while !stop.load(SeqCst) {
                    most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                    compute(leaf);
                    running.fetch_sub(1, SeqCst);
                    urgency::scheduling_point();
                }
            })
        };
        let batch: Vec<_> = (0..workers).map(computes).collect();
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(2));
            runtime.at(Urgent).spawn_fn(|| ()).get().unwrap();
        }
        stop.store(true, SeqCst);
        batch.into_iter().for_each(|task| task.get().unwrap());
        let most = most.load(SeqCst);
        assert!(
            most <= 4 * processors(),
            "{most} compute at once, {workers} workers, leaves of {leaf} us"
        );
    }
}

/// They were needed while stacks slept in the kernel.
#[test]
fn workers_beyond_the_processors_begin_nothing_more_when_all_stacks_run() {
    let workers = (16 * processors()).min(MAX_WORKERS);
    let runtime = runtime(workers);
    ends(move || {
        let barrier = Arc::new(Barrier::new(workers));
        let [running, most, begun] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let meets = |_| {
            let barrier = barrier.clone();
            runtime.spawn_fn(move || drop(barrier.wait()))
        };
        let sleepers: Vec<_> = (0..workers).map(meets).collect();
        let computes = |_| {
            let (running, most, begun) = (running.clone(), most.clone(), begun.clone());
            runtime.spawn_fn(move || {
                let now = running.fetch_add(1, SeqCst) + 1;
                // Until an expiry of relief the stacks that slept count.
                if begun.fetch_add(1, SeqCst) > 20 * workers {
                    most.fetch_max(now, SeqCst);
                }
                compute(500);
                running.fetch_sub(1, SeqCst);
            })
        };
        let pieces: Vec<_> = (0..40 * workers).map(computes).collect();
        for task in sleepers.into_iter().chain(pieces) {
            task.get().unwrap();
        }
        let most = most.load(SeqCst);
        assert!(most <= 4 * processors(), "{most} pieces at once");
    });
}

/// Spinning code that comes to scheduling points looks like code that computes.
#[test]
fn equals_that_spin_until_all_have_begun_take_turns() {
    let workers = (processors() + 6).min(MAX_WORKERS);
    ends(move || {
        let runtime = runtime(workers);
        for _ in 0..2 {
            let begun = Arc::new(AtomicUsize::new(0));
            let spins = |_| {
                let begun = begun.clone();
                runtime.spawn_fn(move || {
                    begun.fetch_add(1, SeqCst);
                    spin_until(|| begun.load(SeqCst) == workers);
                })
            };
            let all: Vec<_> = (0..workers).map(spins).collect();
            all.into_iter().for_each(|closure| closure.get().unwrap());
        }
    });
}
