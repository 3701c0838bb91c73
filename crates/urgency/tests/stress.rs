//! Stress: random programs against their serial results, a million contexts, storms of wake-ups.

mod common;
#[path = "common/program.rs"]
mod program;

use common::{Random, ends, number, quiet};
use program::{LEVELS, run_random};
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::*},
        mpsc,
    },
    task::{Poll, Waker},
    time::Duration,
};
use urgency::{
    JoinErrorKind, LevelId, Runtime, Shutdown, block_on, blocking, join, spawn, spawn_fn, yield_now,
};

urgency::levels! { pub App: L0 > L1 > L2 > L3 }

fn levels(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.levels::<App>().build().unwrap()
}

/// Which debug builds can do a tenth of.
fn sized(n: usize) -> usize {
    if cfg!(debug_assertions) { n / 10 } else { n }
}

#[test]
fn random_programs_give_their_serial_results_and_every_task_is_accounted() {
    quiet();
    let first = number("URGENCY_TEST_SEED", 0);
    for seed in first..first + sized(100) as u64 {
        let size = if cfg!(debug_assertions) { 60 } else { 200 };
        ends(move || run_random(levels(1 + seed as usize % 8), seed, size));
    }
}

#[test]
fn a_million_tasks_wait_at_once_and_all_end() {
    ends(|| {
        let tasks = sized(1_000_000);
        let runtime = levels(2);
        let gate = Arc::new(Gate::default());
        let ended = Arc::new(AtomicUsize::new(0));
        for i in 0..tasks {
            let (gate, ended) = (gate.clone(), ended.clone());
            let level = LevelId::new((i as u64 % LEVELS) as u8).unwrap();
            let task = runtime.at(level).spawn(async move {
                gate.wait().await;
                yield_now().await;
                ended.fetch_add(1, Relaxed);
            });
            task.detach();
        }
        while gate.waiting() < tasks {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(ended.load(Relaxed), 0);
        gate.open();
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!(ended.load(Relaxed), tasks);
        assert_eq!(
            (report.finished, report.left),
            (tasks as u64, 0),
            "{report:?}"
        );
    });
}

#[test]
fn ten_thousand_closures_wait_at_once_and_all_end() {
    ends(|| {
        let closures = if cfg!(debug_assertions) { 2000 } else { 10_000 };
        let runtime = Runtime::builder()
            .workers(2)
            .thread_limit(closures + 100)
            .build()
            .unwrap();
        let gate = Arc::new(Gate::default());
        let handles: Vec<_> = (0..closures)
            .map(|i| {
                let gate = gate.clone();
                runtime.spawn_fn(move || {
                    block_on(gate.wait());
                    i
                })
            })
            .collect();
        while gate.waiting() < closures && runtime.stats().threads_refused == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        if runtime.stats().threads_refused == 0 {
            assert!(runtime.stats().threads >= closures);
        } else {
            println!("skipped in part: the system refuses {closures} threads");
        }
        gate.open();
        for (i, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.get().unwrap(), i);
        }
    });
}

/// Where any number of tasks and stacks wait until it is open.
#[derive(Debug, Default)]
struct Gate(Mutex<(bool, Vec<Waker>)>);

impl Gate {
    fn wait(&self) -> impl Future<Output = ()> + Send {
        poll_fn(|cx| {
            let mut gate = self.0.lock().unwrap();
            if gate.0 {
                return Poll::Ready(());
            }
            gate.1.push(cx.waker().clone());
            Poll::Pending
        })
    }

    fn waiting(&self) -> usize {
        self.0.lock().unwrap().1.len()
    }

    fn open(&self) {
        let wakers = {
            let mut gate = self.0.lock().unwrap();
            gate.0 = true;
            std::mem::take(&mut gate.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Every waker is used many times, from many threads, while its task runs, waits or has ended.
#[test]
fn a_storm_of_wake_ups_loses_none_and_runs_nobody_twice_at_once() {
    ends(|| {
        for workers in [1, 2, 4] {
            let runtime = levels(workers);
            let wakers: Arc<Mutex<Vec<Waker>>> = Arc::default();
            let stop = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..64)
                .map(|i| {
                    let wakers = wakers.clone();
                    let (mut polls, inside) = (0, AtomicUsize::new(0));
                    let task = poll_fn(move |cx| {
                        assert_eq!(inside.fetch_add(1, SeqCst), 0, "polled twice at once");
                        if polls % 16 == 0 {
                            wakers.lock().unwrap().push(cx.waker().clone());
                        }
                        polls += 1;
                        inside.fetch_sub(1, SeqCst);
                        if polls < sized(2000) {
                            Poll::Pending
                        } else {
                            Poll::Ready(polls)
                        }
                    });
                    match i % 3 {
                        0 => runtime.spawn_fn(move || block_on(task)),
                        _ => runtime
                            .at(LevelId::new(i % LEVELS as u8).unwrap())
                            .spawn(task),
                    }
                })
                .collect();
            let stormers: Vec<_> = (0..3)
                .map(|seed| {
                    let (wakers, stop) = (wakers.clone(), stop.clone());
                    std::thread::spawn(move || {
                        let mut random = Random::new(seed);
                        while stop.load(Relaxed) == 0 {
                            let some: Vec<_> = {
                                let wakers = wakers.lock().unwrap();
                                let n = wakers.len() as u64;
                                (0..64.min(n))
                                    .map(|_| wakers[random.below(n) as usize].clone())
                                    .collect()
                            };
                            some.into_iter().for_each(Waker::wake);
                        }
                    })
                })
                .collect();
            for task in tasks {
                assert_eq!(task.get().unwrap(), sized(2000));
            }
            stop.store(1, Relaxed);
            for stormer in stormers {
                stormer.join().unwrap();
            }
        }
    });
}

#[test]
fn closures_that_play_ping_pong_through_blocking_channels_lose_no_wake_up() {
    ends(|| {
        for workers in [1, 2, 3] {
            let runtime = levels(workers);
            let pairs: Vec<_> = (0..4)
                .flat_map(|pair| {
                    let (ping, pings) = mpsc::channel();
                    let (pong, pongs) = mpsc::channel();
                    let rounds = sized(2000);
                    let levels = [pair % LEVELS as u8, (pair + 1) % LEVELS as u8].map(LevelId::new);
                    let one = runtime.at(levels[0].unwrap()).spawn_fn(move || {
                        for i in 0..rounds {
                            ping.send(i).unwrap();
                            assert_eq!(blocking(|| pongs.recv()).unwrap(), i);
                        }
                    });
                    let other = runtime.at(levels[1].unwrap()).spawn_fn(move || {
                        for i in 0..rounds {
                            assert_eq!(blocking(|| pings.recv()).unwrap(), i);
                            pong.send(i).unwrap();
                        }
                    });
                    [one, other]
                })
                .collect();
            for player in pairs {
                player.get().unwrap();
            }
        }
    });
}

/// An unbounded channel for tasks.
#[derive(Debug)]
struct Channel<T>(Arc<Mutex<(VecDeque<T>, Option<Waker>)>>);

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Channel(self.0.clone())
    }
}

impl<T> Channel<T> {
    fn new() -> Self {
        Channel(Arc::new(Mutex::new((VecDeque::new(), None))))
    }

    fn send(&self, value: T) {
        let waker = {
            let mut channel = self.0.lock().unwrap();
            channel.0.push_back(value);
            channel.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    async fn receive(&self) -> T {
        poll_fn(|cx| {
            let mut channel = self.0.lock().unwrap();
            match channel.0.pop_front() {
                Some(value) => Poll::Ready(value),
                None => {
                    channel.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

#[test]
fn tasks_and_closures_that_play_ping_pong_lose_no_wake_up() {
    ends(|| {
        for workers in [1, 2, 4] {
            let runtime = levels(workers);
            let rounds = sized(20_000);
            let players: Vec<_> = (0..8u8)
                .flat_map(|pair| {
                    let (ping, pong) = (Channel::new(), Channel::new());
                    let (pings, pongs) = (ping.clone(), pong.clone());
                    let one = async move {
                        for i in 0..rounds {
                            ping.send(i);
                            assert_eq!(pongs.receive().await, i);
                        }
                    };
                    let other = async move {
                        for i in 0..rounds {
                            assert_eq!(pings.receive().await, i);
                            pong.send(i);
                        }
                    };
                    let level = LevelId::new(pair % LEVELS as u8).unwrap();
                    let other = match pair % 4 {
                        3 => runtime.at(level).spawn_fn(move || block_on(other)),
                        _ => runtime.spawn(other),
                    };
                    [runtime.at(level).spawn(one), other]
                })
                .collect();
            for player in players {
                player.get().unwrap();
            }
        }
    });
}

/// A ring in which everybody waits for a neighbour; one token goes round.
#[test]
fn a_ring_of_a_thousand_contexts_passes_its_token_on() {
    ends(|| {
        let runtime = levels(2);
        let size = 1000;
        let rounds = sized(100);
        let ring: Vec<_> = (0..size).map(|_| Channel::new()).collect();
        let members: Vec<_> = (0..size)
            .map(|i| {
                let (mine, next) = (ring[i].clone(), ring[(i + 1) % size].clone());
                let member = async move {
                    for _ in 0..rounds {
                        let token: usize = mine.receive().await;
                        next.send(token + 1);
                    }
                };
                match i % 50 {
                    0 => runtime.spawn_fn(move || block_on(member)),
                    _ => runtime
                        .at(LevelId::new((i as u64 % LEVELS) as u8).unwrap())
                        .spawn(member),
                }
            })
            .collect();
        ring[0].send(0usize);
        for member in members {
            member.get().unwrap();
        }
        let last = block_on(ring[0].receive());
        assert_eq!(last, size * rounds);
    });
}

/// Cancelling, dropping, boosting and waiting at the same time, from everywhere.
#[test]
fn handles_used_from_everywhere_at_once_tell_one_end_each() {
    ends(|| {
        let runtime = levels(3);
        let mut random = Random::new(11);
        for _ in 0..sized(5000) {
            let (n, level) = (random.below(16), random.below(LEVELS) as u8);
            let task = runtime.at(LevelId::new(level).unwrap()).spawn(async move {
                for _ in 0..n % 4 {
                    yield_now().await;
                }
                n
            });
            let shared = task.share();
            let waiters: Vec<_> = (0..3)
                .map(|i| {
                    let shared = shared.clone();
                    match i {
                        0 => runtime.spawn(shared),
                        _ => runtime.spawn_fn(move || shared.get()),
                    }
                })
                .collect();
            if n % 4 == 0 {
                shared.abort();
            }
            if n % 5 == 0 {
                runtime.at(LevelId::new(0).unwrap()).run(|| shared.boost());
            }
            let ends: Vec<_> = waiters
                .into_iter()
                .map(|waiter| waiter.get().unwrap())
                .collect();
            for end in ends {
                match end {
                    Ok(value) => assert_eq!(value, n),
                    Err(error) => assert_eq!(error.kind(), JoinErrorKind::Cancelled),
                }
            }
        }
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!((report.left, report.panicked), (0, 0));
        assert_eq!(report.finished + report.cancelled, report.spawned);
    });
}

/// A crowd of plain threads uses the global runtime and one of its own at once.
#[test]
fn plain_threads_come_and_go_in_crowds() {
    ends(|| {
        let runtime = levels(2);
        for _ in 0..sized(200) {
            std::thread::scope(|s| {
                for i in 0..8 {
                    let runtime = &runtime;
                    s.spawn(move || {
                        assert_eq!(join(|| i, || runtime.run(|| join(|| i, || i))), (i, (i, i)));
                        assert_eq!(spawn(async move { i }).get().unwrap(), i);
                        assert_eq!(runtime.block_on(spawn_fn(move || i)).unwrap(), i);
                    });
                }
            });
        }
    });
}
