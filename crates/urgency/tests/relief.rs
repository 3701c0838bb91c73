//! Relief: code that does not check in costs throughput, never liveness, and is counted.

mod common;

use common::{all, ends, runtime};
use std::{
    hint,
    io::{Read, Write},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{JoinHandle, LevelId, Runtime, scheduling_point, spawn_fn, time};

urgency::levels! { pub App: Urgent > Usual > Idle }

fn levels(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.levels::<App>().build().unwrap()
}

/// A loop without a scheduling point, until the flag is set.
fn endless(runtime: &Runtime, level: impl Into<LevelId>, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let stop = stop.clone();
    let (tell, told) = mpsc::channel();
    let handle = runtime.at(level).spawn_fn(move || {
        tell.send(()).unwrap();
        while !stop.load(Relaxed) {
            hint::spin_loop();
        }
    });
    told.recv().unwrap();
    handle
}

/// Ends such loops.
fn end(stop: &AtomicBool, loops: impl IntoIterator<Item = JoinHandle<()>>) {
    stop.store(true, Relaxed);
    all(loops);
}

#[test]
fn a_loop_that_never_checks_in_delays_nobody_for_ever() {
    for workers in [1, 2, 4] {
        ends(move || {
            let runtime = runtime(workers);
            let stop = Arc::new(AtomicBool::new(false));
            let level = LevelId::new(0).unwrap();
            let loops: Vec<_> = (0..workers)
                .map(|_| endless(&runtime, level, &stop))
                .collect();
            for i in 0..20 {
                assert_eq!(runtime.spawn(async move { i }).get().unwrap(), i);
                assert_eq!(runtime.spawn_fn(move || i).get().unwrap(), i);
            }
            assert!(loops.iter().all(|handle| !handle.is_finished()));
            let reliefs = runtime.stats().total().reliefs;
            assert!(reliefs >= 1, "{workers} workers");
            end(&stop, loops);
        });
    }
}

/// More endless loops than workers: each takes a worker and loses it, and all run at once: beside the loops that have a
/// worker, up to one for each worker.
#[test]
fn several_loops_overrun_at_once_and_each_loses_its_worker() {
    ends(|| {
        let runtime = runtime(2);
        let stop = Arc::new(AtomicBool::new(false));
        let level = LevelId::new(0).unwrap();
        let loops: Vec<_> = (0..3).map(|_| endless(&runtime, level, &stop)).collect();
        assert_eq!(runtime.spawn(async { 7 }).get().unwrap(), 7);
        let stats = runtime.stats();
        // One worker went to the third loop, and one to the task.
        assert!(stats.total().reliefs >= 2, "{:?}", stats.total());
        assert!(stats.threads >= 3);
        end(&stop, loops);
    });
}

/// A searching worker is told nothing of what is inserted; it must pass on what it does not take.
#[test]
fn a_loop_taken_by_a_searching_worker_delays_nobody_for_ever() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            for _ in 0..30 {
                // The worker searches for a moment after this.
                runtime.spawn(async {}).get().unwrap();
                let stop = Arc::new(AtomicBool::new(false));
                let loops: Vec<_> = (0..workers)
                    .map(|_| {
                        let stop = stop.clone();
                        runtime.spawn_fn(move || {
                            while !stop.load(Relaxed) {
                                hint::spin_loop();
                            }
                        })
                    })
                    .collect();
                let last = runtime.spawn(async move { stop.store(true, Relaxed) });
                last.get().unwrap();
                for handle in loops {
                    handle.get().unwrap();
                }
            }
        }
    });
}

#[test]
fn an_overrunning_poll_of_a_task_is_relieved_too() {
    ends(|| {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = stop.clone();
        let (tell, told) = mpsc::channel();
        let task = runtime.spawn(async move {
            tell.send(()).unwrap();
            while !theirs.load(Relaxed) {
                hint::spin_loop();
            }
            urgency::yield_now().await;
            42
        });
        told.recv().unwrap();
        runtime
            .spawn(async move { stop.store(true, Relaxed) })
            .get()
            .unwrap();
        assert_eq!(task.get().unwrap(), 42);
        assert!(runtime.stats().total().reliefs >= 1);
    });
}

#[test]
fn undeclared_blocking_calls_on_all_workers_are_survived() {
    ends(|| {
        let runtime = runtime(2);
        let (tell, told): (Vec<_>, Vec<_>) = (0..8).map(|_| mpsc::channel()).unzip();
        let blocked: Vec<_> = told
            .into_iter()
            .map(|told| runtime.spawn_fn(move || told.recv().unwrap()))
            .collect();
        let sender = runtime.spawn(async move {
            for (i, tell) in tell.into_iter().enumerate() {
                tell.send(i).unwrap();
            }
        });
        for (i, handle) in blocked.into_iter().enumerate() {
            assert_eq!(handle.get().unwrap(), i);
        }
        sender.get().unwrap();
        assert!(runtime.stats().total().reliefs >= 2);
    });
}

/// The overrunning thread parks as resumable at its next scheduling point, and comes back.
#[test]
fn an_overrunning_stack_comes_back_at_its_next_scheduling_point() {
    ends(|| {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = stop.clone();
        let (tell, told) = mpsc::channel();
        let overrunning = runtime.spawn_fn(move || {
            tell.send(()).unwrap();
            let mut joined = 0;
            for _ in 0..5 {
                while !theirs.swap(false, SeqCst) {
                    hint::spin_loop();
                }
                scheduling_point();
                let (a, b) = urgency::join(|| 1, || spawn_fn(|| 1).get().unwrap());
                joined += a + b;
            }
            joined
        });
        told.recv().unwrap();
        for _ in 0..5 {
            let theirs = stop.clone();
            let (tell, told) = mpsc::channel();
            runtime
                .spawn(async move {
                    theirs.store(true, SeqCst);
                    tell.send(()).unwrap();
                })
                .detach();
            told.recv().unwrap();
            while stop.load(SeqCst) {
                std::thread::yield_now();
            }
        }
        assert_eq!(overrunning.get().unwrap(), 10);
        assert!(runtime.stats().total().reliefs >= 1);
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn nothing_is_relieved_while_nothing_waits() {
    ends(|| {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicBool::new(false));
        let handle = endless(&runtime, LevelId::new(0).unwrap(), &stop);
        std::thread::sleep(Duration::from_millis(30));
        let stats = runtime.stats();
        assert_eq!((stats.total().reliefs, stats.lowerings), (0, 0));
        stop.store(true, Relaxed);
        handle.get().unwrap();
    });
}

/// Each stack comes to its own forks itself.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn forks_of_stacks_that_run_take_no_worker_from_anybody() {
    ends(|| {
        let runtime = runtime(2);
        let ran = AtomicUsize::new(0);
        runtime.run(|| {
            urgency::scope(|scope| {
                for _ in 0..30 {
                    scope.spawn(|| {
                        let since = std::time::Instant::now();
                        while since.elapsed() < Duration::from_millis(3) {
                            hint::spin_loop();
                        }
                        ran.fetch_add(1, Relaxed);
                    });
                }
            });
        });
        assert_eq!(ran.into_inner(), 30);
        assert_eq!(runtime.stats().total().reliefs, 0);
    });
}

/// Each child waits until all have begun, and two workers begin two. Children that sleep lose their workers. Of the
/// children that loop, as many go on without a worker as there are workers.
#[test]
fn public_forks_behind_loops_of_their_own_stacks_get_a_worker_in_the_end() {
    for (blocks, children) in [(false, 4), (true, 8)] {
        ends(move || {
            let runtime = runtime(2);
            let stop = Arc::new(AtomicBool::new(false));
            let other = endless(&runtime, LevelId::new(0).unwrap(), &stop);
            let (begun, all) = (AtomicUsize::new(0), Barrier::new(children));
            runtime.run(|| {
                urgency::scope(|scope| {
                    for _ in 0..children {
                        scope.spawn(|| {
                            begun.fetch_add(1, Relaxed);
                            if blocks {
                                all.wait();
                            }
                            while begun.load(Relaxed) < children {
                                hint::spin_loop();
                            }
                        });
                    }
                    // The other worker comes for one of them: then half of them are public.
                    stop.store(true, Relaxed);
                    while begun.load(Relaxed) == 0 {
                        scheduling_point();
                    }
                });
            });
            other.get().unwrap();
            assert!(runtime.stats().total().reliefs >= 1);
        });
    }
}

/// The owner goes to sleep later than all thieves of its public forks: when it does, no public fork is left for which a
/// worker would look at it, and the rest is private. (Chaos publishes a single fork now and then while the children are
/// spawned. Its thief and the owner then sleep at once, which docs/limits.md says of forks that sleep for each other.)
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos publishes forks without need")]
fn private_forks_of_a_stack_that_sleeps_after_others_get_a_worker_in_the_end() {
    const CHILDREN: usize = 16;
    ends(|| {
        let runtime = runtime(2);
        let stop = Arc::new(AtomicBool::new(false));
        let other = endless(&runtime, LevelId::new(0).unwrap(), &stop);
        let (begun, all) = (AtomicUsize::new(0), Barrier::new(CHILDREN));
        runtime.run(|| {
            let owner = thread::current().id();
            urgency::scope(|scope| {
                for _ in 0..CHILDREN {
                    scope.spawn(|| {
                        begun.fetch_add(1, Relaxed);
                        if thread::current().id() == owner {
                            until_it_stays(&begun);
                        }
                        all.wait();
                    });
                }
                // The other worker comes for one of them: then half of them are public.
                stop.store(true, Relaxed);
                while begun.load(Relaxed) == 0 {
                    scheduling_point();
                }
            });
        });
        other.get().unwrap();
        assert_eq!(begun.into_inner(), CHILDREN);
    });
}

/// Spins until the number has not changed for a while.
fn until_it_stays(number: &AtomicUsize) {
    let (mut seen, mut since) = (number.load(Relaxed), Instant::now());
    while since.elapsed() < Duration::from_millis(30) {
        let now = number.load(Relaxed);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
}

#[test]
fn timers_fire_beside_endless_loops_at_a_lower_level() {
    for workers in [1, 2] {
        ends(move || {
            let runtime = levels(workers);
            let stop = Arc::new(AtomicBool::new(false));
            let looping = Arc::new(AtomicBool::new(false));
            let all_loop = looping.clone();
            let ticks = runtime.at(Urgent).spawn(async move {
                let mut ticks = 0;
                let mut interval = time::interval(Duration::from_millis(2));
                while ticks < 50 {
                    interval.tick().await;
                    ticks += usize::from(all_loop.load(Relaxed));
                }
                ticks
            });
            let loops: Vec<_> = (0..workers)
                .map(|_| endless(&runtime, Idle, &stop))
                .collect();
            looping.store(true, Relaxed);
            assert_eq!(ticks.get().unwrap(), 50);
            let total = runtime.stats().total();
            // A loop that relief was faster with has no worker to lend.
            assert!(total.promotions + total.reliefs >= 1, "{total:?}");
            end(&stop, loops);
        });
    }
}

#[test]
fn a_socket_is_served_beside_endless_loops_at_a_lower_level() {
    ends(|| {
        let runtime = levels(2);
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let server = runtime.at(Urgent).spawn(async move {
            let listener = urgency::net::TcpListener::bind("127.0.0.1:0")
                .await
                .unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut served = 0;
            let mut request = [0; 4];
            while stream.read_exact(&mut request).await.is_ok() {
                stream.write_all(&request).await.unwrap();
                served += 1;
            }
            served
        });
        let address = told.recv().unwrap();
        // Endless, but of changing stacks: one that was taken from does not come back.
        let loops: Vec<_> = (0..2).map(|_| endless(&runtime, Idle, &stop)).collect();
        let mut client = std::net::TcpStream::connect(address).unwrap();
        for i in 0..100u32 {
            let mut answer = [0; 4];
            client.write_all(&i.to_le_bytes()).unwrap();
            client.read_exact(&mut answer).unwrap();
            assert_eq!(u32::from_le_bytes(answer), i);
        }
        drop(client);
        assert_eq!(server.get().unwrap(), 100);
        let total = runtime.stats().total();
        assert!(total.promotions + total.reliefs >= 1, "{total:?}");
        end(&stop, loops);
    });
}

/// Loops at every level, short work at every level: nothing waits for ever, levels or not. (A loop at a
/// higher level keeps a worker from lower work by right; so there is a worker more than such loops.)
#[test]
fn loops_at_all_levels_leave_the_spare_worker_to_the_others() {
    ends(|| {
        let runtime = levels(4);
        let stop = Arc::new(AtomicBool::new(false));
        let levels: [LevelId; 3] = [Urgent.into(), Usual.into(), Idle.into()];
        let loops: Vec<_> = levels
            .iter()
            .map(|&l| endless(&runtime, l, &stop))
            .collect();
        let served = Arc::new(AtomicUsize::new(0));
        for i in 0..300 {
            let served = served.clone();
            let task = async move { served.fetch_add(1, Relaxed) };
            runtime.at(levels[i % 3]).spawn(task).get().unwrap();
        }
        assert_eq!(served.load(Relaxed), 300);
        end(&stop, loops);
    });
}

/// What a user reads after "something overran": which function's closure, at which level, how often.
#[test]
fn what_lost_its_worker_to_relief_is_named() {
    fn overrun_in_a_poll(runtime: &Runtime, stop: &Arc<AtomicBool>) -> urgency::JoinHandle<()> {
        let (stop, (tell, told)) = (stop.clone(), mpsc::channel());
        let handle = runtime.at(Usual).spawn(async move {
            tell.send(()).unwrap();
            while !stop.load(Relaxed) {
                hint::spin_loop();
            }
        });
        told.recv().unwrap();
        handle
    }
    ends(|| {
        let runtime = levels(1);
        assert!(runtime.stats().overruns.is_empty());
        let stop = Arc::new(AtomicBool::new(false));
        let loops = [
            endless(&runtime, Idle, &stop),
            overrun_in_a_poll(&runtime, &stop),
        ];
        runtime.at(Urgent).spawn(async {}).get().unwrap();
        end(&stop, loops);
        // It is noted when its thread comes back to the scheduler, which is after its result is there.
        for (place, level) in [("relief::endless", 2), ("overrun_in_a_poll", 1)] {
            let overrun = loop {
                let overruns = runtime.stats().overruns;
                if let Some(found) = overruns.into_iter().find(|o| o.what.contains(place)) {
                    break found;
                }
            };
            let level = runtime.stats().levels[level].name;
            assert_eq!((overrun.times, overrun.level), (1, level));
            assert!(!overrun.longest.is_zero());
        }
        let stats = runtime.stats();
        let times: u64 = stats.overruns.iter().map(|o| o.times).sum();
        assert!(times <= stats.total().reliefs);
    });
}
