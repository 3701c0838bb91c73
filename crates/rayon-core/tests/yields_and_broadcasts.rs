//! A stack that yields sees all work that it could run, and a broadcast's job runs where it belongs.

use rayon_core::{
    ThreadPoolBuilder, current_thread_index, spawn_broadcast, urgency::pool_at, yield_local,
    yield_now,
};
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
    thread,
    time::Duration,
};
use urgency::Runtime;

urgency::levels! { App: Interactive > Batch }

/// What `f` returns, if it does so at all.
fn within_limit<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = channel();
    thread::spawn(move || {
        let _ = send.send(f());
    });
    let result = receive.recv_timeout(Duration::from_secs(20));
    result.expect("it hangs, or has panicked")
}

#[test]
fn a_yield_runs_the_broadcast_job_of_the_calling_thread() {
    for yielding in [yield_now, yield_local] {
        within_limit(move || {
            let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            pool.install(|| {
                let done = Arc::new(AtomicBool::new(false));
                let sets = done.clone();
                spawn_broadcast(move |_| sets.store(true, SeqCst));
                while !done.load(SeqCst) {
                    yielding();
                }
            });
        });
    }
}

#[test]
fn a_yield_runs_a_job_that_its_owner_keeps_to_itself() {
    for _ in 0..10 {
        within_limit(|| {
            let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            let (both, done) = (Barrier::new(2), AtomicBool::new(false));
            let (tell, told) = channel();
            pool.scope(|s| {
                let (both, done) = (&both, &done);
                s.spawn(move |s| {
                    both.wait();
                    // So that the other one looks for nothing any more.
                    thread::sleep(Duration::from_millis(5));
                    s.spawn(|_| done.store(true, SeqCst));
                    told.recv().unwrap();
                });
                s.spawn(move |_| {
                    both.wait();
                    while !done.load(SeqCst) {
                        yield_now();
                    }
                    tell.send(()).unwrap();
                });
            });
        });
    }
}

#[test]
fn a_broadcast_job_runs_on_its_own_thread_although_that_waits_for_something_else() {
    let seen = within_limit(|| {
        let threads = ThreadPoolBuilder::new()
            .num_threads(2)
            .spawn_handler(|thread| {
                thread::spawn(|| thread.run());
                Ok(())
            });
        let pool = threads.build().unwrap();
        let other = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let (send, seen) = channel();
        pool.install(move || {
            spawn_broadcast(move |context| {
                let here = (context.index(), current_thread_index());
                send.send((here, thread::current().id())).unwrap();
            });
            // The other thread runs its own, and has nothing to do again.
            thread::sleep(Duration::from_millis(50));
            other.install(|| thread::sleep(Duration::from_millis(10)));
        });
        seen.iter().collect::<Vec<_>>()
    });
    let [(first, on), (second, beside)] = seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!([first.1, second.1], [Some(first.0), Some(second.0)]);
    assert_ne!(on, beside);
}

#[test]
fn of_the_broadcast_jobs_of_a_worker_the_most_urgent_runs_first() {
    let runtime = Runtime::builder()
        .workers(1)
        .levels::<App>()
        .build()
        .unwrap();
    let (urgent, batch) = (pool_at(&runtime, Interactive), pool_at(&runtime, Batch));
    let (open, gate) = channel();
    let (inside, is_inside) = channel();
    urgent.spawn(move || {
        inside.send(()).unwrap();
        gate.recv().unwrap();
    });
    is_inside.recv().unwrap();
    let (send, seen) = channel();
    let first = send.clone();
    batch.spawn_broadcast(move |_| first.send("batch").unwrap());
    urgent.spawn_broadcast(move |_| send.send("urgent").unwrap());
    open.send(()).unwrap();
    assert_eq!(seen.iter().collect::<Vec<_>>(), ["urgent", "batch"]);
}
