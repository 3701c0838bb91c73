//! What the crate's documentation does not guarantee: urgent work that waits for less urgent work by anything but a
//! handle or a mutex is not checked, and inherits nothing. It is late by what runs between the two levels, and no
//! later: nothing hangs.

mod common;

use common::{ends, still_works, with_levels};
use std::{
    future::Future,
    hint,
    pin::Pin,
    sync::{Arc, Condvar, Mutex as Foreign, mpsc::channel},
    time::{Duration, Instant},
};
use urgency::{
    LevelId, Runtime, block_on,
    net::UnixStream,
    scheduling_point,
    sync::{Barrier, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch},
    task::TaskTracker,
};

urgency::levels! { App: Hi > Mid > Lo }

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;
type Tell = Box<dyn FnOnce() + Send>;

/// A wait, and what ends it; of each kind.
fn waits() -> Vec<(Wait, Tell)> {
    let (once, told_once) = oneshot::channel();
    let (many, mut told_many) = mpsc::unbounded_channel();
    let (watched, mut watching) = watch::channel(0);
    let (all, mut told_all) = broadcast::channel(4);
    let notify = Arc::new(Notify::new());
    let notified = notify.clone();
    let semaphore = Arc::new(Semaphore::new(0));
    let acquires = semaphore.clone();
    let barrier = Arc::new(Barrier::new(2));
    let arrives = barrier.clone();
    let lock = Arc::new(RwLock::new(()));
    let guard = lock.clone().try_write_owned().unwrap();
    let (wire, end) = UnixStream::pair().unwrap();
    let tracker = TaskTracker::new();
    let member = tracker.token();
    tracker.close();
    // These two wait in the kernel, without a word to the scheduler.
    let (foreign, told_foreign) = channel();
    let told = Arc::new((Foreign::new(false), Condvar::new()));
    let tells = told.clone();
    vec![
        (
            Box::pin(async { told_once.await.unwrap() }) as Wait,
            Box::new(|| once.send(()).unwrap()) as Tell,
        ),
        (
            Box::pin(async move { told_many.recv().await.unwrap() }),
            Box::new(move || many.send(()).unwrap()),
        ),
        (
            Box::pin(async move {
                watching.changed().await.unwrap();
                assert_eq!(*watching.borrow(), 1);
            }),
            Box::new(move || watched.send(1).unwrap()),
        ),
        (
            Box::pin(async move { told_all.recv().await.unwrap() }),
            Box::new(move || assert_eq!(all.send(()).unwrap(), 1)),
        ),
        (
            Box::pin(async move { notified.notified().await }),
            Box::new(move || notify.notify_one()),
        ),
        (
            Box::pin(async move { drop(acquires.acquire().await.unwrap()) }),
            Box::new(move || semaphore.add_permits(1)),
        ),
        (
            Box::pin(async move {
                let _leads = arrives.wait().await;
            }),
            Box::new(move || {
                let _leads = barrier.blocking_wait();
            }),
        ),
        (
            Box::pin(async move { drop(lock.read().await) }),
            Box::new(move || drop(guard)),
        ),
        (
            Box::pin(async move { drop(wire.read_exact(&mut [0]).await) }),
            Box::new(move || block_on(end.write_all(&[1])).unwrap()),
        ),
        (
            Box::pin(async move { tracker.wait().await }),
            Box::new(move || drop(member)),
        ),
        (
            Box::pin(async move { told_foreign.recv().unwrap() }),
            Box::new(move || foreign.send(()).unwrap()),
        ),
        (
            Box::pin(async move {
                let told = told.1.wait_while(told.0.lock().unwrap(), |told| !*told);
                drop(told.unwrap());
            }),
            Box::new(move || {
                *tells.0.lock().unwrap() = true;
                tells.1.notify_all();
            }),
        ),
    ]
}

/// A loop without scheduling points.
fn compute() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(3) {
        hint::spin_loop();
    }
}

fn start(
    runtime: &Runtime,
    level: impl Into<LevelId>,
    blocks: bool,
    wait: Wait,
) -> urgency::JoinHandle<()> {
    if blocks {
        runtime.at(level).spawn_fn(move || block_on(wait))
    } else {
        runtime.at(level).spawn(wait)
    }
}

#[test]
fn urgent_work_that_waits_for_less_urgent_work_unchecked_is_late_and_does_not_hang() {
    ends(|| {
        for workers in [1, 2] {
            for blocks in [false, true] {
                let runtime = with_levels::<App>(workers);
                let (waits, tells): (Vec<_>, Vec<_>) = waits().into_iter().unzip();
                let waiting: Vec<_> = waits
                    .into_iter()
                    .map(|wait| start(&runtime, Hi, blocks, wait))
                    .collect();
                let between: Vec<_> = (0..4).map(|_| runtime.at(Mid).spawn_fn(compute)).collect();
                for tell in tells {
                    runtime.at(Lo).spawn_fn(tell).detach();
                }
                for task in waiting.into_iter().chain(between) {
                    task.get().unwrap();
                }
                still_works(&runtime);
            }
        }
    });
}

/// Less urgent code keeps a lock of the standard library, and comes to a scheduling point, where it is abandoned.
#[test]
fn urgent_work_that_waits_for_a_foreign_lock_is_late_by_the_work_between_and_does_not_hang() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = with_levels::<App>(workers);
            let lock = Arc::new(Foreign::new(()));
            let (keep, kept) = channel();
            let keeps = lock.clone();
            let keeper = runtime.at(Lo).spawn_fn(move || {
                let guard = keeps.lock().unwrap();
                keep.send(()).unwrap();
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(10) {
                    scheduling_point();
                }
                drop(guard);
            });
            kept.recv().unwrap();
            let waits = |_| {
                let lock = lock.clone();
                runtime.at(Hi).spawn_fn(move || drop(lock.lock().unwrap()))
            };
            let waiting: Vec<_> = (0..4).map(waits).collect();
            let between: Vec<_> = (0..4).map(|_| runtime.at(Mid).spawn_fn(compute)).collect();
            for task in waiting.into_iter().chain(between) {
                task.get().unwrap();
            }
            keeper.get().unwrap();
            still_works(&runtime);
        }
    });
}
