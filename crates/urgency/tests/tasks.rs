//! Tasks: spawn, wait, cancel, share; closures that block; shutdown accounts.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use urgency::{JoinErrorKind, Runtime, Shutdown, spawn, spawn_fn, yield_now};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

#[test]
fn a_tree_of_tasks_is_awaited() {
    fn tree(depth: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                return 1;
            }
            let left = spawn(tree(depth - 1));
            let right = tree(depth - 1).await;
            yield_now().await;
            left.await.unwrap() + right
        })
    }
    for workers in [1, 2, 5] {
        assert_eq!(runtime(workers).block_on(tree(10)), 1024);
    }
}

#[test]
fn closures_block_on_a_single_worker() {
    fn nested(depth: u32) -> u32 {
        if depth == 0 {
            return 1;
        }
        let inner = spawn_fn(move || nested(depth - 1));
        // `get` would run it on this stack.
        urgency::block_on(inner).unwrap() + 1
    }
    let runtime = runtime(1);
    assert_eq!(runtime.run(|| nested(50)), 51);
    assert!(
        runtime.stats().threads_peak > 10,
        "each waiting closure is a stack"
    );
}

#[test]
fn async_code_joins_and_closures_await() {
    let runtime = runtime(2);
    let sum = runtime.block_on(async {
        let handles: Vec<_> = (0..100u64)
            .map(|i| {
                spawn(async move {
                    let (a, b) = urgency::join(|| i, || i * 2);
                    spawn_fn(move || urgency::block_on(async move { a + b }))
                        .await
                        .unwrap()
                })
            })
            .collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 3 * 4950);
}

#[test]
fn a_panic_reaches_its_waiter() {
    let runtime = runtime(2);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async { spawn(async { panic!("on purpose") }).await.unwrap() })
    }));
    assert!(caught.is_err());
    assert_eq!(
        runtime.block_on(async { spawn(async { 1 }).await.unwrap() }),
        1
    );
}

#[test]
fn a_cancelled_task_reports_it() {
    let runtime = runtime(2);
    let handle = runtime.spawn(std::future::pending::<()>());
    handle.abort();
    assert_eq!(handle.get().unwrap_err().kind(), JoinErrorKind::Cancelled);
}

#[test]
fn shutdown_accounts_for_every_task() {
    let runtime = runtime(2);
    let done = Arc::new(AtomicUsize::new(0));
    for i in 0..1000 {
        let done = done.clone();
        if i % 10 == 0 {
            runtime.spawn(std::future::pending::<()>()).detach();
        } else {
            runtime
                .spawn(async move {
                    yield_now().await;
                    done.fetch_add(1, Relaxed);
                })
                .detach();
        }
    }
    while done.load(Relaxed) < 900 {
        std::thread::yield_now();
    }
    let report = runtime.shutdown_within(Shutdown::Drain, Duration::from_millis(300));
    assert_eq!(report.spawned, 1000);
    assert_eq!(report.left, 0);
    assert_eq!(report.cancelled, 100);
    assert_eq!(report.finished, 900);
    assert_eq!(done.load(Relaxed), 900);
}

#[test]
fn waiting_after_shutdown_is_an_error() {
    let runtime = runtime(1);
    let pending = runtime.spawn(std::future::pending::<()>());
    let report = runtime.shutdown(Shutdown::Cancel);
    assert_eq!((report.cancelled, report.left), (1, 0));
    assert!(pending.get().is_err());
}

#[test]
fn dropping_a_runtime_does_not_hang() {
    let runtime = runtime(2);
    let pending = runtime.spawn(std::future::pending::<()>());
    runtime
        .spawn_fn(|| std::thread::sleep(Duration::from_millis(50)))
        .detach();
    drop(runtime);
    assert_eq!(pending.get().unwrap_err().kind(), JoinErrorKind::ShutDown);
}

#[test]
fn a_blocking_call_frees_its_worker() {
    let runtime = runtime(1);
    let (send, receive) = std::sync::mpsc::channel();
    let blocked = runtime.spawn_fn(move || urgency::blocking(|| receive.recv().unwrap()));
    let sender = runtime.spawn(async move { send.send(7).unwrap() });
    assert_eq!(blocked.get().unwrap(), 7);
    sender.get().unwrap();
}

#[test]
fn an_undeclared_blocking_call_is_relieved() {
    let runtime = runtime(1);
    let (send, receive) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let blocked = runtime.spawn_fn(move || {
        tell.send(()).unwrap();
        receive.recv().unwrap()
    });
    told.recv().unwrap();
    let sender = runtime.spawn(async move { send.send(7).unwrap() });
    assert_eq!(blocked.get().unwrap(), 7);
    sender.get().unwrap();
    assert!(runtime.stats().total().reliefs >= 1);
}

#[test]
fn a_declared_blocking_call_may_fork_and_spawn_in_its_own_runtime() {
    let runtime = runtime(1);
    let sum = runtime.spawn_fn(|| {
        urgency::blocking(|| {
            let (a, b) = urgency::join(|| 1, || 2);
            a + b + spawn(async { 3 }).get().unwrap()
        })
    });
    assert_eq!(sum.get().unwrap(), 6);
    assert_eq!(runtime.shutdown(Shutdown::Drain).spawned, 2);
}
