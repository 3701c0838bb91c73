//! Priority inheritance of `sync::Mutex`: an inversion is bounded by what the holder does under the lock. All
//! by counts.

mod common;
#[path = "common/inversion.rs"]
mod inversion;

use common::{ends, poll, with_levels};
use inversion::{
    App, CROWD, Crowd, High, Low, Middle, low_holder, low_waits, until, urgent, waits_for,
};
use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};
use urgency::{
    LevelId, Runtime, current_level, join, scheduling_point, select, spawn, spawn_fn,
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
fn what_is_spawned_under_a_contended_lock_is_raised_by_a_wait_only() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (mutex, go) = (Arc::new(Mutex::new(())), Arc::new(Notify::new()));
        let (theirs, told, holds) = (mutex.clone(), go.clone(), Arc::new(AtomicBool::new(false)));
        let it_holds = holds.clone();
        let low = runtime.at(Low).spawn(async move {
            let _guard = theirs.lock().await;
            it_holds.store(true, SeqCst);
            told.notified().await;
            let left = [
                spawn(pending::<()>()).level(),
                spawn_fn(|| join(current_level, || ())).level(),
                join(|| spawn(pending::<()>()).level(), || ()).0,
            ];
            let awaited = spawn(async { current_level() });
            (current_level(), left, awaited.await.unwrap())
        });
        until(|| holds.load(SeqCst));
        let high = runtime
            .at(High)
            .spawn(async move { drop(mutex.lock().await) });
        until(|| low.level() == LevelId::from(High));
        go.notify_one();
        let (high_level, low_level) = (LevelId::from(High), LevelId::from(Low));
        let levels = (high_level, [low_level; 3], high_level);
        assert_eq!(low.get().unwrap(), levels);
        high.get().unwrap();
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
