//! How many workers one expiry of relief takes from stacks whose threads sleep in the kernel.

use super::steps::{Batch, Urgent, runtime};
use crate::{Runtime, sched::worker::NO_LEVEL};
use std::{
    array,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const WORKERS: usize = 8;

/// How often it is tried: an expiry may come before all of the waiting work has been inserted.
const TRIES: usize = 20;

/// All workers' threads sleep.
fn all_sleep(runtime: &Runtime) -> bool {
    let core = &runtime.shared().core;
    core.workers.iter().all(|worker| {
        let holder = core.holder(worker);
        worker.level() != NO_LEVEL && holder.is_some_and(|stack| stack.sleeps())
    })
}

/// Blocks all workers, and runs `below` there beside. How many workers the expiry has taken that took the most.
fn most_relieved(below: impl FnOnce(&Runtime)) -> usize {
    let runtime = runtime(WORKERS, Some(WORKERS));
    let core = &runtime.shared().core;
    let (tell, told) = mpsc::channel::<()>();
    let told = Arc::new(Mutex::new(told));
    let mut blocked = Vec::new();
    let limit = Instant::now() + Duration::from_secs(60);
    while !all_sleep(&runtime) {
        assert!(Instant::now() < limit, "some worker is not blocked");
        // An expiry may take a worker from one of them for another one that has not begun.
        if blocked.len() < WORKERS || core.idle.any() {
            let told = told.clone();
            let wait = move || told.lock().unwrap().recv().unwrap();
            blocked.push(runtime.at(Urgent).spawn_fn(wait));
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
    core.most_relieved.store(0, SeqCst);
    below(&runtime);
    blocked.iter().for_each(|_| tell.send(()).unwrap());
    blocked.into_iter().for_each(|task| task.get().unwrap());
    core.most_relieved.load(SeqCst)
}

/// Comes back when all workers are here at once.
fn meet(met: &AtomicUsize) {
    met.fetch_add(1, SeqCst);
    while met.load(SeqCst) < WORKERS {
        thread::yield_now();
    }
}

fn assert_all_at_one_expiry(below: fn(&Runtime)) {
    let most = (0..TRIES).map(|_| most_relieved(below));
    let most: Vec<_> = most.take_while(|most| *most < WORKERS).collect();
    assert!(most.len() < TRIES, "workers for each expiry: {most:?}");
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn all_blocked_threads_lose_their_workers_to_less_urgent_tasks_at_one_expiry() {
    assert_all_at_one_expiry(|runtime| {
        let met = Arc::new(AtomicUsize::new(0));
        let tasks: [_; WORKERS] = array::from_fn(|_| {
            let met = met.clone();
            runtime.at(Batch).spawn_fn(move || meet(&met))
        });
        tasks.into_iter().for_each(|task| task.get().unwrap());
    });
}
