//! Which level may wait for which at run time, on a diamond of levels. The levels that work was created at and boosted
//! to decide, wherever the work runs, and within one runtime only. What a boost reaches.

mod common;

use common::{ends, stolen, with_levels};
use std::{
    future::{pending, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};
use urgency::{
    JoinError, JoinHandle, LevelId, Runtime, blocking, current_level, join,
    level::Level,
    scheduling_point,
    sync::{Mutex, Notify},
    task::JoinSet,
    yield_now,
};

urgency::levels! {
    /// A diamond.
    App: Top > Left > Bottom; Top > Right > Bottom
}

fn runtime(workers: usize) -> Runtime {
    with_levels::<App>(workers)
}

#[test]
fn boosted_work_is_waited_for_from_any_level() {
    let rt = runtime(1);
    let sum = Top.on(&rt).run(|cx| {
        // `chain` waits for work at its own level; the boost reaches that, too.
        let chain = Bottom.spawn_fn(|cx| Bottom.spawn(async |_| 40).get(cx));
        let beside = Right.spawn(async |_| 1).share();
        let boosted = cx.level().spawn(async move |cx| beside.boosted(cx).await);
        Ok::<u32, JoinError>(chain.boost_get(cx)?? + boosted.get(cx)?? + 1)
    });
    assert_eq!(sum.unwrap(), 42);
}

/// A task that returns `value` when it is told to.
fn gated(rt: &Runtime, level: impl Into<LevelId>, value: u32) -> (Arc<Notify>, JoinHandle<u32>) {
    let gate = Arc::new(Notify::new());
    let theirs = gate.clone();
    let task = rt.at(level).spawn(async move {
        theirs.notified().await;
        value
    });
    (gate, task)
}

/// Returns when the only worker has nothing else to do: it takes what is ready in order. Chaos takes it in any order.
fn settle(rt: &Runtime) {
    for _ in 0..if cfg!(urgency_chaos) { 100 } else { 1 } {
        rt.at(Bottom).spawn(async {}).get().unwrap();
    }
}

#[test]
fn boosted_work_is_waited_for_from_a_level_that_is_not_ordered_with_its_own() {
    let rt = runtime(1);
    let found = Right.on(&rt).run(|cx| {
        let gate = Arc::new(Notify::new());
        let theirs = gate.clone();
        let left = Left.spawn(async move |_| {
            theirs.notified().await;
            1
        });
        Bottom.spawn(async move |_| gate.notify_one()).detach();
        left.boost_get(cx)
    });
    assert_eq!(found.unwrap(), 1);
}

#[test]
fn a_boosted_task_waits_for_what_it_spawns_and_for_what_it_could_wait_for_before() {
    let rt = runtime(1);
    let gate = Arc::new(Notify::new());
    let theirs = gate.clone();
    let task = rt.at(Right).spawn(async move {
        let before = urgency::spawn(yield_now());
        theirs.notified().await;
        let after = urgency::spawn(yield_now());
        let levels = (before.level(), after.level());
        (before.await.is_ok(), after.await.is_ok(), levels)
    });
    settle(&rt);
    rt.at(Left).run(|| task.boost());
    gate.notify_one();
    let levels = (Right.id(), Left.id());
    assert_eq!(task.get().unwrap(), (true, true, levels));
}

#[test]
fn what_a_raised_task_spawns_may_wait_for_what_the_task_may_wait_for() {
    let rt = runtime(1);
    for by_lock in [false, true] {
        let (ready, low) = gated(&rt, Right, 1);
        let (gate, lock) = (Arc::new(Notify::new()), Arc::new(Mutex::new(())));
        let (theirs, its, low) = (gate.clone(), lock.clone(), low.share());
        let task = rt.at(Right).spawn(async move {
            let _guard = its.lock().await;
            theirs.notified().await;
            let mut set = JoinSet::new();
            let (task, inner) = (low.clone(), low.clone());
            set.spawn(async move { urgency::spawn(task).await.unwrap() });
            set.spawn_fn(move || inner.get());
            let levels = (current_level(), urgency::spawn(pending::<()>()).level());
            let created =
                urgency::spawn(async { (Right.is_here().is_ok(), Left.is_here().is_ok()) });
            ready.notify_one();
            let found: Vec<_> = set.join_all().await.into_iter().flatten().collect();
            (found, low.await.is_ok(), levels, created.await.unwrap())
        });
        settle(&rt);
        let urgent = by_lock.then(|| rt.at(Left).spawn(async move { drop(lock.lock().await) }));
        if !by_lock {
            rt.at(Left).run(|| task.boost());
        }
        settle(&rt);
        gate.notify_one();
        let spawned = if by_lock { Right.id() } else { Left.id() };
        let found = (vec![1, 1], true, (Left.id(), spawned), (true, false));
        assert_eq!(task.get().unwrap(), found, "by a lock: {by_lock}");
        urgent.into_iter().for_each(|urgent| urgent.get().unwrap());
    }
}

#[test]
fn a_wait_for_work_of_an_allowed_level_is_allowed_while_that_is_boosted_or_inherits() {
    let rt = runtime(1);
    let (gate, task) = gated(&rt, Right, 1);
    let task = task.share();
    settle(&rt);
    rt.at(Left).run(|| task.boost());
    let waits = rt.at(Right).spawn(task);
    settle(&rt);
    gate.notify_one();
    assert_eq!(waits.get().unwrap().unwrap(), 1);

    let (gate, lock) = (Arc::new(Notify::new()), Arc::new(Mutex::new(())));
    let (theirs, its) = (gate.clone(), lock.clone());
    let holder = rt.at(Right).spawn(async move {
        let _guard = its.lock().await;
        theirs.notified().await;
        2
    });
    settle(&rt);
    let urgent = rt.at(Left).spawn(async move { drop(lock.lock().await) });
    settle(&rt);
    assert_eq!(holder.level(), Left.id(), "inherited");
    let waits = rt.at(Right).spawn(holder);
    settle(&rt);
    gate.notify_one();
    assert_eq!(waits.get().unwrap().unwrap(), 2);
    urgent.get().unwrap();
}

#[test]
fn a_stolen_fork_waits_for_whatever_the_code_that_forked_it_may_wait_for() {
    ends(|| {
        let rt = runtime(2);
        let task = rt.at(Bottom).spawn_fn(|| {
            while current_level() != Top.id() {
                scheduling_point();
            }
            let wait = || urgency::at(Bottom).spawn_fn(|| 1).get().unwrap();
            let in_place = wait();
            let inside = || (wait(), blocking(|| join(wait, wait)), stolen(wait));
            (in_place, wait(), stolen(inside))
        });
        rt.at(Top).run(|| task.boost());
        let one = 1;
        assert_eq!(task.get().unwrap(), (one, one, (one, (one, one), one)));
    });
}

#[test]
fn forks_of_a_plain_thread_wait_for_anything_wherever_they_run() {
    mod apart {
        // The last is not below the second: what is not ordered may not wait for each other.
        urgency::levels! { pub(super) Apart: Upper > Lower; Upper > Aside }
    }
    ends(|| {
        let rt = Runtime::builder().workers(2).levels::<apart::Apart>();
        let rt = rt.build().unwrap();
        let wait = || {
            let gate = Arc::new(Notify::new());
            let theirs = gate.clone();
            let awaited = rt
                .at(apart::Lower)
                .spawn(async move { theirs.notified().await });
            let opener = rt.at(apart::Aside).spawn(async move {
                for _ in 0..100 {
                    yield_now().await;
                }
                gate.notify_one();
            });
            (awaited.get().unwrap(), opener.get().unwrap())
        };
        let done = ((), ());
        assert_eq!(rt.run(|| (wait(), stolen(wait))), (done, done));
    });
}

#[test]
fn a_boost_reaches_work_of_which_one_of_two_waits_was_given_up() {
    let rt = runtime(1);
    let shared = rt.at(Bottom).spawn(pending::<()>()).share();
    let (mut one, mut other) = (shared.clone(), shared.clone());
    let task = rt.at(Bottom).spawn(async move {
        poll_fn(|cx| {
            assert!(Pin::new(&mut one).poll(cx).is_pending());
            assert!(Pin::new(&mut other).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(one);
        other.await
    });
    settle(&rt);
    rt.at(Top).run(|| task.boost());
    assert_eq!(shared.level(), Top.id());
}

#[test]
fn code_inside_of_a_blocking_call_has_the_level_of_the_code_around_it() {
    let rt = runtime(2);
    Left.on(&rt).run(|cx| {
        let (inside, sides, spawned) = blocking(|| {
            let spawned = urgency::spawn(pending::<()>()).level();
            (
                current_level(),
                join(current_level, current_level),
                (spawned, rt.spawn(pending::<()>()).level()),
            )
        });
        let left = Left.id();
        assert_eq!((inside, sides, spawned), (left, (left, left), (left, left)));
        let low = rt.at(Bottom).spawn(pending::<()>());
        blocking(|| low.boost());
        assert_eq!(low.level(), left);
        let high = blocking(|| {
            cx.level()
                .spawn_fn(|cx| cx.level().spawn(async |_| 1).get(cx))
        });
        assert_eq!(high.get(cx).unwrap().unwrap(), 1);
    });
    // A plain thread may wait for anything, also there.
    let found =
        rt.run(|| blocking(|| join(|| urgency::at(Bottom).spawn_fn(|| 1).get().unwrap(), || 2)));
    assert_eq!(found, (1, 2));
}

#[test]
fn a_boost_by_code_that_is_not_of_the_same_runtime_changes_nothing() {
    let (rt, other) = (runtime(1), runtime(1));
    let task = rt.at(Bottom).spawn(pending::<()>());
    task.boost();
    other.at(Top).run(|| task.boost());
    assert_eq!(task.level(), Bottom.id());
    rt.at(Right).run(|| task.boost());
    assert_eq!(task.level(), Right.id());
}

#[test]
fn work_of_another_runtime_is_waited_for_from_any_level_and_keeps_its_own() {
    let (rt, other) = (runtime(1), Runtime::builder().workers(1).build().unwrap());
    let (gate, task) = gated(&rt, Bottom, 1);
    let task = task.share();
    let waits = other.spawn(task.clone());
    other.spawn(async {}).get().unwrap();
    assert_eq!(task.level(), Bottom.id());
    gate.notify_one();
    assert_eq!(waits.get().unwrap().unwrap(), 1);
}
