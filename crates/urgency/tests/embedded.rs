//! Several runtimes in one program, as a newcomer embeds them from the public documentation: the global one, one for
//! the current thread, two pairs that share workers, and plain threads in `block_on`. Handles, wakers, locks, timers
//! and sockets move between them, and some runtimes end while others use what they made. Each wait ends, and each
//! future is dropped once. In a file of its own, because it counts what the process has.

mod common;

use common::{Random, ends, number, quiet, threads_and_descriptors, until};
use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};
use urgency::{
    JoinError, JoinErrorKind, JoinHandle, Runtime, Shutdown, block_on, join,
    net::{TcpListener, TcpStream, UnixStream},
    runtime::{Builder, Handle},
    spawn,
    sync::{Mutex, Semaphore, broadcast, watch},
    task::{JoinSet, LocalSet, spawn_local, yield_now},
    time::{Sleep, sleep, timeout},
};

urgency::levels! { Three: Hot > Warm > Cold }

const RUNTIMES: u64 = 6;
const TASKS: u64 = 24;

/// What all runtimes and threads share.
struct World {
    handles: Vec<Handle>,
    begun: AtomicU64,
    dropped: AtomicU64,
    lock: Mutex<u64>,
    locked: AtomicU64,
    permits: Semaphore,
    news: broadcast::Sender<u64>,
    state: watch::Sender<u64>,
    pile: StdMutex<Vec<Waker>>,
    /// How many wakers that spawn have done so.
    spawned: AtomicU64,
}

impl World {
    fn handle(&self, random: &mut Random) -> &Handle {
        &self.handles[random.below(RUNTIMES) as usize]
    }

    fn wake_pile(&self) {
        let pile = std::mem::take(&mut *self.pile.lock().unwrap());
        for (number, waker) in pile.into_iter().enumerate() {
            match number % 3 {
                0 => waker.wake(),
                1 => waker.wake_by_ref(),
                _ => {
                    let copy = waker.clone();
                    drop(waker);
                    copy.wake();
                }
            }
        }
    }
}

/// A part of a future, which counts that it is dropped.
struct Counted(Arc<World>);

impl Counted {
    fn new(world: &Arc<World>) -> Self {
        world.begun.fetch_add(1, SeqCst);
        Counted(world.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
    }
}

/// Waits for a wake-up of the pile.
struct InPile<'a> {
    world: &'a World,
    polls: u32,
}

impl Future for InPile<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.polls += 1;
        if self.polls == 3 {
            return Poll::Ready(());
        }
        self.world.pile.lock().unwrap().push(cx.waker().clone());
        Poll::Pending
    }
}

/// A waker that spawns, in whichever runtime it is called.
struct Spawns(Arc<World>);

impl Wake for Spawns {
    fn wake(self: Arc<Self>) {
        let counted = Counted::new(&self.0);
        spawn(async move { drop(counted) }).detach();
        self.0.spawned.fetch_add(1, SeqCst);
    }
}

/// The executor of another library.
fn park_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// A task has its result, or was ended by its handle or with its runtime.
fn check<T>(result: Result<T, JoinError>) {
    if let Err(error) = result {
        let kind = error.kind();
        let ended = [JoinErrorKind::Cancelled, JoinErrorKind::ShutDown].contains(&kind);
        assert!(ended, "{error}");
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Some steps by lot, each of which may wait for what another runtime does.
fn work(random: &mut Random, world: &Arc<World>, depth: u32) -> Work {
    let counted = Counted::new(world);
    let mut random = Random::new(random.below(u64::MAX));
    Box::pin(async move {
        let world = counted.0.clone();
        for _ in 0..random.below(6) {
            step(&mut random, &world, depth).await;
        }
        drop(counted);
    })
}

async fn step(random: &mut Random, world: &Arc<World>, depth: u32) {
    let patience = Duration::from_millis(1 + random.below(3));
    match random.below(11) {
        0 => sleep(Duration::from_micros(random.below(1500))).await,
        1 => drop(timeout(patience, InPile { world, polls: 0 }).await),
        2 => {
            let mut locked = world.lock.lock().await;
            yield_now().await;
            *locked += 1;
            world.locked.fetch_add(1, SeqCst);
        }
        3 => {
            let _permit = world.permits.acquire().await.unwrap();
            sleep(Duration::from_micros(100)).await;
        }
        4 if depth > 0 => {
            let inner = work(random, world, depth - 1);
            let task = world.handle(random).spawn(inner);
            match random.below(4) {
                0 => drop(task),
                1 => task.abort(),
                _ => check(task.await),
            }
        }
        5 if depth > 0 => {
            let inner = work(random, world, depth - 1);
            let task = world.handle(random).spawn_fn(move || block_on(inner));
            check(task.await);
        }
        6 => assert_eq!(join(|| 6, || 7), (6, 7)),
        7 => drop(timeout(patience, world.news.subscribe().recv()).await),
        8 => {
            let mut state = world.state.subscribe();
            world.state.send_modify(|number| *number += 1);
            drop(timeout(patience, state.changed()).await);
        }
        9 => echo(random, world).await,
        10 => {
            let mut tasks = JoinSet::new();
            for number in 0..4 {
                let sleeps = sleep(Duration::from_micros(50 * number));
                tasks.spawn_on(sleeps, world.handle(random));
            }
            let mut ended = 0;
            while let Some(result) = tasks.join_next().await {
                check(result);
                ended += 1;
            }
            assert_eq!(ended, 4);
        }
        _ => {
            world.wake_pile();
            let _ = world.news.send(1);
            yield_now().await;
        }
    }
}

/// Two runtimes talk by a socket: four bytes come back, or one of them has ended.
async fn echo(random: &mut Random, world: &Arc<World>) {
    let (here, there) = UnixStream::pair().unwrap();
    let task = world.handle(random).spawn(async move {
        let mut heard = [0; 4];
        there.read_exact(&mut heard).await?;
        there.write_all(&heard).await
    });
    let mut answer = [0; 4];
    if here.write_all(b"ping").await.is_ok() && here.read_exact(&mut answer).await.is_ok() {
        assert!(&answer == b"ping" || answer == [0; 4], "{answer:?}");
    }
    check(task.await);
}

/// A timer and a listener that a runtime polls first. Others wait for them, also when that runtime has ended.
fn moved(random: &mut Random, world: &Arc<World>) -> Option<Pin<Box<Sleep>>> {
    let made = world.handle(random).spawn(async {
        let mut timer = Box::pin(sleep(Duration::from_millis(3)));
        let _ = timeout(Duration::ZERO, &mut timer).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _ = timeout(Duration::ZERO, listener.accept()).await;
        (timer, listener)
    });
    let (timer, listener) = made.get().ok()?;
    let address = listener.local_addr().unwrap();
    let other = world.handle(random);
    let serves = other.spawn(async move { listener.accept().await?.0.write_all(b"x").await });
    let asks = other.spawn(async move {
        let stream = TcpStream::connect(address).await?;
        stream.read(&mut [0; 1]).await.map(|_| ())
    });
    let both: [Result<io::Result<()>, JoinError>; 2] = [asks.get(), serves.get()];
    both.into_iter().for_each(check);
    Some(timer)
}

/// Waits for tasks of all runtimes, by one of four ways to wait on a plain thread.
fn plain_thread(way: u64, seed: u64, world: Arc<World>) {
    let mut random = Random::new(seed);
    let waits = async {
        for _ in 0..5 {
            let inner = work(&mut random, &world, 2);
            let task = world.handle(&mut random).spawn(inner);
            if random.below(5) == 0 {
                task.abort();
            }
            check(task.await);
        }
    };
    match way {
        0 => block_on(LocalSet::new().run_until(async {
            let not_send = std::rc::Rc::new(5);
            let copy = not_send.clone();
            let local = spawn_local(async move { *copy });
            waits.await;
            assert_eq!(local.await.unwrap(), *not_send);
        })),
        1 => {
            let _inside = world.handles[0].enter();
            park_on(waits);
        }
        2 => park_on(waits),
        _ => block_on(waits),
    }
}

/// Ends a runtime in one of the ways that there are.
fn end(way: u64, runtime: Runtime, elsewhere: &Handle) {
    let soon = Duration::from_millis(5);
    match way {
        0 => drop(runtime),
        1 => assert_eq!(runtime.shutdown(Shutdown::Cancel).left, 0),
        2 => drop(thread::spawn(move || {
            runtime.shutdown_within(Shutdown::Drain, soon)
        })),
        3 => elsewhere.spawn_fn(move || drop(runtime)).detach(),
        _ => {
            let own = runtime.clone();
            let ends = async move { own.shutdown_within(Shutdown::Cancel, soon) };
            runtime.spawn(ends).detach();
        }
    }
}

/// The runtimes, of which two pairs share their workers.
fn runtimes(workers: usize) -> Vec<Runtime> {
    let build = |builder: Builder| builder.build().unwrap();
    let first = build(Runtime::builder().workers(workers).levels::<Three>());
    let beside = build(Runtime::builder().share_workers_with(&first));
    let current = build(Builder::new_current_thread());
    let single = build(Runtime::builder().workers(1));
    let leveled = Runtime::builder().share_workers_with(&single);
    vec![
        first,
        beside,
        current,
        single,
        build(leveled.levels::<Three>()),
    ]
}

fn round(workers: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut all = runtimes(workers);
    let global = [Runtime::global().handle().clone()];
    let world = Arc::new(World {
        handles: all
            .iter()
            .map(|it| it.handle().clone())
            .chain(global)
            .collect(),
        begun: AtomicU64::new(0),
        dropped: AtomicU64::new(0),
        lock: Mutex::new(0),
        locked: AtomicU64::new(0),
        permits: Semaphore::new(2),
        news: broadcast::channel(4).0,
        state: watch::Sender::new(0),
        pile: StdMutex::default(),
        spawned: AtomicU64::new(0),
    });
    let threads: Vec<_> = (0..4)
        .map(|way| {
            let (seed, world) = (random.below(u64::MAX), world.clone());
            thread::spawn(move || plain_thread(way, seed, world))
        })
        .collect();
    let mut tasks: Vec<JoinHandle<()>> = Vec::new();
    let (mut timers, mut spawning) = (Vec::new(), Vec::new());
    for number in 0..TASKS {
        let inner = work(&mut random, &world, 3);
        tasks.push(world.handle(&mut random).spawn(inner));
        if number % 8 == 0 {
            timers.extend(moved(&mut random, &world));
        }
        // A timer of a runtime that has not ended.
        let alive = &all[random.below(all.len() as u64) as usize];
        let inside = alive.enter();
        let mut timer = Box::pin(sleep(Duration::from_millis(1)));
        let waker = Waker::from(Arc::new(Spawns(world.clone())));
        if timer
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            spawning.push(timer);
        }
        drop(inside);
        if random.below(8) == 0 && all.len() > 1 {
            let one = random.below(all.len() as u64) as usize;
            end(random.below(5), all.swap_remove(one), &world.handles[5]);
        }
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    timers.into_iter().for_each(block_on);
    tasks.into_iter().for_each(|task| check(task.get()));
    until(|| world.spawned.load(SeqCst) >= spawning.len() as u64);
    for runtime in all {
        runtime.shutdown(Shutdown::Cancel);
    }
    until(|| {
        world.wake_pile();
        world.begun.load(SeqCst) == world.dropped.load(SeqCst)
    });
    assert_eq!(*world.lock.blocking_lock(), world.locked.load(SeqCst));
    until(|| world.permits.available_permits() == 2);
    drop(spawning);
    until(|| Arc::strong_count(&world) == 1);
}

#[test]
#[cfg_attr(miri, ignore = "many threads and sockets")]
fn what_moves_between_runtimes_of_which_some_end_is_neither_lost_nor_kept() {
    quiet();
    let first = number("URGENCY_TEST_SEED", 1);
    ends(move || {
        Runtime::global()
            .spawn(sleep(Duration::ZERO))
            .get()
            .unwrap();
        let before = threads_and_descriptors();
        for seed in 64 * first..64 * first + 24 {
            round([2, 1, 8][seed as usize % 3], seed);
            until(|| {
                // The global runtime may keep some threads.
                let after = threads_and_descriptors();
                after.0 <= before.0 + 8 && after.1 <= before.1
            });
        }
    });
}
