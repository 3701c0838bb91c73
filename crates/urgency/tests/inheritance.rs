//! Priority inheritance of `sync::Mutex`: an inversion is bounded by what the holder does under the lock. All
//! by counts.

mod common;

use common::{ends, with_levels};
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
};
use urgency::{
    JoinHandle, LevelId, Runtime, current_level, scheduling_point, select,
    sync::{Mutex, Notify, self_deadlocks},
    yield_now,
};

urgency::levels! { App: High > Middle > Low }

/// Middle work that is always ready, and counts its steps.
#[derive(Clone, Default)]
struct Crowd {
    steps: Arc<AtomicUsize>,
    /// An urgent task waits now.
    awaited: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

/// How many contexts the crowd has. One whose worker is taken from it goes on to its next scheduling point,
/// which is a step.
const CROWD: usize = 3;

impl Crowd {
    fn start(&self, runtime: &Runtime) -> Vec<JoinHandle<()>> {
        let task = |n| {
            let crowd = self.clone();
            if n % 2 == 0 {
                runtime.at(Middle).spawn(async move {
                    while !crowd.over.load(SeqCst) {
                        crowd.steps.fetch_add(1, SeqCst);
                        yield_now().await;
                    }
                })
            } else {
                runtime.at(Middle).spawn_fn(move || {
                    while !crowd.over.load(SeqCst) {
                        crowd.steps.fetch_add(1, SeqCst);
                        scheduling_point();
                    }
                })
            }
        };
        (0..CROWD).map(task).collect()
    }

    fn end(&self, tasks: Vec<JoinHandle<()>>) {
        self.over.store(true, SeqCst);
        tasks.into_iter().for_each(|task| task.get().unwrap());
    }

    fn wait_for_steps(&self) {
        let before = self.steps.load(SeqCst);
        until(|| self.steps.load(SeqCst) > before);
    }
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The one context at the low level waits in its pool. If its worker was taken from it, it comes to its
/// scheduling point when the kernel lets it, and is in no pool before.
fn low_waits(runtime: &Runtime) {
    let low = usize::from(LevelId::from(Low).rank());
    until(|| runtime.stats().levels[low].queued == 1);
}

/// A high task that locks, and says how many steps the crowd made between its wait and its acquisition.
fn urgent<T: Send + 'static>(
    runtime: &Runtime,
    mutex: &Arc<Mutex<T>>,
    crowd: &Crowd,
) -> JoinHandle<usize> {
    let (mutex, crowd) = (mutex.clone(), crowd.clone());
    runtime.at(High).spawn(async move {
        let before = crowd.steps.load(SeqCst);
        crowd.awaited.store(true, SeqCst);
        let guard = mutex.lock().await;
        let after = crowd.steps.load(SeqCst);
        drop(guard);
        after - before
    })
}

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
        let (holds, go) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (theirs, told, awaits) = (mutex.clone(), holds.clone(), go.clone());
        let low = runtime.at(Low).spawn(async move {
            let guard = theirs.lock().await;
            told.store(true, SeqCst);
            awaits.notified().await;
            drop(guard);
            current_level()
        });
        until(|| holds.load(SeqCst));
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
        let (holds, go) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (theirs, told, awaits) = (mutex.clone(), holds.clone(), go.clone());
        let low = runtime.at(Low).spawn(async move {
            let guard = theirs.lock().await;
            told.store(true, SeqCst);
            awaits.notified().await;
            drop(guard);
            current_level()
        });
        until(|| holds.load(SeqCst));
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
fn a_lock_offered_to_a_future_that_is_not_polled_can_be_had_by_its_own_task() {
    ends(|| {
        for runtime in [with_levels::<App>(1), common::runtime(1)] {
            let mutex = Arc::new(Mutex::new(Vec::new()));
            let held = mutex.try_lock().unwrap();
            let (theirs, queued) = (mutex.clone(), Arc::new(AtomicBool::new(false)));
            let told = queued.clone();
            let task = runtime.spawn(async move {
                let mut first = Box::pin(theirs.lock());
                select! {
                    biased;
                    _guard = &mut first => unreachable!("it is held"),
                    () = async { told.store(true, SeqCst) } => {}
                }
                // `first` stands in the queue before this one, and is not polled.
                theirs.lock().await.push(2);
                first.await.push(1);
            });
            until(|| queued.load(SeqCst));
            drop(held);
            task.get().unwrap();
            assert_eq!(*mutex.try_lock().unwrap(), [2, 1]);
        }
    });
}

#[test]
fn a_lock_handed_to_a_future_that_is_not_polled_is_taken_over_by_its_own_task() {
    ends(|| {
        for runtime in [with_levels::<App>(1), common::runtime(1)] {
            let mutex = Arc::new(Mutex::new(Vec::new()));
            let held = mutex.try_lock().unwrap();
            let theirs = mutex.clone();
            let steps: [Arc<AtomicBool>; 4] = Default::default();
            let [queued, again, came, released] = steps.clone();
            let before = self_deadlocks();
            let task = runtime.spawn(async move {
                let mut first = Box::pin(theirs.lock());
                let reached = |step: &AtomicBool| step.store(true, SeqCst);
                select! {
                    biased;
                    _guard = &mut first => unreachable!("it is held"),
                    () = async { reached(&queued) } => {}
                }
                urgency::blocking(|| until(|| again.load(SeqCst)));
                // The waiter comes for the lock that it was offered, and finds it taken: the next release is for it.
                select! {
                    biased;
                    _guard = &mut first => unreachable!("it is held"),
                    () = async { reached(&came) } => {}
                }
                urgency::blocking(|| until(|| released.load(SeqCst)));
                // `first` has the lock, and is not polled.
                theirs.lock().await.push(2);
                first.await.push(1);
            });
            let [queued, again, came, released] = steps;
            until(|| queued.load(SeqCst));
            drop(held);
            let held = mutex.try_lock().expect("it is only offered");
            again.store(true, SeqCst);
            until(|| came.load(SeqCst));
            drop(held);
            assert!(mutex.try_lock().is_err(), "it was handed over");
            released.store(true, SeqCst);
            task.get().unwrap();
            assert_eq!(*mutex.try_lock().unwrap(), [2, 1]);
            let after = self_deadlocks();
            assert!(after.averted > before.averted);
            assert!(after.last.unwrap().file().ends_with("inheritance.rs"));
        }
    });
}

#[test]
fn a_waiter_is_overtaken_only_until_it_has_come() {
    ends(|| {
        let runtime = common::runtime(1);
        let mutex = Arc::new(Mutex::new(0));
        let held = mutex.try_lock().unwrap();
        let theirs = mutex.clone();
        let (queued, go) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (told, awaits) = (queued.clone(), go.clone());
        let waiter = runtime.spawn(async move {
            let mut lock = Box::pin(theirs.lock());
            for _ in 0..2 {
                select! {
                    biased;
                    _guard = &mut lock => unreachable!("it is held"),
                    () = async { told.store(true, SeqCst) } => {}
                }
                urgency::blocking(|| until(|| awaits.swap(false, SeqCst)));
            }
            *lock.await += 1;
        });
        until(|| queued.swap(false, SeqCst));
        drop(held);
        for _ in 0..100 {
            drop(mutex.try_lock().expect("the waiter has not come yet"));
        }
        let held = mutex.try_lock().unwrap();
        go.store(true, SeqCst);
        until(|| queued.load(SeqCst));
        drop(held);
        assert!(mutex.try_lock().is_err(), "it has come, so it is its turn");
        go.store(true, SeqCst);
        waiter.get().unwrap();
        assert_eq!(*mutex.try_lock().unwrap(), 1);
    });
}

#[test]
fn a_wait_for_a_guard_of_the_own_task_is_counted() {
    ends(|| {
        let runtime = common::runtime(1);
        let before = self_deadlocks().suspected;
        let task = runtime.spawn(async {
            let mutex = Mutex::new(());
            let one = async {
                let _guard = mutex.lock().await;
                yield_now().await;
            };
            // Legal: the other branch goes on.
            urgency::future::zip(one, async { drop(mutex.lock().await) }).await;
        });
        task.get().unwrap();
        assert!(self_deadlocks().suspected > before);
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

/// A task that waits for `mutex`, after it has locked `first`, and then drops both. It waits when this
/// returns.
fn waits_for(
    runtime: &Runtime,
    level: impl Into<LevelId>,
    first: Option<&Arc<Mutex<()>>>,
    mutex: &Arc<Mutex<()>>,
) -> JoinHandle<()> {
    let (first, mutex) = (first.cloned(), mutex.clone());
    let waits = Arc::new(AtomicBool::new(false));
    let told = waits.clone();
    let task = runtime.at(level).spawn(async move {
        let _first = match &first {
            Some(first) => Some(first.lock().await),
            None => None,
        };
        let mut lock = pin!(mutex.lock());
        let _guard = std::future::poll_fn(|cx| {
            let polled = lock.as_mut().poll(cx);
            told.store(true, SeqCst);
            polled
        })
        .await;
    });
    until(|| waits.load(SeqCst));
    task
}

#[test]
fn a_waiter_that_was_raised_for_a_while_takes_what_it_is_offered_after_that() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let locks: [Arc<Mutex<()>>; 2] = Default::default();
        let [one, two] = locks.clone();
        let held = locks[1].try_lock().unwrap();
        let steps: [Arc<AtomicBool>; 2] = Default::default();
        let [holds, lowered] = steps.clone();
        let low = runtime.at(Low).spawn(async move {
            let guard = one.lock().await;
            holds.store(true, SeqCst);
            while current_level() != High.into() {
                yield_now().await;
            }
            let mut lock = Box::pin(two.lock());
            select! {
                biased;
                _guard = &mut lock => unreachable!("it is held"),
                () = async {} => {}
            }
            drop(guard);
            let level = current_level();
            lowered.store(true, SeqCst);
            drop(lock.await);
            level
        });
        let [holds, lowered] = steps;
        until(|| holds.load(SeqCst));
        let high = urgent(&runtime, &locks[0], &Crowd::default());
        until(|| lowered.load(SeqCst));
        drop(held);
        high.get().unwrap();
        assert_eq!(low.get().unwrap(), Low.into());
    });
}

#[test]
fn a_waiter_that_is_raised_while_the_lock_is_offered_raises_who_is_to_have_it() {
    ends(|| {
        let (runtime, crowd) = (with_levels::<App>(1), Crowd::default());
        let (one, two) = (Arc::default(), Arc::new(Mutex::new(())));
        let held = two.try_lock().unwrap();
        let first = waits_for(&runtime, Low, None, &two);
        let second = waits_for(&runtime, Low, Some(&one), &two);
        let tasks = crowd.start(&runtime);
        crowd.wait_for_steps();
        // The first has no worker until it is raised, since the crowd is always ready.
        drop(held);
        let steps = urgent(&runtime, &one, &crowd).get().unwrap();
        assert!(steps <= CROWD, "{steps} steps of what is less urgent");
        crowd.end(tasks);
        first.get().unwrap();
        second.get().unwrap();
    });
}

#[test]
fn a_task_that_dropped_a_lock_that_it_was_handed_waits_for_it_no_longer() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.try_lock().unwrap();
        let steps: [Arc<AtomicBool>; 5] = Default::default();
        let [queued, again, came, released, left] = steps.clone();
        let (theirs, over) = (mutex.clone(), Arc::new(Notify::new()));
        let awaits = over.clone();
        let task = runtime.at(Low).spawn(async move {
            let mut first = Box::pin(theirs.lock());
            for (reached, go_on) in [(&queued, &again), (&came, &released)] {
                select! {
                    biased;
                    _guard = &mut first => unreachable!("it is held"),
                    () = async { reached.store(true, SeqCst) } => {}
                }
                urgency::blocking(|| until(|| go_on.load(SeqCst)));
            }
            drop(first);
            left.store(true, SeqCst);
            awaits.notified().await;
        });
        let [queued, again, came, released, left] = steps;
        until(|| queued.load(SeqCst));
        drop(held);
        let held = mutex.try_lock().expect("it is only offered");
        again.store(true, SeqCst);
        until(|| came.load(SeqCst));
        drop(held);
        assert!(mutex.try_lock().is_err(), "it was handed over");
        released.store(true, SeqCst);
        until(|| left.load(SeqCst));
        let (theirs, awaits) = (mutex.clone(), over.clone());
        let holds = Arc::new(AtomicBool::new(false));
        let told = holds.clone();
        let holder = runtime.at(Low).spawn(async move {
            let _guard = theirs.lock().await;
            told.store(true, SeqCst);
            awaits.notified().await;
        });
        until(|| holds.load(SeqCst));
        let waiter = waits_for(&runtime, Middle, None, &mutex);
        until(|| holder.level() == LevelId::from(Middle));
        runtime.at(High).run(|| task.boost());
        assert_eq!(holder.level(), Middle.into(), "nothing urgent waits for it");
        over.notify_waiters();
        for task in [holder, waiter, task] {
            task.get().unwrap();
        }
    });
}

#[test]
fn a_plain_thread_that_waits_raises_nobody_however_often_it_is_polled() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let (mutex, over) = (Arc::new(Mutex::new(())), Arc::new(Notify::new()));
        let (holds, awaits) = (Arc::new(AtomicBool::new(false)), over.clone());
        let (theirs, told) = (mutex.clone(), holds.clone());
        let low = runtime.at(Low).spawn(async move {
            let _guard = theirs.lock().await;
            told.store(true, SeqCst);
            awaits.notified().await;
        });
        until(|| holds.load(SeqCst));
        let waiter = waits_for(&runtime, Middle, None, &mutex);
        until(|| low.level() == LevelId::from(Middle));
        let mut lock = Box::pin(mutex.lock());
        assert!(poll(lock.as_mut()).is_pending() && poll(lock.as_mut()).is_pending());
        assert_eq!(low.level(), Middle.into());
        drop(lock);
        over.notify_one();
        low.get().unwrap();
        waiter.get().unwrap();
    });
}

#[test]
fn a_waiter_that_leaves_gives_back_what_it_inherited_when_it_was_offered_the_lock() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (one, two) = (Arc::default(), Arc::new(Mutex::new(())));
        let held = two.try_lock().unwrap();
        let (theirs, steps) = (two.clone(), <[Arc<AtomicBool>; 2]>::default());
        let [queued, go] = steps.clone();
        let low = runtime.at(Low).spawn(async move {
            let mut lock = Box::pin(theirs.lock());
            select! {
                biased;
                _guard = &mut lock => unreachable!("it is held"),
                () = async { queued.store(true, SeqCst) } => {}
            }
            urgency::blocking(|| until(|| go.load(SeqCst)));
            let raised = current_level();
            drop(lock);
            (raised, current_level())
        });
        let [queued, go] = steps;
        until(|| queued.load(SeqCst));
        let second = waits_for(&runtime, Low, Some(&one), &two);
        drop(held);
        let high = urgent(&runtime, &one, &Crowd::default());
        until(|| low.level() == LevelId::from(High));
        go.store(true, SeqCst);
        let levels: (LevelId, LevelId) = (High.into(), Low.into());
        assert_eq!(low.get().unwrap(), levels);
        high.get().unwrap();
        second.get().unwrap();
    });
}
