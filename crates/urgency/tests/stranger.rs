//! A program as a newcomer writes it from the public documentation alone: three levels on the processors that there
//! are, or one; leaves of 40 µs and of 40 ms below, a lock held across a fork, and a blocking call that nobody declared
//! at each level. Everything ends, few threads are needed, and each task is accounted for.

mod common;

use common::{ends, rounds_in, spin, until, work};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use urgency::{
    At, Builder, Criterion, JoinHandle, LevelId, Runtime, Shutdown, at, jobs::CoreSet, join, par,
    sync::mpsc, time,
};

urgency::levels! { App: Ui > Query > Batch }
urgency::levels! { Flat: Only }

const WORK: Duration = Duration::from_millis(800);

type Stop = Arc<AtomicBool>;

fn tree(leaves: usize, leaf: Duration) {
    if leaves == 1 {
        return spin(leaf);
    }
    let half = leaves / 2;
    join(|| tree(half, leaf), || tree(leaves - half, leaf));
}

/// How often each level's part of a program went round.
type Rounds = Arc<[AtomicU64; 3]>;

/// Begins the program at these places, until it is told to stop.
fn begin(
    [ui, query, batch]: [At; 3],
    leaf: Duration,
    stop: &Stop,
) -> (Rounds, Vec<JoinHandle<()>>) {
    let lock = Arc::new(Mutex::new(0));
    let rounds = Rounds::default();
    let shared = || (stop.clone(), lock.clone(), rounds.clone());
    let mut parts = Vec::new();
    for _ in 0..2 {
        let (stop, lock, rounds) = shared();
        parts.push(batch.spawn_fn(move || {
            while !stop.load(Relaxed) {
                tree(16, leaf);
                let mut count = lock.lock().unwrap();
                let short = || spin(Duration::from_micros(200));
                join(short, short);
                *count += 1;
                drop(count);
                thread::sleep(Duration::from_millis(1));
                rounds[2].fetch_add(1, Relaxed);
            }
        }));
    }
    let (stops, lock, counts) = shared();
    parts.push(query.spawn(async move {
        while !stops.load(Relaxed) {
            time::sleep(Duration::from_millis(20)).await;
            let lock = lock.clone();
            let search = urgency::spawn_fn(move || {
                par::for_each(0..100, |_| spin(Duration::from_micros(40)));
                *lock.lock().unwrap() += 1;
                thread::sleep(Duration::from_millis(5));
            });
            search.await.unwrap();
            counts[1].fetch_add(1, Relaxed);
        }
    }));
    let (stops, _, counts) = shared();
    parts.push(ui.spawn(async move {
        while !stops.load(Relaxed) {
            time::sleep(Duration::from_millis(5)).await;
            let blocked = urgency::spawn_fn(|| thread::sleep(Duration::from_millis(3)));
            blocked.await.unwrap();
            counts[0].fetch_add(1, Relaxed);
        }
    }));
    (rounds, parts)
}

fn count(rounds: &Rounds) -> [u64; 3] {
    [0, 1, 2].map(|level: usize| rounds[level].load(Relaxed))
}

/// Two tasks that send each other a message in turns, until they are told to stop.
fn talk(level: &At, stop: &Stop) {
    let (sends, mut hears) = mpsc::channel(1);
    let (answers, mut hears_answer) = mpsc::channel(1);
    let stop = stop.clone();
    level
        .spawn(async move {
            while let Some(message) = hears.recv().await {
                if answers.send(message).await.is_err() {
                    return;
                }
            }
        })
        .detach();
    level
        .spawn(async move {
            while !stop.load(Relaxed) {
                sends.send(()).await.unwrap();
                hears_answer.recv().await.unwrap();
            }
        })
        .detach();
}

/// Runs the program, with this builder. The most threads that the runtime had, and how often each level's part of it
/// went round. So many pairs of tasks talk at the level of queries meanwhile.
fn run_on(builder: Builder, leaf: Duration, flat: bool, pairs: usize) -> (usize, [u64; 3]) {
    let (builder, levels): (_, [LevelId; 3]) = if flat {
        (builder.levels::<Flat>(), [Only.into(); 3])
    } else {
        let levels = [Ui.into(), Query.into(), Batch.into()];
        (builder.levels::<App>(), levels)
    };
    let runtime = builder.build().unwrap();
    let stop = Stop::default();
    let (rounds, parts) = begin(levels.map(|level| runtime.at(level)), leaf, &stop);
    parts.into_iter().for_each(JoinHandle::detach);
    (0..pairs).for_each(|_| talk(&runtime.at(levels[1]), &stop));
    thread::sleep(WORK);
    stop.store(true, Relaxed);
    let report = runtime.shutdown(Shutdown::Drain);
    assert_eq!((report.left, report.panicked, report.cancelled), (0, 0, 0));
    assert_eq!(report.finished, report.spawned);
    (runtime.stats().threads_peak, count(&rounds))
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_newcomers_program_ends_with_few_threads_and_no_task_lost() {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    for leaf in [Duration::from_micros(40), Duration::from_millis(40)] {
        for flat in [false, true] {
            let (threads, rounds) = ends(move || run_on(Runtime::builder(), leaf, flat, 0));
            assert!(rounds.iter().all(|rounds| *rounds > 0), "{rounds:?}");
            // 10 with 2 processors; others where the machine has much else to do.
            assert!(threads <= 4 * processors + 16, "{threads} threads");
        }
    }
}

/// More workers than one group has, and processors: some serve the batch while others' tasks talk above it. Talking
/// fills as many workers as there are pairs, so the batch has the rest.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_newcomers_program_gets_on_with_many_workers_beside_tasks_that_talk() {
    for leaf in [Duration::from_micros(40), Duration::from_millis(40)] {
        let builder = Runtime::builder().workers(24);
        let (threads, rounds) = ends(move || run_on(builder, leaf, false, 8));
        assert!(rounds.iter().all(|rounds| *rounds > 0), "{rounds:?}");
        assert!(threads <= 4 * 24 + 16, "{threads} threads");
    }
}

/// Two tenants on one set of cores run the program, one with short and one with long leaves.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_newcomers_program_gets_on_as_two_jobs_on_one_set_of_cores() {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    ends(move || {
        let cores = CoreSet::builder().build().unwrap();
        let stop = Stop::default();
        let jobs = [Duration::from_micros(40), Duration::from_millis(40)].map(|leaf| {
            let stop = stop.clone();
            let job = cores.job().runtime(|builder| builder.levels::<App>());
            let program = move || {
                let levels: [LevelId; 3] = [Ui.into(), Query.into(), Batch.into()];
                let (rounds, parts) = begin(levels.map(at), leaf, &stop);
                parts.into_iter().for_each(|part| part.get().unwrap());
                count(&rounds)
            };
            job.level(Batch).spawn_fn(program).unwrap()
        });
        thread::sleep(2 * WORK);
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        stop.store(true, Relaxed);
        let rounds = jobs.map(|job| job.get().unwrap());
        assert!(
            rounds.iter().flatten().all(|rounds| *rounds > 0),
            "{rounds:?}"
        );
        assert!(threads <= 8 * processors + 24, "{threads} threads");
    });
}

fn tree_of_work(leaves: u64, rounds: u64) {
    if leaves == 1 {
        return work(rounds);
    }
    let half = leaves / 2;
    join(
        || tree_of_work(half, rounds),
        || tree_of_work(leaves - half, rounds),
    );
}

/// Two computations at each level that always have work, until so many leaves have ended. The leaves of each level.
fn run_with_shares(leaf: Duration, enough: u64) -> [u64; 3] {
    let criterion = Criterion::from_shares(&[0.5, 0.3, 0.2]).unwrap();
    let builder = Runtime::builder().levels::<App>().fairness(criterion);
    let runtime = builder.build().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let lock = Arc::new(Mutex::new(()));
    let leaves = Arc::new([const { AtomicU64::new(0) }; 3]);
    let rounds = rounds_in(leaf);
    let levels: [LevelId; 3] = [Ui.into(), Query.into(), Batch.into()];
    for (number, level) in levels
        .into_iter()
        .enumerate()
        .chain(levels.into_iter().enumerate())
    {
        let (stop, lock, leaves) = (stop.clone(), lock.clone(), leaves.clone());
        let computes = move || {
            while !stop.load(Relaxed) {
                tree_of_work(8, rounds);
                leaves[number].fetch_add(8, Relaxed);
                let guard = lock.lock().unwrap();
                join(|| work(rounds / 100), || work(rounds / 100));
                drop(guard);
                thread::sleep(Duration::from_micros(100));
            }
        };
        runtime.at(level).spawn_fn(computes).detach();
    }
    let count = || [0, 1, 2].map(|level: usize| leaves[level].load(Relaxed));
    until(|| count().iter().sum::<u64>() >= enough);
    stop.store(true, Relaxed);
    let counted = count();
    assert_eq!(runtime.shutdown(Shutdown::Drain).left, 0);
    counted
}

/// With leaves of 40 ms the last level had none of 280 leaves in 6 s, since the kernel let its lowered threads wait.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn under_shares_each_level_of_a_newcomers_program_gets_on() {
    let leaves = [
        (Duration::from_micros(40), 20_000),
        (Duration::from_millis(40), 120),
    ];
    for (leaf, enough) in leaves {
        let counted = ends(move || run_with_shares(leaf, enough));
        let all: u64 = counted.iter().sum();
        assert!(counted.iter().all(|level| level * 20 >= all), "{counted:?}");
    }
}
