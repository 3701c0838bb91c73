//! A shutdown at the moment at which tasks wait for the first time: what they wait for can never come any more. They
//! are cancelled; that is no panic of theirs, and no error that they unwrap.

mod common;

use common::{Count, Random, ends, in_child, is_child};
use std::{
    future::pending,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use urgency::{
    Runtime, Shutdown, block_on, future, join, life::PanicPolicy, life::task_scope,
    net::UnixStream, scope, spawn, time,
};

const LONG: Duration = Duration::from_secs(1000);

/// How many kinds of waits there are.
const KINDS: u64 = 14;

/// Waits for what cannot come, in one of several ways.
async fn wait(kind: u64) {
    match kind {
        0 => time::sleep(LONG).await,
        1 => time::timeout(LONG, pending()).await.unwrap(),
        2 => {
            let mut ticks = time::interval_at(time::Instant::now() + LONG, LONG);
            ticks.tick().await;
        }
        3 => {
            let (here, _there) = UnixStream::pair().unwrap();
            here.read_exact(&mut [0]).await.unwrap();
        }
        4 => {
            let (here, _there) = UnixStream::pair().unwrap();
            while here.write(&[0; 4096]).await.unwrap() != 0 {}
        }
        5 => spawn(pending::<()>()).await.unwrap(),
        6 => spawn(pending::<()>()).share().await.unwrap(),
        7 => spawn(time::sleep(LONG)).await.unwrap(),
        // Each of the two is polled with a waker of its own.
        8 => drop(future::join_all([time::sleep(LONG), time::sleep(LONG)]).await),
        9 => {
            let scope = task_scope(async |scope| {
                scope.spawn(time::sleep(LONG));
                scope.spawn_fn(|| block_on(time::sleep(LONG)));
            });
            // It is over when its tasks are, however they ended.
            return scope.await;
        }
        // In the middle of a poll, on its stack.
        10 => block_on(time::sleep(LONG)),
        11 => {
            join(
                || block_on(time::sleep(LONG)),
                || block_on(time::sleep(LONG)),
            );
        }
        12 => scope(|s| {
            s.spawn(|| block_on(time::sleep(LONG)));
            s.spawn(|| ());
        }),
        _ => time::sleep_until(time::Instant::now() + LONG).await,
    }
    unreachable!("a wait for what cannot come is over, of kind {kind}");
}

#[test]
fn tasks_that_begin_to_wait_as_their_runtime_ends_are_cancelled_and_never_panic() {
    static PANICS: AtomicU64 = AtomicU64::new(0);
    static TOLD: AtomicU64 = AtomicU64::new(0);
    let me = "tasks_that_begin_to_wait_as_their_runtime_ends_are_cancelled_and_never_panic";
    if !is_child() {
        return in_child(me);
    }
    ends(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, SeqCst);
            usual(panic);
        }));
        let rounds = if cfg!(debug_assertions) { 2_000 } else { 8_000 };
        for round in 0..rounds {
            let policy = PanicPolicy::call(|_| {
                TOLD.fetch_add(1, SeqCst);
            });
            let workers = 1 + round as usize % 2;
            let runtime = Runtime::builder().workers(workers).on_panic(policy);
            let runtime = runtime.build().unwrap();
            let mut random = Random::new(round);
            let captures = Count::default();
            for _ in 0..4 {
                let (kind, capture) = (random.below(KINDS), captures.on_drop());
                let future = async move {
                    let _capture = capture;
                    wait(kind).await;
                };
                if random.below(3) == 0 {
                    // A closure in whose stack it waits. What it gets as an error it hands on.
                    let sleeps = matches!(kind, 0..=2 | 10..);
                    let task = move || sleeps.then(|| block_on(future));
                    runtime.spawn_fn(task).detach();
                } else {
                    runtime.spawn(future).detach();
                }
            }
            (0..random.below(4000)).for_each(|_| std::hint::spin_loop());
            // A closure that sleeps keeps a shutdown until its time is over.
            match random.below(32) {
                0 => {
                    let report = runtime.shutdown_within(Shutdown::Cancel, Duration::ZERO);
                    assert_eq!(report.panicked, 0, "{report:?}");
                }
                1 => {
                    let report = runtime.shutdown_within(Shutdown::Drain, Duration::ZERO);
                    assert_eq!(report.panicked, 0, "{report:?}");
                }
                _ => drop(runtime),
            }
            assert_eq!(PANICS.load(SeqCst), 0, "round {round}");
        }
        assert_eq!((PANICS.load(SeqCst), TOLD.load(SeqCst)), (0, 0));
    });
}
