//! A stranger's program: a lock that each leaf holds across a fork, which urgent requests need as well, and a foreign
//! lock under which calls sleep, at each level.

mod common;

use common::{ends, with_levels};
use std::{
    sync::{Arc, Mutex as StdMutex},
    thread,
    time::{Duration, Instant},
};
use urgency::{Runtime, Shutdown, join, sync::Mutex, time::sleep};

urgency::levels! { App: Interactive > Usual > Batch }

fn tree(depth: u32, leaf: Duration, lock: &Mutex<u64>) {
    if depth > 0 {
        let half = || tree(depth - 1, leaf, lock);
        join(half, half);
        return;
    }
    let end = Instant::now() + leaf;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    let mut held = lock.blocking_lock();
    let (one, other) = join(|| 1, || 1);
    *held += one + other;
}

fn program(workers: usize, leaf: Duration, depth: u32) {
    let runtime: Runtime = with_levels::<App>(workers);
    let lock = Arc::new(Mutex::new(0));
    let foreign = Arc::new(StdMutex::new(0));
    let of_batch = lock.clone();
    let batch = runtime
        .at(Batch)
        .spawn_fn(move || tree(depth, leaf, &of_batch));
    let call = |number: usize| {
        let foreign = foreign.clone();
        let call = move || {
            let mut held = foreign.lock().unwrap();
            thread::sleep(Duration::from_millis(2));
            *held += 1;
        };
        match number % 3 {
            0 => runtime.at(Interactive).spawn_fn(call),
            1 => runtime.at(Usual).spawn_fn(call),
            _ => runtime.at(Batch).spawn_fn(call),
        }
    };
    let calls: Vec<_> = (0..6).map(call).collect();
    let of_requests = lock.clone();
    let requests = runtime.at(Interactive).spawn(async move {
        for _ in 0..20 {
            sleep(Duration::from_millis(1)).await;
            *of_requests.lock().await += 1;
        }
    });
    requests.get().unwrap();
    common::all(calls);
    batch.get().unwrap();
    assert_eq!(*foreign.lock().unwrap(), 6);
    assert_eq!(*lock.blocking_lock(), 20 + (2 << depth));
    let report = runtime.shutdown(Shutdown::Drain);
    assert_eq!((report.finished, report.panicked), (8, 0));
}

#[test]
fn all_of_a_program_with_locks_across_forks_and_calls_that_sleep_at_each_level_ends() {
    for workers in [1, 2, 8] {
        ends(move || program(workers, Duration::from_micros(40), 8));
        ends(move || program(workers, Duration::from_millis(40), 3));
    }
}
