//! Random async programs: sockets, timers, channels, locks, forks and blocking calls of three levels, under `select!`,
//! timeouts and aborts that drop each of them in the middle, under any schedule and any order. A program ends by
//! itself, or its runtime is shut down at some instant.
//!
//! What arrives is what was sent, a lock has one holder, no future is left, the shutdown's report accounts for each
//! task, and the threads and descriptors are returned. `URGENCY_RANDOM_ASYNC` says how many programs,
//! `URGENCY_RANDOM_ASYNC_SEED` which. In a file of its own, because it counts what the process has.

mod common;

use common::{Random, ends, fib, number, quiet, threads_and_descriptors};
use std::{
    future::{Future, pending},
    net::{Ipv4Addr, Shutdown as Ways, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Builder, JoinErrorKind, JoinHandle, LevelId, Runtime, Shutdown, at, join,
    life::{CancellationToken, JoinSet, PanicPolicy},
    net::{TcpListener, TcpStream, UnixStream},
    policy::{Adaptive, Criterion, FixedShares, Kind, Otherwise, Parameters, Rounds, Schedule},
    select, spawn,
    sync::{Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch},
    task::spawn_blocking,
    time::{sleep, timeout},
    yield_now,
};

urgency::levels! { App: Now > Soon > Later }

/// The permits of the world's semaphore.
const PERMITS: usize = 3;

struct World {
    levels: [LevelId; 3],
    /// Futures that have begun and are not gone.
    alive: AtomicIsize,
    /// Programs' parts that have ended.
    ended: AtomicU64,
    echo: SocketAddr,
    lock: Mutex<u64>,
    holders: AtomicUsize,
    permits: Arc<Semaphore>,
    taken: AtomicUsize,
    notify: Notify,
    token: CancellationToken,
}

/// Counts a future while it is there.
struct Alive(Arc<World>);

impl Alive {
    fn new(world: &Arc<World>) -> Self {
        world.alive.fetch_add(1, SeqCst);
        Alive(world.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, SeqCst);
    }
}

/// Adds to a number for as long as it is there.
struct Among<'a>(&'a AtomicUsize, usize);

impl<'a> Among<'a> {
    fn new(of: &'a AtomicUsize, count: usize, most: usize) -> Self {
        let before = of.fetch_add(count, SeqCst);
        assert!(before + count <= most, "{before} and {count} of {most}");
        Among(of, count)
    }
}

impl Drop for Among<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, SeqCst);
    }
}

type Part = Pin<Box<dyn Future<Output = u64> + Send>>;

/// A part of a program: some steps one after the other. `level` is its place in the world's levels.
fn part(world: &Arc<World>, random: &mut Random, level: usize, depth: u32) -> Part {
    let (world, mut random) = (world.clone(), Random::new(random.below(u64::MAX)));
    let alive = Alive::new(&world);
    Box::pin(async move {
        let _alive = alive;
        let mut sum = 0;
        for _ in 0..=random.below(3) {
            sum += step(&world, &mut random, level, depth).await;
        }
        world.ended.fetch_add(1, SeqCst);
        sum
    })
}

fn some_time(random: &mut Random) -> Duration {
    Duration::from_micros(random.below(400))
}

/// A task of this level or of a more urgent one.
fn task(world: &Arc<World>, random: &mut Random, level: usize, depth: u32) -> JoinHandle<u64> {
    let level = random.below(level as u64 + 1) as usize;
    let part = part(world, random, level, depth - 1);
    at(world.levels[level]).spawn(part)
}

/// What a wait for a task may give.
fn heard(result: Result<u64, urgency::JoinError>) -> u64 {
    match result {
        Ok(sum) => sum,
        Err(error) => match error.kind() {
            JoinErrorKind::Cancelled | JoinErrorKind::ShutDown => 0,
            kind => panic!("{kind:?}"),
        },
    }
}

async fn step(world: &Arc<World>, random: &mut Random, level: usize, depth: u32) -> u64 {
    let kinds = if depth == 0 { 12 } else { 18 };
    match random.below(kinds) {
        0 => sleep(some_time(random)).await,
        1 => yield_now().await,
        2 => return tcp_echo(world.echo, random).await,
        3 => return unix_pipe(random).await,
        4 => return channel(random).await,
        5 => {
            let (give, given) = oneshot::channel();
            let (time, drops) = (some_time(random), random.below(4) == 0);
            spawn(async move {
                sleep(time).await;
                if !drops {
                    let _ = give.send(7);
                }
            })
            .detach();
            return given.await.unwrap_or(0);
        }
        6 => {
            let mut held = world.lock.lock().await;
            let _holder = Among::new(&world.holders, 1, 1);
            *held += 1;
            sleep(some_time(random) / 8).await;
            return *held & 1;
        }
        7 => {
            let count = 1 + random.below(PERMITS as u64);
            let permits = world.permits.clone();
            let permits = permits.acquire_many_owned(count as u32).await;
            let _permits = permits.expect("never closed");
            let _taken = Among::new(&world.taken, count as usize, PERMITS);
            sleep(some_time(random) / 8).await;
        }
        8 => {
            world.notify.notify_one();
            let limit = some_time(random);
            let _ = timeout(limit, world.notify.notified()).await;
        }
        9 => {
            let n = 5 + random.below(8);
            let (a, b) = join(|| fib(n), || fib(n + 1));
            return a + b;
        }
        10 => {
            let time = some_time(random) / 2;
            let slept = spawn_blocking(move || thread::sleep(time)).await;
            if let Err(error) = slept {
                assert!(matches!(
                    error.kind(),
                    JoinErrorKind::Cancelled | JoinErrorKind::ShutDown
                ));
            }
        }
        11 => return told(random).await,
        12 => {
            let (limit, inner) = (some_time(random), part(world, random, level, depth - 1));
            return timeout(limit, inner).await.unwrap_or(0);
        }
        13 => {
            let one = part(world, random, level, depth - 1);
            let other = part(world, random, level, depth - 1);
            return select! {
                sum = one => sum,
                sum = other => sum,
                () = world.token.cancelled() => 0,
            };
        }
        14 => return heard(task(world, random, level, depth).await),
        15 => {
            let handle = task(world, random, level, depth);
            sleep(some_time(random) / 4).await;
            handle.abort();
            if random.below(2) == 0 {
                return heard(handle.await);
            }
        }
        16 => {
            let mut set = JoinSet::new();
            for _ in 0..1 + random.below(4) {
                set.spawn(part(world, random, level, depth - 1));
            }
            for _ in 0..random.below(4) {
                if let Some(result) = set.join_next().await {
                    heard(result);
                }
            }
        }
        _ => {
            let panics = at(world.levels[level]).spawn(async { panic!("on purpose") });
            let kind = panics
                .await
                .map_or_else(|error| error.kind(), |()| unreachable!());
            use JoinErrorKind::{Cancelled, Panicked, ShutDown};
            assert!(matches!(kind, Panicked | Cancelled | ShutDown), "{kind:?}");
        }
    }
    1
}

/// Sends bytes to the world's server, and reads them back.
async fn tcp_echo(to: SocketAddr, random: &mut Random) -> u64 {
    let length = 1 + random.below(5_000) as usize;
    let stream = match TcpStream::connect(to).await {
        Ok(stream) => stream,
        // The server is gone with its runtime.
        Err(_) => return 0,
    };
    let sent: Vec<u8> = (0..length).map(|n| (n ^ length) as u8).collect();
    let mut back = vec![0; length];
    let wrote = async {
        stream.write_all(&sent).await?;
        stream.shutdown_direction(Ways::Write)
    };
    let (wrote, read) = urgency::join!(wrote, stream.read_exact(&mut back));
    if wrote.is_ok() && read.is_ok() {
        assert_eq!(sent, back);
    }
    length as u64
}

async fn serve_echo(stream: TcpStream, alive: Alive) {
    let _alive = alive;
    let mut buffer = [0; 700];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// More than a pipe holds, through a pair of sockets.
async fn unix_pipe(random: &mut Random) -> u64 {
    let length = 1 + random.below(400_000) as usize;
    let (from, to) = UnixStream::pair().unwrap();
    let writes = spawn(async move {
        let bytes = vec![3; length];
        to.write_all(&bytes).await
    });
    let mut sum = 0;
    let mut buffer = vec![0; 60_000];
    loop {
        match from.read(&mut buffer).await.unwrap() {
            0 => break,
            count => {
                sum += buffer[..count]
                    .iter()
                    .map(|&b| usize::from(b))
                    .sum::<usize>()
            }
        }
    }
    match writes.await {
        Ok(wrote) => assert_eq!((wrote.ok(), sum), (Some(()), 3 * length)),
        Err(error) => assert_ne!(error.kind(), JoinErrorKind::Panicked),
    }
    sum as u64
}

/// Numbers through a channel with few places; the receiver may go first.
async fn channel(random: &mut Random) -> u64 {
    let (send, mut receive) = mpsc::channel(1 + random.below(3) as usize);
    let (senders, each) = (1 + random.below(3), random.below(20));
    let mut sent = Vec::new();
    for _ in 0..senders {
        let send = send.clone();
        sent.push(spawn(async move {
            let mut count = 0;
            while count < each && send.send(1).await.is_ok() {
                count += 1;
            }
            count
        }));
    }
    drop(send);
    let most = if random.below(3) == 0 {
        each / 2
    } else {
        u64::MAX
    };
    let mut received = 0;
    while received < most && receive.recv().await.is_some() {
        received += 1;
    }
    drop(receive);
    let mut all = 0;
    for handle in sent {
        match handle.await {
            Ok(count) => all += count,
            Err(error) => {
                assert_ne!(error.kind(), JoinErrorKind::Panicked);
                return received;
            }
        }
    }
    assert!(received <= all && all <= senders * each);
    assert!(most != u64::MAX || received == senders * each);
    received
}

/// Values by `watch` and `broadcast`.
async fn told(random: &mut Random) -> u64 {
    let (tell, mut seen) = watch::channel(0);
    let (send, mut receive) = broadcast::channel(4);
    let (last, time) = (1 + random.below(6), some_time(random) / 8);
    spawn(async move {
        for n in 1..=last {
            let _ = tell.send(n);
            let _ = send.send(n);
            sleep(time).await;
        }
    })
    .detach();
    let mut before = 0;
    while seen.changed().await.is_ok() {
        let now = *seen.borrow_and_update();
        assert!(before < now && now <= last, "{before}, {now}, {last}");
        before = now;
    }
    let mut heard = 0;
    loop {
        match receive.recv().await {
            Ok(n) => heard = n,
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => break,
        }
    }
    assert!(heard <= last);
    heard
}

/// Some schedule, some order, and now and then one of the limits and options.
fn shape(builder: Builder, random: &mut Random, workers: usize) -> Builder {
    let even = || Criterion::from_shares(&[0.4, 0.3, 0.3]).unwrap();
    let schedule: Schedule = match random.below(6) {
        0 => even().into(),
        1 => Rounds::new(even()).with_length(1_000_000).into(),
        2 => Adaptive::new(3, Parameters::default()).unwrap().into(),
        3 => FixedShares::new(&even(), Otherwise::Donate).into(),
        _ => Schedule::Prompt,
    };
    let kinds = Kind::NAMED.len() as u64;
    let builder = match random.below(2 * kinds) {
        kind if kind < kinds => builder.pool(Kind::NAMED[kind as usize].1),
        _ => builder,
    };
    let builder = builder.schedule(schedule);
    match random.below(10) {
        0 => builder.thread_limit(workers + 2),
        1 => builder.lower_threads(false),
        2 if workers == 1 => builder.pin_workers(),
        3 => builder.record(500),
        4 => builder.real_time_polling(true),
        _ => builder,
    }
}

fn run(seed: u64, workers: usize) {
    let mut random = Random::new(seed);
    let builder = Runtime::builder()
        .workers(workers)
        .levels::<App>()
        .on_panic(PanicPolicy::call(|_| ()));
    let runtime = shape(builder, &mut random, workers).build().unwrap();
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.unwrap();
    let world = Arc::new(World {
        levels: [Now.id(), Soon.id(), Later.id()],
        alive: AtomicIsize::new(0),
        ended: AtomicU64::new(0),
        echo: listener.local_addr().unwrap(),
        lock: Mutex::new(0),
        holders: AtomicUsize::new(0),
        permits: Arc::new(Semaphore::new(PERMITS)),
        taken: AtomicUsize::new(0),
        notify: Notify::new(),
        token: CancellationToken::new(),
    });
    let server = world.clone();
    let serves = async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                at(Soon)
                    .spawn(serve_echo(stream, Alive::new(&server)))
                    .detach();
            }
        }
    };
    let serving = runtime.at(Now).spawn(serves);
    let parts: Vec<_> = (0..1 + random.below(12))
        .map(|_| {
            let level = random.below(3) as usize;
            let part = part(&world, &mut random, level, 3);
            runtime.at(world.levels[level]).spawn(part)
        })
        .collect();
    let never = runtime.at(Later).spawn(pending::<()>());
    let report = match random.below(3) {
        0 => {
            for part in parts {
                match part.get() {
                    Ok(_) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            assert_ne!(world.ended.load(SeqCst), 0);
            serving.abort();
            never.abort();
            runtime.shutdown(Shutdown::Drain)
        }
        how => {
            thread::sleep(Duration::from_micros(random.below(3_000)));
            if how == 1 {
                world.token.cancel();
            }
            let report = runtime.shutdown(Shutdown::Cancel);
            for part in parts {
                part.get().map_or_else(|error| _ = heard(Err(error)), drop);
            }
            report
        }
    };
    assert_eq!(report.left, 0, "{report:?}");
    assert_eq!(
        report.spawned,
        report.finished + report.panicked + report.cancelled,
        "{report:?}"
    );
    assert_eq!(world.alive.load(SeqCst), 0, "futures are left: {report:?}");
    assert_eq!(
        (world.holders.load(SeqCst), world.taken.load(SeqCst)),
        (0, 0)
    );
    assert_eq!(world.permits.available_permits(), PERMITS);
    assert!(world.lock.try_lock().is_ok());
}

#[test]
fn async_programs_at_random_end_and_leave_nothing_wherever_they_are_cut_off() {
    quiet();
    let count = number("URGENCY_RANDOM_ASYNC", 300);
    let first = number("URGENCY_RANDOM_ASYNC_SEED", 1);
    ends(move || run(first, 2));
    let before = threads_and_descriptors();
    for seed in first..first + count {
        ends(move || run(seed, [1, 2, 8][seed as usize % 3]));
    }
    let limit = Instant::now() + Duration::from_secs(60);
    while threads_and_descriptors() > before {
        let now = threads_and_descriptors();
        assert!(
            Instant::now() < limit,
            "threads and descriptors {before:?} -> {now:?}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}
