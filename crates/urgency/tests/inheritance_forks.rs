//! Priority inheritance of `sync::Mutex` by code that belongs to no task: forks that other workers run, and calls from
//! outside.

mod common;
#[path = "common/inversion.rs"]
mod inversion;

use common::{ends, stolen, with_levels};
use inversion::{App, Crowd, High, Low, Middle, low_holder, until, urgent, waits_for};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use urgency::{JoinHandle, LevelId, Runtime, current_level, join, scheduling_point, sync::Mutex};

/// Holds the lock from before an urgent task waits for it until the calling code is as urgent. The levels of then, and
/// after the release.
fn hold_until_raised(mutex: &Mutex<()>, holds: &AtomicBool) -> (LevelId, LevelId) {
    let guard = mutex.blocking_lock();
    holds.store(true, SeqCst);
    // The crowd is always ready, so this does not end unless the code is raised.
    while current_level() != LevelId::from(High) {
        scheduling_point();
    }
    let raised = current_level();
    drop(guard);
    (raised, current_level())
}

/// `low` holds the lock when an urgent task waits for it, beside a crowd for which the workers do not suffice.
fn code_of_no_task_inherits(
    workers: usize,
    low: fn(&Runtime, &Mutex<()>, &AtomicBool) -> (LevelId, LevelId),
) {
    ends(move || {
        let (runtime, crowd) = (with_levels::<App>(workers), Crowd::default());
        let (mutex, holds) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let (there, theirs, told) = (runtime.clone(), mutex.clone(), holds.clone());
        let low = std::thread::spawn(move || low(&there, &theirs, &told));
        until(|| holds.load(SeqCst));
        let tasks = crowd.start(&runtime);
        crowd.wait_for_steps();
        urgent(&runtime, &mutex, &crowd).get().unwrap();
        crowd.end(tasks);
        let levels: (LevelId, LevelId) = (High.into(), Low.into());
        assert_eq!(low.join().unwrap(), levels, "raised, and back again");
    });
}

#[test]
fn a_stolen_fork_that_holds_a_lock_inherits_the_level_of_a_waiter() {
    code_of_no_task_inherits(2, |runtime, mutex, holds| {
        runtime
            .at(Low)
            .run(|| stolen(|| hold_until_raised(mutex, holds)))
    });
}

#[test]
fn a_call_from_outside_that_holds_a_lock_inherits_the_level_of_a_waiter() {
    for workers in [1, 2] {
        code_of_no_task_inherits(workers, |runtime, mutex, holds| {
            runtime.at(Low).run(|| hold_until_raised(mutex, holds))
        });
    }
}

/// The holder has made one fork before the lock is waited for, and the other one after that.
#[test]
fn only_what_a_holder_forks_while_it_inherits_has_the_level_that_it_inherits() {
    for is_task in [true, false] {
        ends(move || {
            let (runtime, mutex) = (with_levels::<App>(2), Arc::new(Mutex::new(())));
            let [holds, blocks, raised] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
            let (told, until_raised) = (blocks.clone(), raised.clone());
            // The other worker takes no fork before the holder inherits.
            let other = runtime.at(Low).spawn_fn(move || {
                told.store(true, SeqCst);
                until(|| until_raised.load(SeqCst));
            });
            until(|| blocks.load(SeqCst));
            let (theirs, told) = (mutex.clone(), holds.clone());
            let low = move || {
                let begun = AtomicBool::new(false);
                let hold = || {
                    let guard = theirs.blocking_lock();
                    told.store(true, SeqCst);
                    until(|| current_level() == LevelId::from(High));
                    raised.store(true, SeqCst);
                    while !begun.load(SeqCst) {
                        scheduling_point();
                    }
                    let newer = stolen(current_level);
                    drop(guard);
                    newer
                };
                let older = || {
                    begun.store(true, SeqCst);
                    current_level()
                };
                join(hold, older)
            };
            let there = runtime.clone();
            let low = std::thread::spawn(move || match is_task {
                true => there.at(Low).spawn_fn(low).get().unwrap(),
                false => there.at(Low).run(low),
            });
            until(|| holds.load(SeqCst));
            urgent(&runtime, &mutex, &Crowd::default()).get().unwrap();
            other.get().unwrap();
            assert_eq!(low.join().unwrap(), (High.into(), Low.into()));
        });
    }
}

/// The fork waits for a lock while it holds the one that is waited for.
#[test]
fn a_stolen_fork_passes_on_what_it_inherits_to_the_holder_for_which_it_waits() {
    ends(|| {
        let (runtime, crowd) = (with_levels::<App>(2), Crowd::default());
        let (one, two) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
        let (low, go) = low_holder(&runtime, &two);
        let holds = Arc::new(AtomicBool::new(false));
        let (there, told, ours, theirs) = (runtime.clone(), holds.clone(), one.clone(), two);
        let fork = std::thread::spawn(move || {
            there.at(Low).run(|| {
                stolen(|| {
                    let _one = ours.blocking_lock();
                    told.store(true, SeqCst);
                    drop(theirs.blocking_lock());
                });
            });
        });
        until(|| holds.load(SeqCst));
        let tasks = crowd.start(&runtime);
        crowd.wait_for_steps();
        let urgent = urgent(&runtime, &one, &crowd);
        until(|| crowd.awaited.load(SeqCst));
        go.notify_one();
        urgent.get().unwrap();
        crowd.end(tasks);
        assert_eq!(low.get().unwrap(), Low.into());
        fork.join().unwrap();
    });
}

/// The guard was leaked, so what is lent to the fork is never given back.
#[test]
fn a_fork_does_not_inherit_by_a_lock_that_another_fork_took_on_its_thread() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        for _ in 0..10 {
            let mutex = Arc::new(Mutex::new(()));
            let leak = || std::mem::forget(mutex.blocking_lock());
            runtime.at(Low).run(|| stolen(leak));
            let mut waiting = vec![waits_for(&runtime, Middle, None, &mutex)];
            for _ in 0..5 {
                let (runs, waits) = (AtomicBool::new(false), AtomicBool::new(false));
                let fork = || {
                    runs.store(true, SeqCst);
                    until(|| waits.load(SeqCst));
                    current_level()
                };
                std::thread::scope(|s| {
                    let low = s.spawn(|| runtime.at(Low).run(|| stolen(fork)));
                    until(|| runs.load(SeqCst));
                    waiting.push(waits_for(&runtime, High, None, &mutex));
                    waits.store(true, SeqCst);
                    assert_eq!(low.join().unwrap(), Low.into());
                });
            }
            waiting.iter().for_each(JoinHandle::abort);
        }
    });
}

/// Takes two locks in ascending order, many times, in forks that may be stolen, in the middle of one another's waits.
fn lock_in_forks(locks: &[Mutex<u64>], depth: u32, seed: u64) {
    if depth > 0 {
        join(
            || lock_in_forks(locks, depth - 1, 2 * seed),
            || lock_in_forks(locks, depth - 1, 2 * seed + 1),
        );
        return;
    }
    let mut random = common::Random::new(seed);
    for _ in 0..10 {
        let first = random.below(3) as usize;
        let second = first + 1 + random.below(3 - first as u64) as usize;
        let mut one = locks[first].blocking_lock();
        if random.below(3) == 0 {
            scheduling_point();
        }
        *locks[second].blocking_lock() += 1;
        *one += 1;
    }
}

#[test]
fn random_lock_nests_in_forks_over_levels_end_and_leave_nothing_behind() {
    for workers in [1, 2, 4] {
        ends(move || {
            let runtime = with_levels::<App>(workers);
            let locks: Arc<Vec<_>> = Arc::new((0..4).map(|_| Mutex::new(0)).collect());
            let levels = [LevelId::from(High), Middle.into(), Low.into()];
            let task = |seed: usize| {
                let locks = locks.clone();
                let task = move || lock_in_forks(&locks, 4, 1 + seed as u64);
                runtime.at(levels[seed % 3]).spawn_fn(task)
            };
            let tasks: Vec<_> = (0..9).map(task).collect();
            common::all(tasks);
            let sum: u64 = locks.iter().map(|lock| *lock.blocking_lock()).sum();
            assert_eq!(sum, 9 * 16 * 10 * 2);
            for level in levels.into_iter().filter(|_| workers > 1) {
                let found = runtime.at(level).run(|| stolen(current_level));
                assert_eq!(found, level);
            }
        });
    }
}
