//! Operations that never have to wait: a task that does many lets its equals run.

mod common;

use common::{all, ends, rounds, runtime};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use urgency::{JoinHandle, Runtime, block_on, spawn, sync::Semaphore, yield_now};

#[test]
fn a_task_that_never_has_to_wait_lets_its_equals_run() {
    ends(|| {
        let runtime = runtime(1);
        let (places, done) = (Semaphore::new(1), Arc::new(AtomicBool::new(false)));
        let theirs = done.clone();
        let (start, started) = std::sync::mpsc::channel();
        let greedy = runtime.spawn(async move {
            let mut rounds = 0u64;
            while !theirs.load(SeqCst) {
                drop(places.acquire().await.unwrap());
                rounds += 1;
                let _ = start.send(());
            }
            rounds
        });
        started.recv().unwrap();
        drop(started);
        let other = runtime.spawn(async move { done.store(true, SeqCst) });
        all([other]);
        assert!(greedy.get().unwrap() > 0);
    });
}

#[test]
fn a_task_that_never_has_to_wait_lets_its_equals_run_where_no_thread_is_left() {
    ends(|| {
        let builder = Runtime::builder().workers(1).thread_limit(3);
        let runtime = builder.build().unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let closures = [(); 8].map(|()| {
            let gate = gate.clone();
            runtime.spawn_fn(move || gate.blocking_acquire().unwrap().forget())
        });
        let (places, done) = (Semaphore::new(1), Arc::new(AtomicBool::new(false)));
        let theirs = done.clone();
        let greedy = runtime.spawn(async move {
            while !theirs.load(SeqCst) {
                drop(places.acquire().await.unwrap());
            }
        });
        let other = runtime.spawn(async move { done.store(true, SeqCst) });
        all([other, greedy]);
        gate.add_permits(8);
        all(closures);
    });
}

#[test]
fn a_synchronous_wait_inside_a_poll_does_more_operations_than_a_poll_may() {
    ends(|| {
        let runtime = runtime(1);
        let many = async || {
            let places = Semaphore::new(1);
            for _ in 0..rounds(10_000) {
                drop(places.acquire().await.unwrap());
            }
        };
        let task = runtime.spawn(async move {
            block_on(many());
            urgency::blocking(|| block_on(many()));
        });
        task.get().unwrap();
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_synchronous_wait_inside_a_poll_lets_its_equals_run() {
    ends(|| {
        let gives_way = || {
            let runtime = runtime(1);
            let (places, done) = (Semaphore::new(1), Arc::new(AtomicBool::new(false)));
            let theirs = done.clone();
            let (start, started) = std::sync::mpsc::channel();
            let greedy = runtime.spawn(async move {
                block_on(async {
                    start.send(()).unwrap();
                    while !theirs.load(SeqCst) {
                        drop(places.acquire().await.unwrap());
                    }
                });
            });
            started.recv().unwrap();
            let other = runtime.spawn(async move { done.store(true, SeqCst) });
            all([other, greedy]);
            runtime.stats().total().reliefs == 0
        };
        // Relief comes between if the machine is crowded.
        assert!((0..20).any(|_| gives_way()));
    });
}

#[test]
fn a_future_of_block_on_that_yields_lets_what_is_ready_go_first() {
    let yields = || {
        let tasks: Vec<_> = (0..20).map(|_| spawn(async {})).collect();
        block_on(async {
            let mut yields = 0;
            while !tasks.iter().all(JoinHandle::is_finished) {
                yield_now().await;
                yields += 1;
            }
            yields
        })
    };
    ends(move || {
        let runtime = runtime(1);
        // One, as in a task. Without turns it is thousands, until the others are relieved.
        let yields = [runtime.run(yields), runtime.spawn_fn(yields).get().unwrap()];
        assert!(yields.iter().all(|&yields| yields < 20), "{yields:?}");
    });
}
