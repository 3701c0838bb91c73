//! Brief work has turns among long equals: at a level whose workers all run parallel computations that do not end,
//! timers, sockets and stacks whose wait is over are served.

mod common;

use common::{ends, until};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Instant,
};
use urgency::{
    Runtime, block_on, join, levels,
    net::UnixStream,
    scheduling_point, spawn_fn,
    time::{Duration, sleep, timeout},
    yield_now,
};

levels! { App: Urgent > Batch }

const LEAF: Duration = Duration::from_micros(50);

/// What the computations of a test look at.
type Stop = Arc<AtomicBool>;

fn compute(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {}
}

/// Forks leaves until it is told to stop.
fn forks(stop: &Stop) {
    while !stop.load(SeqCst) {
        join(|| compute(LEAF), || compute(LEAF));
    }
}

/// Computes without a scheduling point until it is told to stop.
fn spins(stop: &Stop) {
    while !stop.load(SeqCst) {
        compute(LEAF);
    }
}

/// Runs `test` as a task on 1 and 2 workers, all of which compute at its level until it has ended: so many runs of
/// `long`, of which the first have begun. The level is the only one, and the lower one of two.
fn beside<T: Future<Output = ()> + Send + 'static>(
    long: fn(&Stop),
    many: usize,
    test: impl Fn() -> T + Send + Sync + 'static,
) {
    ends(move || {
        for (workers, has_two) in [(1, false), (2, false), (1, true), (2, true)] {
            let mut builder = Runtime::builder().workers(workers);
            if has_two {
                builder = builder.levels::<App>();
            }
            let runtime = builder.build().unwrap();
            let (stop, begun) = (Stop::default(), Arc::new(AtomicUsize::new(0)));
            let closure = || {
                let (stop, begun) = (stop.clone(), begun.clone());
                runtime.spawn_fn(move || {
                    begun.fetch_add(1, SeqCst);
                    long(&stop);
                })
            };
            let closures: Vec<_> = (0..many).map(|_| closure()).collect();
            while begun.load(SeqCst) < workers {
                thread::yield_now();
            }
            runtime.block_on(runtime.spawn(test())).unwrap();
            stop.store(true, SeqCst);
            closures.into_iter().for_each(|it| it.get().unwrap());
        }
    });
}

async fn echoes() {
    let (one, other) = UnixStream::pair().unwrap();
    let echo = urgency::spawn(async move {
        for _ in 0..50 {
            assert_eq!(other.read(&mut [0; 1]).await.unwrap(), 1);
            assert_eq!(other.write(b"x").await.unwrap(), 1);
        }
    });
    for _ in 0..50 {
        assert_eq!(one.write(b"x").await.unwrap(), 1);
        assert_eq!(one.read(&mut [0; 1]).await.unwrap(), 1);
    }
    echo.await.unwrap();
}

#[test]
fn a_time_limit_on_forks_of_its_own_level_ends_them() {
    ends(|| {
        for workers in [1, 2, 8] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let limited = runtime.spawn(async {
                let stop = Stop::default();
                let seen = stop.clone();
                let computation = spawn_fn(move || forks(&seen));
                let limit = timeout(Duration::from_millis(20), computation).await;
                assert!(limit.is_err(), "the computation ends only after its limit");
                stop.store(true, SeqCst);
            });
            limited.get().unwrap();
        }
    });
}

#[test]
fn sockets_are_served_beside_forks() {
    beside(forks, 2, echoes);
}

/// As many loops as there are workers go on without one after a while.
#[test]
#[cfg_attr(
    urgency_chaos,
    ignore = "chaos keeps a worker from a loop that it could go back to, and so begins more loops than may be ahead"
)]
fn sockets_are_served_beside_loops_that_never_check_in() {
    beside(spins, 20, echoes);
}

#[test]
fn sockets_are_served_before_closures_that_wait() {
    fn some_forks(stop: &Stop) {
        for _ in 0..100 {
            join(|| compute(LEAF), || compute(LEAF));
        }
        if !stop.load(SeqCst) {
            let stop = stop.clone();
            spawn_fn(move || some_forks(&stop)).detach();
        }
    }
    beside(some_forks, 100, echoes);
}

#[test]
fn what_a_poll_wakes_has_the_same_turn() {
    beside(forks, 2, || async {
        for _ in 0..50 {
            urgency::spawn(async { yield_now().await }).await.unwrap();
        }
    });
}

#[test]
fn sockets_are_served_beside_forks_of_a_plain_thread() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let stop = Stop::default();
            let echoes = {
                let (runtime, stop) = (runtime.clone(), stop.clone());
                move || {
                    runtime.spawn(echoes()).get().unwrap();
                    stop.store(true, SeqCst);
                }
            };
            let waits = thread::spawn(echoes);
            let computation = stop.clone();
            runtime.run(move || forks(&computation));
            waits.join().unwrap();
        }
    });
}

#[test]
fn a_stack_whose_wait_is_over_goes_on_beside_forks() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let stop = Stop::default();
            let (begun, beats) = std::sync::mpsc::channel();
            let beating = runtime.spawn_fn(move || {
                for _ in 0..20 {
                    begun.send(()).unwrap();
                    block_on(sleep(Duration::from_millis(1)));
                }
            });
            beats.recv().unwrap();
            let trees: Vec<_> = (0..workers)
                .map(|_| {
                    let stop = stop.clone();
                    runtime.spawn_fn(move || forks(&stop))
                })
                .collect();
            beating.get().unwrap();
            stop.store(true, SeqCst);
            trees.into_iter().for_each(|tree| tree.get().unwrap());
        }
    });
}

/// Each piece of work spawns its successor, of which many wait, and has no scheduling point.
#[test]
fn tasks_are_served_between_closures_that_do_not_check_in() {
    fn piece(stop: Stop) {
        compute(Duration::from_millis(2));
        if !stop.load(SeqCst) {
            spawn_fn(move || piece(stop)).detach();
        }
    }
    ends(|| {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let stop = Stop::default();
            for _ in 0..50 {
                let stop = stop.clone();
                runtime.spawn_fn(move || piece(stop)).detach();
            }
            let sleeps = runtime.spawn(async {
                for _ in 0..20 {
                    sleep(Duration::from_millis(1)).await;
                }
            });
            sleeps.get().unwrap();
            stop.store(true, SeqCst);
        }
    });
}

/// A poll that forks or computes is long after all. No turn begins while as many stacks as there are workers have been
/// abandoned, or go on without a worker, but as many may begin at the same moment.
#[test]
#[cfg_attr(
    urgency_chaos,
    ignore = "chaos lets a worker begin something else where it could go back"
)]
fn polls_that_compute_are_begun_beside_as_many_as_there_are_workers() {
    ends(|| {
        for (workers, forks) in [1, 2, 4].map(|it| [(it, true), (it, false)]).concat() {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let (begun, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let tasks: Vec<_> = (0..16 * workers)
                .map(|_| {
                    let (begun, most) = (begun.clone(), most.clone());
                    runtime.spawn(async move {
                        most.fetch_max(begun.fetch_add(1, SeqCst) + 1, SeqCst);
                        match forks {
                            true => (0..200).for_each(|_| {
                                join(|| compute(LEAF), || compute(LEAF));
                            }),
                            false => compute(400 * LEAF),
                        }
                        begun.fetch_sub(1, SeqCst);
                    })
                })
                .collect();
            tasks.into_iter().for_each(|task| task.get().unwrap());
            let most = most.load(SeqCst);
            assert!(
                most <= 3 * workers,
                "{most} with {workers} workers, forks: {forks}"
            );
        }
    });
}

/// A step of a computation that never ends.
const STEPS: [fn(); 2] = [
    || {
        join(|| compute(LEAF), || compute(LEAF));
    },
    || {
        compute(LEAF);
        scheduling_point();
    },
];

/// Twice as many as there are workers begin, and all of these go on.
#[test]
#[cfg_attr(
    urgency_chaos,
    ignore = "chaos lets a worker begin something else where it could go back"
)]
fn closures_begin_beside_equals_that_check_in_and_never_end() {
    let begins = |workers: usize, step: fn(), is_beside_ticks: bool| {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let many = 2 * workers + 3;
        let stop = Stop::default();
        let steps: Arc<[AtomicUsize]> = (0..many).map(|_| AtomicUsize::new(0)).collect();
        let closure = |number: usize| {
            let (stop, steps) = (stop.clone(), steps.clone());
            runtime.spawn_fn(move || {
                while !stop.load(SeqCst) {
                    step();
                    steps[number].fetch_add(1, SeqCst);
                }
            })
        };
        let closures: Vec<_> = (0..many).map(closure).collect();
        let ticks = is_beside_ticks.then(|| {
            let stop = stop.clone();
            runtime.spawn(async move {
                while !stop.load(SeqCst) {
                    sleep(Duration::from_millis(5)).await;
                }
            })
        });
        // A worker that comes back from a turn late may begin one more (docs/limits.md, "Endless loops").
        let most = 2 * workers + if is_beside_ticks { workers } else { 0 };
        let begun = || steps.iter().filter(|steps| steps.load(SeqCst) != 0).count();
        until(|| begun() >= 2 * workers);
        // Twice, since each of them may be about to lose its worker.
        for _ in 0..2 {
            let before: Vec<_> = steps.iter().map(|steps| steps.load(SeqCst)).collect();
            let goes_on = |number: usize| steps[number].load(SeqCst) > before[number];
            until(|| (0..many).filter(|number| goes_on(*number)).count() >= 2 * workers);
        }
        assert!(begun() <= most, "{} with {workers} workers", begun());
        stop.store(true, SeqCst);
        closures.into_iter().for_each(|it| it.get().unwrap());
        ticks.into_iter().for_each(|it| it.get().unwrap());
    };
    ends(move || {
        for workers in [1, 2, 4] {
            for (step, is_beside_ticks) in STEPS.into_iter().zip([false, true]) {
                begins(workers, step, is_beside_ticks);
                begins(workers, step, !is_beside_ticks);
            }
        }
    });
}

/// Its stack loses the worker now and then, and waits behind the turns of the task.
#[test]
fn a_stack_goes_on_beside_a_task_that_computes_and_yields_all_the_time() {
    // Some 600 ms.
    const MOST: usize = 2000;
    ends(|| {
        for has_levels in [false, true] {
            let mut builder = Runtime::builder().workers(1);
            if has_levels {
                builder = builder.levels::<App>();
            }
            let runtime = builder.build().unwrap();
            let (stop, yields) = (Stop::default(), Arc::new(AtomicUsize::new(0)));
            let (stops, counts) = (stop.clone(), yields.clone());
            let busy = runtime.spawn(async move {
                while !stops.load(SeqCst) {
                    compute(Duration::from_micros(300));
                    counts.fetch_add(1, SeqCst);
                    yield_now().await;
                }
            });
            runtime.run(|| {
                for _ in 0..300 {
                    let before = yields.load(SeqCst);
                    block_on(sleep(Duration::from_millis(1)));
                    let meanwhile = yields.load(SeqCst) - before;
                    assert!(meanwhile < MOST, "{meanwhile} yields in one sleep");
                }
            });
            stop.store(true, SeqCst);
            busy.get().unwrap();
        }
    });
}
