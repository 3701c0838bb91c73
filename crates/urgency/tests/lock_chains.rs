//! Tasks that hold one lock and wait for the next, with urgent work at the end of the chain: when the last lock is
//! released, the chain unwinds on the worker that releases, without a thread for each link.

mod common;

use common::{ends, with_levels};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};
use urgency::{
    JoinHandle, Runtime, join,
    sync::{Mutex, Notify},
};

urgency::levels! { App: Hi > Lo }

const LINKS: usize = 50;

/// The tasks of a chain whose last holder waits for `go`, and an urgent one that waits for the first lock.
fn chain(runtime: &Runtime, go: &Arc<Notify>) -> Vec<JoinHandle<()>> {
    let locks: Arc<Vec<_>> = Arc::new((0..=LINKS).map(|_| Mutex::new(())).collect());
    let holding = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    let mut wait_until_it_holds = |task| {
        tasks.push(task);
        while holding.load(SeqCst) < tasks.len() {
            thread::yield_now();
        }
    };
    let (theirs, held, go) = (locks.clone(), holding.clone(), go.clone());
    wait_until_it_holds(runtime.at(Lo).spawn(async move {
        let _last = theirs[LINKS].lock().await;
        held.fetch_add(1, SeqCst);
        go.notified().await;
    }));
    for link in (0..LINKS).rev() {
        let (theirs, held) = (locks.clone(), holding.clone());
        wait_until_it_holds(runtime.at(Lo).spawn(async move {
            let _mine = theirs[link].lock().await;
            held.fetch_add(1, SeqCst);
            let _next = theirs[link + 1].lock().await;
        }));
    }
    let asked = holding.clone();
    wait_until_it_holds(runtime.at(Hi).spawn(async move {
        let first = locks[0].lock();
        asked.fetch_add(1, SeqCst);
        drop(first.await);
    }));
    tasks
}

#[test]
fn a_boosted_chain_of_locks_unwinds_without_leaving_a_stack_at_each_link() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = with_levels::<App>(workers);
            let go = Arc::new(Notify::new());
            let tasks = chain(&runtime, &go);
            let before = runtime.stats().total().abandonments;
            go.notify_one();
            for task in tasks {
                task.get().unwrap();
            }
            let stats = runtime.stats();
            let left = stats.total().abandonments - before;
            // Relief may take a worker on a crowded machine.
            assert!(left < LINKS as u64 / 4, "{left} stacks were left");
            assert!(
                stats.threads_peak < LINKS / 4,
                "{} threads",
                stats.threads_peak
            );
        }
    });
}

/// The poll that released the lock goes on, and has a scheduling point in the end, or never.
#[test]
fn a_poll_that_goes_on_after_a_release_gives_way_to_the_urgent_waiter() {
    ends(|| {
        for forks in [true, false] {
            let runtime = with_levels::<App>(1);
            let (lock, go) = (Arc::new(Mutex::new(())), Arc::new(Notify::new()));
            let (holds, done) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(AtomicBool::new(false)),
            );
            let (theirs, held, seen, gone) =
                (lock.clone(), holds.clone(), done.clone(), go.clone());
            let low = runtime.at(Lo).spawn(async move {
                let guard = theirs.lock().await;
                held.store(true, SeqCst);
                gone.notified().await;
                drop(guard);
                while !seen.load(SeqCst) {
                    if forks {
                        join(|| (), || ());
                    }
                    hint::spin_loop();
                }
            });
            while !holds.load(SeqCst) {
                thread::yield_now();
            }
            let asks = Arc::new(AtomicBool::new(false));
            let asked = asks.clone();
            let high = runtime.at(Hi).spawn(async move {
                let wait = lock.lock();
                asked.store(true, SeqCst);
                drop(wait.await);
                done.store(true, SeqCst);
            });
            while !asks.load(SeqCst) {
                thread::yield_now();
            }
            go.notify_one();
            high.get().unwrap();
            low.get().unwrap();
        }
    });
}
