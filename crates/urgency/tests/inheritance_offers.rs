//! A `sync::Mutex` that is offered or handed to a waiter that does not come, and what is inherited meanwhile. All by
//! counts.

mod common;
#[path = "common/inversion.rs"]
mod inversion;

use common::{ends, with_levels};
use inversion::{App, CROWD, Crowd, High, Low, Middle, low_holder, until, urgent, waits_for};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use urgency::{
    LevelId, current_level, select, spawn, spawn_fn,
    sync::{Mutex, MutexGuard, Notify, oneshot, self_deadlocks},
    yield_now,
};

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

/// A waiter is queued for a lock that is held, and is not polled. The lock is offered to it, had by another once more,
/// and handed over: the waiter goes on at each of the steps.
fn hand_over<T>(mutex: &Mutex<T>, held: MutexGuard<'_, T>, steps: &[Arc<AtomicBool>; 4]) {
    let [queued, again, came, released] = steps;
    until(|| queued.load(SeqCst));
    drop(held);
    let held = mutex.try_lock().expect("it is only offered");
    again.store(true, SeqCst);
    until(|| came.load(SeqCst));
    drop(held);
    assert!(mutex.try_lock().is_err(), "it was handed over");
    released.store(true, SeqCst);
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
            hand_over(&mutex, held, &steps);
            task.get().unwrap();
            assert_eq!(*mutex.try_lock().unwrap(), [2, 1]);
            let after = self_deadlocks();
            assert!(after.averted > before.averted);
            assert!(
                after
                    .last
                    .unwrap()
                    .file()
                    .ends_with("inheritance_offers.rs")
            );
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
fn a_waiter_that_is_raised_while_the_lock_is_offered_raises_the_next_holder() {
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
        let [offers @ .., left] = steps;
        hand_over(&mutex, held, &offers);
        until(|| left.load(SeqCst));
        let (holder, go) = low_holder(&runtime, &mutex);
        let waiter = waits_for(&runtime, Middle, None, &mutex);
        until(|| holder.level() == LevelId::from(Middle));
        runtime.at(High).run(|| task.boost());
        assert_eq!(holder.level(), Middle.into(), "nothing urgent waits for it");
        go.notify_one();
        over.notify_one();
        holder.get().unwrap();
        for task in [waiter, task] {
            task.get().unwrap();
        }
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

/// While it waits in the pool nobody has the lock's use, and each piece of work that begins may end in the lock's
/// queue.
#[test]
fn a_closure_that_was_handed_a_lock_goes_on_before_what_has_not_begun() {
    ends(|| {
        let runtime = common::runtime(1);
        let (mutex, log) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(Vec::new())));
        let (theirs, order) = (mutex.clone(), log.clone());
        let note = move |what: &'static str| order.blocking_lock().push(what);
        let first = runtime.spawn_fn(move || {
            let guard = mutex.blocking_lock();
            let (told, note_waiter) = (oneshot::channel(), note.clone());
            let waiter = spawn_fn(move || {
                told.0.send(()).unwrap();
                let _guard = theirs.blocking_lock();
                note_waiter("waiter");
            });
            told.1.blocking_recv().unwrap();
            // It is offered the lock, is overtaken, comes, and will be handed the lock.
            drop(guard);
            let guard = mutex.blocking_lock();
            let (done, is_done) = oneshot::channel();
            spawn(async move { done.send(()).unwrap() }).detach();
            is_done.blocking_recv().unwrap();
            let (one, other) = (note.clone(), note);
            let others = [
                spawn_fn(move || one("other")),
                spawn_fn(move || other("other")),
            ];
            drop(guard);
            waiter.get().unwrap();
            others.into_iter().for_each(|other| other.get().unwrap());
        });
        first.get().unwrap();
        assert_eq!(*log.blocking_lock(), ["waiter", "other", "other"]);
    });
}
