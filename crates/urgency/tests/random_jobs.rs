//! Jobs at random: submitted by several threads and by jobs, cancelled, panicking, waiting for each other, with demands
//! that change, beside code that sleeps in the kernel, under each core policy in turn. None is lost, and everything is
//! returned: what they captured, memory, threads, descriptors.
//!
//! `URGENCY_RANDOM_JOBS` says how many, `URGENCY_RANDOM_JOBS_SEED` which. In a file of its own, because it counts what
//! the process has.

mod common;

use common::{Random, ends, fib, number, threads_and_descriptors};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    panic::resume_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    BuildError, Builder, JoinHandle, Runtime, Shutdown, block_on,
    jobs::{
        self, CoreSet, CoreSetBuilder, JobBuilder, JobControl, JobErrorKind, JobHandle, SubmitError,
    },
    join, levels,
    life::PanicPolicy,
    policy::cores::{
        AtBoundary, Boundary, Demand, Drep, Elastic, Feedback, Group, Shares, StaticEqual, Task,
        Unpartitioned,
    },
    time::{sleep, timeout},
};

levels! { Two: Urgent > Calm }

/// How many bytes are allocated.
static BYTES: AtomicIsize = AtomicIsize::new(0);

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all calls go on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What each job captures: counted while it is there.
struct Captured(Arc<AtomicUsize>);

impl Captured {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, SeqCst);
        Captured(count.clone())
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

struct World {
    one_level: JobBuilder,
    two_levels: JobBuilder,
    captured: Arc<AtomicUsize>,
    /// Handles that any thread or job may take, to wait for or to drop.
    handles: Mutex<Vec<JobHandle<u64>>>,
    /// Tasks of jobs, for which other jobs wait.
    parts: Mutex<Vec<JoinHandle<u64>>>,
    /// Some of the jobs, to change their demand or to cancel them at any time.
    controls: Mutex<Vec<JobControl>>,
    /// What jobs lock, and sleep under, without a word to the scheduler.
    foreign: Mutex<u64>,
    outcomes: AtomicU64,
    full: AtomicU64,
    refused: AtomicU64,
}

impl World {
    fn on(cores: &CoreSet) -> Self {
        let silent = || PanicPolicy::call(|_| ());
        let job = |levels: fn(Builder) -> Builder| {
            let job = cores.job();
            job.runtime(|builder| levels(builder).on_panic(silent()))
        };
        World {
            one_level: job(|builder| builder),
            two_levels: job(|builder| builder.levels::<Two>()),
            captured: Arc::default(),
            handles: Mutex::default(),
            parts: Mutex::default(),
            controls: Mutex::default(),
            foreign: Mutex::default(),
            outcomes: AtomicU64::new(0),
            full: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn some_handle(&self) -> Option<JobHandle<u64>> {
        self.handles.lock().unwrap().pop()
    }

    fn note(&self, outcome: Result<u64, JobErrorKind>) {
        use JobErrorKind::{Cancelled, Panicked, Refused, ShutDown, WaitsForItself};
        match outcome {
            Ok(_) | Err(Cancelled | Panicked | ShutDown | WaitsForItself) => {}
            Err(Refused(why)) if is_about_cores(&why) => {}
            outcome => panic!("{outcome:?}"),
        }
        self.outcomes.fetch_add(1, SeqCst);
    }
}

/// What a job asks for that others may have been promised.
fn demand(random: &mut Random) -> Demand {
    let max_cores = 1 + random.below(4) as usize;
    let task = Task {
        longest: 40_000_000,
        ..Task::new(1_000_000, 100_000, 4_000_000)
    };
    Demand {
        weight: 1 + random.below(5) as u32,
        group: (random.below(3) == 0).then(|| Group::new(random.below(4))),
        priority: random.below(3) as u8,
        min_cores: usize::from(random.below(16) == 0),
        max_cores,
        task: (random.below(8) == 0).then_some(task),
        ..Demand::default()
    }
}

/// Whether it is a refusal that a demand at random may meet.
fn is_about_cores(why: &BuildError) -> bool {
    matches!(why, BuildError::Demand(_))
}

/// Changes the demand of some job, or cancels it: it may run, be queued, or be over.
fn disturb(world: &World, random: &mut Random) {
    let control = {
        let mut controls = world.controls.lock().unwrap();
        let some = random.below(controls.len().max(1) as u64) as usize;
        (some < controls.len()).then(|| controls.swap_remove(some))
    };
    let Some(control) = control else { return };
    match random.below(4) {
        0 => control.cancel(),
        1 => drop(control.progress()),
        _ => match control.set_demand(demand(random)) {
            Ok(()) => {}
            Err(SubmitError::Build(why)) if is_about_cores(&why) => {}
            Err(error) => panic!("{error}"),
        },
    }
}

/// Submits a job at random; `false` if the queue is full.
fn submit(cores: &CoreSet, world: &Arc<World>, random: &mut Random) -> bool {
    let captured = Captured::new(&world.captured);
    let job = match random.below(4) {
        0 => world.two_levels.clone().level(Urgent),
        _ => world.one_level.clone(),
    };
    let job = job.demand(demand(random));
    let (inner, others) = (cores.clone(), world.clone());
    let seed = random.below(u64::MAX);
    let submitted = match random.below(14) {
        0 => job.spawn_fn(move || {
            let _captured = captured;
            fib(5 + seed % 10)
        }),
        1 => job.spawn_fn(move || -> u64 {
            let _captured = captured;
            resume_unwind(Box::new("at random"))
        }),
        2 => job.spawn(async move {
            let _captured = captured;
            sleep(Duration::from_micros(seed % 500)).await;
            seed
        }),
        3 => job.spawn(async move {
            let _captured = captured;
            for _ in 0..seed % 4 {
                urgency::spawn(std::future::pending::<()>()).detach();
                urgency::spawn_fn(|| fib(8)).detach();
            }
            seed
        }),
        4 => job.spawn_fn(move || {
            let _captured = captured;
            // For another job, by blocking.
            match others.some_handle() {
                Some(handle) => others.note(handle.get().map_err(|error| error.kind())),
                None => jobs::report(1, 1),
            }
            seed
        }),
        5 => job.spawn(async move {
            let _captured = captured;
            if let Some(handle) = others.some_handle() {
                others.note(handle.await.map_err(|error| error.kind()));
            }
            seed
        }),
        6 => job.spawn_fn(move || {
            let _captured = captured;
            // Waits for a job of its own.
            let mut random = Random::new(seed);
            let job = inner.job().max_cpus(1 + random.below(2) as usize);
            match job.spawn_fn(move || fib(10)) {
                Ok(job) => job.get().unwrap_or(0),
                Err(SubmitError::Full { .. }) => 0,
                Err(error) => panic!("{error}"),
            }
        }),
        7 => job.spawn_fn(move || {
            let _captured = captured;
            // A lock of the system's, held in the kernel.
            let mut held = others
                .foreign
                .lock()
                .unwrap_or_else(|held| held.into_inner());
            thread::sleep(Duration::from_micros(seed % 200));
            *held += 1;
            *held
        }),
        8 => job.spawn(async move {
            let _captured = captured;
            // Its own end, while tasks of its own are on their way.
            urgency::spawn_fn(|| fib(10)).detach();
            urgency::spawn(sleep(Duration::from_millis(50))).detach();
            match seed % 4 {
                0 => drop(Runtime::current().shutdown_within(Shutdown::Cancel, Duration::ZERO)),
                _ => urgency::blocking(|| thread::sleep(Duration::from_micros(seed % 300))),
            }
            seed
        }),
        9 => job.spawn_fn(move || {
            let _captured = captured;
            let mut random = Random::new(seed);
            disturb(&others, &mut random);
            urgency::scope(|scope| {
                for part in 0..seed % 6 {
                    scope.spawn(move || assert_ne!(fib(6 + part), 0));
                }
            });
            seed
        }),
        10 => job.spawn(async move {
            let _captured = captured;
            for part in 0..1 + seed % 3 {
                let part = urgency::spawn(async move {
                    sleep(Duration::from_micros(seed % 400)).await;
                    fib(6 + part)
                });
                others.parts.lock().unwrap().push(part);
            }
            sleep(Duration::from_micros(seed % 500)).await;
            seed
        }),
        11 => job.spawn_fn(move || {
            let _captured = captured;
            let part = others.parts.lock().unwrap().pop();
            // For a part of another job, by blocking, in a fork, or for a while only.
            if let Some(part) = part {
                match seed % 3 {
                    0 => drop(part.get()),
                    1 => drop(join(|| fib(6), || part.get())),
                    _ => drop(block_on(timeout(Duration::from_micros(seed % 300), part))),
                }
            }
            seed
        }),
        _ => job.spawn_fn(move || {
            let _captured = captured;
            // Until it is cancelled, or for a while.
            let end = Instant::now() + Duration::from_micros(seed % 2000);
            while !jobs::is_cancelled() && Instant::now() < end {
                std::hint::spin_loop();
            }
            seed
        }),
    };
    let handle = match submitted {
        Ok(handle) => handle,
        Err(SubmitError::Full { .. }) => {
            world.full.fetch_add(1, SeqCst);
            return false;
        }
        Err(SubmitError::Build(why)) if is_about_cores(&why) => {
            world.refused.fetch_add(1, SeqCst);
            return true;
        }
        Err(error) => panic!("{error}"),
    };
    if random.below(4) == 0 {
        world.controls.lock().unwrap().push(handle.control());
        disturb(world, random);
    }
    match random.below(6) {
        0 => handle.cancel(),
        1 => return true,
        _ => {}
    }
    match random.below(3) {
        0 => world.note(handle.get().map_err(|error| error.kind())),
        1 => world.handles.lock().unwrap().push(handle),
        _ => handle.detach(),
    }
    true
}

/// The `which`-th core policy.
fn policy(cores: CoreSetBuilder, which: u64, seed: u64) -> CoreSetBuilder {
    match which % 8 {
        0 => cores.core_policy(Drep::new(seed)),
        1 => cores.core_policy(Shares::default()),
        2 => cores.core_policy(StaticEqual::new(3).expect("parts")),
        3 => cores.core_policy(Elastic::default()),
        4 => cores.core_policy(Feedback::default()),
        5 => cores.core_policy(AtBoundary::new(Drep::new(seed), Boundary::Steal)),
        6 => cores.core_policy(AtBoundary::new(Elastic::default(), Boundary::Job)),
        _ => cores.core_policy(Unpartitioned),
    }
}

fn run(count: u64, seed: u64, workers: usize, which: u64) {
    let cores = CoreSet::builder()
        .cores(workers)
        .most_running(8)
        .most_queued(64);
    let cores = policy(cores, which, seed).build().unwrap();
    let world = Arc::new(World::on(&cores));
    thread::scope(|threads| {
        for part in 1..=4 {
            let (cores, world) = (&cores, &world);
            threads.spawn(move || {
                let mut random = Random::new(seed.wrapping_add(part));
                for _ in 0..count / 4 {
                    while !submit(cores, world, &mut random) {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    while let Some(handle) = world.some_handle() {
        world.note(handle.get().map_err(|error| error.kind()));
    }
    world.controls.lock().unwrap().clear();
    world.parts.lock().unwrap().clear();
    cores.drain();
    let stats = cores.stats();
    assert_eq!((stats.running, stats.queued), (0, 0), "{stats:?}");
    assert_eq!(stats.submitted, stats.over, "{stats:?}");
    let refused = world.refused.load(SeqCst);
    assert!(stats.submitted + refused >= count / 4 * 4, "{stats:?}");
    assert_eq!(world.captured.load(SeqCst), 0, "captures are left");
    assert_ne!(world.outcomes.load(SeqCst), 0);
}

#[test]
fn of_jobs_at_random_none_is_lost_and_everything_is_returned() {
    let count = number("URGENCY_RANDOM_JOBS", 20_000);
    let seed = number("URGENCY_RANDOM_JOBS_SEED", 0x5eed);
    let few = count.min(400);
    ends(move || run(few, seed ^ 1, 4, 0));
    ends(move || run(few, seed ^ 2, 64, 0));
    let (before, bytes) = (threads_and_descriptors(), BYTES.load(SeqCst));
    // In parts, each under the next policy: a part that hangs is told from a hundred thousand that take long.
    let most = (count / 8).clamp(200, 2_500);
    let (mut left, mut part) = (count, 0);
    while left > 0 {
        let jobs = left.min(most);
        let seed = seed ^ (left << 8);
        ends(move || run(jobs, seed, 4, part));
        // Many more workers than processors.
        ends(move || run(jobs / 10, seed, 64, part));
        left -= jobs;
        part += 1;
    }
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let (now, more) = (threads_and_descriptors(), BYTES.load(SeqCst) - bytes);
        if now.0 <= before.0 && now.1 <= before.1 && more < 100_000 {
            return;
        }
        assert!(
            Instant::now() < limit,
            "seed {seed}: threads and descriptors {before:?} -> {now:?}, {more} more bytes"
        );
        thread::sleep(Duration::from_millis(10));
    }
}
