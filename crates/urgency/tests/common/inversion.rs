//! What the tests of priority inheritance share: levels, work between them that is always ready, and tasks that hold a
//! lock or wait for one.

#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};
use urgency::{
    JoinHandle, LevelId, Runtime, current_level, scheduling_point,
    sync::{Mutex, Notify},
    yield_now,
};

urgency::levels! { pub App: High > Middle > Low }

/// Middle work that is always ready, and counts its steps.
#[derive(Clone, Default)]
pub struct Crowd {
    pub steps: Arc<AtomicUsize>,
    /// An urgent task waits now.
    pub awaited: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

/// How many contexts the crowd has. One whose worker is taken from it goes on to its next scheduling point,
/// which is a step.
pub const CROWD: usize = 3;

impl Crowd {
    pub fn start(&self, runtime: &Runtime) -> Vec<JoinHandle<()>> {
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

    pub fn end(&self, tasks: Vec<JoinHandle<()>>) {
        self.over.store(true, SeqCst);
        tasks.into_iter().for_each(|task| task.get().unwrap());
    }

    pub fn wait_for_steps(&self) {
        let before = self.steps.load(SeqCst);
        until(|| self.steps.load(SeqCst) > before);
    }
}

pub fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// The one context at the low level waits in its pool. If its worker was taken from it, it comes to its
/// scheduling point when the kernel lets it, and is in no pool before.
pub fn low_waits(runtime: &Runtime) {
    let low = usize::from(LevelId::from(Low).rank());
    until(|| runtime.stats().levels[low].queued == 1);
}

/// A high task that locks, and says how many steps the crowd made between its wait and its acquisition.
pub fn urgent<T: Send + 'static>(
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

/// A task that waits for `mutex`, after it has locked `first`, and then drops both. It waits when this
/// returns.
pub fn waits_for(
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

/// A low task that holds the lock until it is notified, and says its level after that. It holds it when this returns.
pub fn low_holder(runtime: &Runtime, mutex: &Arc<Mutex<()>>) -> (JoinHandle<LevelId>, Arc<Notify>) {
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
    (low, go)
}
