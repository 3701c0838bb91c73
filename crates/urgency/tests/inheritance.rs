//! Priority inheritance of `sync::Mutex`: an inversion is bounded by what the holder does under the lock. All
//! by counts.

mod common;
#[path = "common/inversion.rs"]
mod inversion;

use common::{ends, poll, stolen, with_levels};
use inversion::{
    App, CROWD, Crowd, High, Low, Middle, low_holder, low_waits, until, urgent, waits_for,
};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};
use urgency::{
    JoinHandle, LevelId, Runtime, current_level, join, scheduling_point, select,
    sync::{Mutex, Notify},
    yield_now,
};

#[test]
fn nothing_less_urgent_runs_between_an_urgent_wait_for_a_low_task_and_its_end() {
    ends(|| {
        let (runtime, crowd) = (with_levels::<App>(1), Crowd::default());
        let (mutex, holds) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let (theirs, told, awaited) = (mutex.clone(), holds.clone(), crowd.awaited.clone());
        let low = runtime.at(Low).spawn(async move {
            let guard = theirs.lock().await;
            told.store(true, SeqCst);
            // The crowd is always ready, so this does not end unless the task is raised.
            while !awaited.load(SeqCst) {
                yield_now().await;
            }
            for _ in 0..100 {
                yield_now().await;
            }
            let boosted = current_level();
            drop(guard);
            (boosted, current_level())
        });
        until(|| holds.load(SeqCst));
        let tasks = crowd.start(&runtime);
        crowd.wait_for_steps();
        low_waits(&runtime);
        let steps = urgent(&runtime, &mutex, &crowd).get().unwrap();
        assert!(steps <= CROWD, "{steps} steps of what is less urgent");
        crowd.end(tasks);
        let levels: (LevelId, LevelId) = (High.into(), Low.into());
        assert_eq!(low.get().unwrap(), levels, "raised, and back again");
    });
}

/// A low closure holds the lock that `wait` waits for at the high level. `wait` returns how many steps the
/// crowd made meanwhile.
fn wait_for_a_low_closure(wait: fn(&Runtime, &Arc<Mutex<usize>>, &Crowd) -> usize) {
    ends(move || {
        let (runtime, crowd) = (with_levels::<App>(1), Crowd::default());
        let (mutex, holds) = (Arc::new(Mutex::new(0)), Arc::new(AtomicBool::new(false)));
        let (theirs, told, awaited) = (mutex.clone(), holds.clone(), crowd.awaited.clone());
        let low = runtime.at(Low).spawn_fn(move || {
            let mut guard = theirs.blocking_lock();
            told.store(true, SeqCst);
            while !awaited.load(SeqCst) || *guard < 100_000 {
                *guard += usize::from(awaited.load(SeqCst));
                scheduling_point();
            }
            drop(guard);
            current_level()
        });
        until(|| holds.load(SeqCst));
        let tasks = crowd.start(&runtime);
        crowd.wait_for_steps();
        low_waits(&runtime);
        let steps = wait(&runtime, &mutex, &crowd);
        assert!(steps <= CROWD, "{steps} steps of what is less urgent");
        crowd.end(tasks);
        assert_eq!(low.get().unwrap(), Low.into());
    });
}

#[test]
fn nothing_less_urgent_runs_between_an_urgent_wait_for_a_low_closure_and_its_end() {
    wait_for_a_low_closure(|runtime, mutex, crowd| urgent(runtime, mutex, crowd).get().unwrap());
}

#[test]
fn a_low_holder_inherits_the_level_of_a_call_from_outside_that_waits() {
    wait_for_a_low_closure(|runtime, mutex, crowd| {
        runtime.at(High).run(|| {
            let before = crowd.steps.load(SeqCst);
            crowd.awaited.store(true, SeqCst);
            let guard = mutex.blocking_lock();
            let after = crowd.steps.load(SeqCst);
            drop(guard);
            after - before
        })
    });
}

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

#[test]
fn a_chain_of_locks_is_boosted_through_and_the_raised_waiter_goes_first() {
    ends(|| {
        let (runtime, crowd) = (with_levels::<App>(1), Crowd::default());
        let (one, two) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(Vec::new())));
        let (holds, waits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        // B holds `two`; M waits for it, and after M waits A, which holds `one`.
        let (of_b, told, go) = (two.clone(), holds.clone(), waits.clone());
        let b = runtime.at(Low).spawn(async move {
            let guard = of_b.lock().await;
            told.fetch_add(1, SeqCst);
            go.notified().await;
            for _ in 0..100 {
                yield_now().await;
            }
            drop(guard);
        });
        until(|| holds.load(SeqCst) == 1);
        let waiter = |level: LevelId, name: &'static str, first: Option<&Arc<Mutex<()>>>| {
            let (first, two, told) = (first.cloned(), two.clone(), holds.clone());
            let before = holds.load(SeqCst);
            let task = runtime.at(level).spawn(async move {
                let _first = match &first {
                    Some(first) => Some(first.lock().await),
                    None => None,
                };
                let mut lock = pin!(two.lock());
                let mut guard = std::future::poll_fn(|cx| {
                    let polled = lock.as_mut().poll(cx);
                    told.fetch_add(1, SeqCst);
                    polled
                })
                .await;
                guard.push(name);
            });
            until(|| holds.load(SeqCst) > before);
            task
        };
        let m = waiter(Middle.into(), "m", None);
        let a = waiter(Low.into(), "a", Some(&one));
        let tasks = crowd.start(&runtime);
        crowd.wait_for_steps();
        let (theirs, steps) = (one.clone(), crowd.steps.clone());
        let urgent = runtime.at(High).spawn(async move {
            let mut lock = pin!(theirs.lock());
            let before = steps.load(SeqCst);
            let guard = std::future::poll_fn(|cx| {
                let polled = lock.as_mut().poll(cx);
                // B, which waits for this, is raised by now.
                waits.notify_one();
                polled
            })
            .await;
            let after = steps.load(SeqCst);
            drop(guard);
            after - before
        });
        let steps = urgent.get().unwrap();
        assert!(steps <= CROWD, "{steps} steps of what is less urgent");
        crowd.end(tasks);
        [a, b, m].into_iter().for_each(|task| task.get().unwrap());
        assert_eq!(*two.blocking_lock(), ["a", "m"]);
    });
}

#[test]
fn a_boost_that_comes_while_a_level_is_inherited_outlasts_it() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let mutex = Arc::new(Mutex::new(()));
        let (low, go) = low_holder(&runtime, &mutex);
        let crowd = Crowd::default();
        let high = urgent(&runtime, &mutex, &crowd);
        until(|| low.level() == LevelId::from(High));
        runtime.at(Middle).run(|| low.boost());
        go.notify_one();
        high.get().unwrap();
        assert_eq!(low.get().unwrap(), Middle.into());
    });
}

#[test]
fn an_urgent_waiter_that_is_dropped_raises_nobody_for_good() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let mutex = Arc::new(Mutex::new(()));
        let (low, go) = low_holder(&runtime, &mutex);
        let high = urgent(&runtime, &mutex, &Crowd::default());
        until(|| low.level() == LevelId::from(High));
        high.abort();
        assert!(high.get().is_err());
        go.notify_one();
        assert_eq!(low.get().unwrap(), Low.into());
    });
}

#[test]
fn random_lock_nests_over_levels_end_and_leave_every_task_at_its_own_level() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let locks: Arc<Vec<_>> = Arc::new((0..4).map(Mutex::new).collect());
        let tasks: Vec<_> = (0..24)
            .map(|seed| {
                let locks = locks.clone();
                let level = [LevelId::from(High), Middle.into(), Low.into()][seed % 3];
                runtime.at(level).spawn(async move {
                    let mut random = common::Random::new(seed as u64 + 1);
                    for _ in 0..60 {
                        // Always in ascending order, so that no deadlock is possible.
                        let first = random.below(3) as usize;
                        let second = first + 1 + random.below(3 - first as u64) as usize;
                        let mut one = locks[first].lock().await;
                        if random.below(3) == 0 {
                            yield_now().await;
                        }
                        let two = locks[second].lock();
                        if random.below(4) == 0 {
                            select! {
                                biased;
                                mut two = two => *two += 1,
                                () = yield_now() => {}
                            }
                        } else {
                            *two.await += 1;
                        }
                        *one += 1;
                    }
                    (level, current_level())
                })
            })
            .collect();
        for task in tasks {
            let (own, last) = task.get().unwrap();
            assert_eq!(own, last);
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

#[test]
fn a_level_inherited_by_one_lock_does_not_hide_what_another_is_waited_for() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let locks: [Arc<Mutex<()>>; 2] = Default::default();
        let [one, two] = locks.clone();
        let (holds, go) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (told, awaits) = (holds.clone(), go.clone());
        let low = runtime.at(Low).spawn(async move {
            let (first, second) = (one.lock().await, two.lock().await);
            told.store(true, SeqCst);
            awaits.notified().await;
            drop(first);
            let between = current_level();
            drop(second);
            (between, current_level())
        });
        until(|| holds.load(SeqCst));
        let queued = Arc::new(AtomicBool::new(false));
        let waiters = locks.map(|lock| {
            let told = queued.clone();
            let waiter = runtime.at(High).spawn(async move {
                let mut lock = Box::pin(lock.lock());
                select! {
                    biased;
                    _guard = &mut lock => unreachable!("it is held"),
                    () = async { told.store(true, SeqCst) } => {}
                }
                drop(lock.await);
            });
            until(|| queued.swap(false, SeqCst));
            waiter
        });
        go.notify_one();
        let levels: (LevelId, LevelId) = (High.into(), Low.into());
        assert_eq!(low.get().unwrap(), levels);
        for waiter in waiters {
            waiter.get().unwrap();
        }
    });
}

#[test]
fn a_closure_that_gives_a_raised_lock_back_inside_a_blocking_call_is_what_it_was() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let mutex = Arc::new(Mutex::new(()));
        let (theirs, holds) = (mutex.clone(), Arc::new(AtomicBool::new(false)));
        let told = holds.clone();
        let low = runtime.at(Low).spawn_fn(move || {
            let guard = theirs.blocking_lock();
            told.store(true, SeqCst);
            while current_level() != High.into() {
                scheduling_point();
            }
            urgency::blocking(|| drop(guard));
            current_level()
        });
        until(|| holds.load(SeqCst));
        urgent(&runtime, &mutex, &Crowd::default()).get().unwrap();
        assert_eq!(low.get().unwrap(), Low.into());
    });
}

#[test]
fn a_plain_thread_that_waits_raises_nobody_however_often_it_is_polled() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let mutex = Arc::new(Mutex::new(()));
        let (low, go) = low_holder(&runtime, &mutex);
        let waiter = waits_for(&runtime, Middle, None, &mutex);
        until(|| low.level() == LevelId::from(Middle));
        let mut lock = Box::pin(mutex.lock());
        assert!(poll(lock.as_mut()).is_pending() && poll(lock.as_mut()).is_pending());
        assert_eq!(low.level(), Middle.into());
        drop(lock);
        go.notify_one();
        low.get().unwrap();
        waiter.get().unwrap();
    });
}
