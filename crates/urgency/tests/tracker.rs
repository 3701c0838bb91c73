//! Trackers and cancellation tokens together: a shutdown that lets the tasks finish. Threads for blocking calls.

mod common;

use common::{Count, ends, runtime};
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Waker},
    time::Duration,
};
use urgency::{
    Runtime,
    life::{CancellationToken, TaskTracker},
    runtime::{Builder, Handle},
    task,
    time::timeout,
    yield_now,
};

#[test]
fn a_wait_that_began_at_the_end_of_a_tracker_is_over_though_something_is_tracked_since() {
    let tracker = TaskTracker::new();
    tracker.close();
    let (mut early, token) = (pin!(tracker.wait()), tracker.token());
    let mut late = pin!(tracker.wait());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(early.as_mut().poll(&mut cx).is_ready());
    assert!(late.as_mut().poll(&mut cx).is_pending());
    drop(token);
    assert!(late.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn a_tracker_ends_its_waits_when_it_is_closed_and_all_that_it_tracks_is_gone() {
    ends(|| {
        let runtime = runtime(2);
        let (tracker, token) = (TaskTracker::new(), CancellationToken::new());
        let over = Count::default();
        runtime.block_on(async {
            for n in 0..100 {
                let (kept, token) = (over.on_drop(), token.child_token());
                tracker.spawn(async move {
                    let _kept = kept;
                    assert_ne!(n, 99, "one panics");
                    token
                        .run_until_cancelled(std::future::pending::<()>())
                        .await;
                    yield_now().await;
                });
            }
            let waits = || {
                let (kept, token) = (over.on_drop(), token.clone());
                move || {
                    let _kept = kept;
                    urgency::block_on(token.cancelled_owned());
                }
            };
            tracker.spawn_blocking(waits());
            tracker.spawn_fn(waits());
            // Open, and not empty; open, and empty; closed, and not empty.
            assert!(
                timeout(Duration::ZERO, TaskTracker::new().wait())
                    .await
                    .is_err()
            );
            assert!(timeout(Duration::ZERO, tracker.wait()).await.is_err());
            assert!(tracker.close() && !tracker.close());
            assert!(timeout(Duration::ZERO, tracker.wait()).await.is_err());
        });
        token.cancel();
        runtime.block_on(tracker.wait());
        assert_eq!((over.get(), tracker.len()), (102, 0));
        assert!(tracker.reopen() && !tracker.is_closed());
    });
}

#[test]
fn a_token_of_a_tracker_counts_until_it_and_its_clones_are_dropped() {
    let tracker = TaskTracker::new();
    let token = tracker.token();
    let other = token.task_tracker().token();
    tracker.close();
    let mut wait = pin!(tracker.wait());
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(cx).is_pending());
    let third = token.clone();
    drop((token, other));
    assert!(wait.as_mut().poll(cx).is_pending());
    assert_eq!(tracker.len(), 1);
    drop(third);
    assert!(wait.as_mut().poll(cx).is_ready());
}

/// The captures of a future that never ran.
#[test]
fn what_is_tracked_is_gone_before_it_no_longer_counts() {
    struct Tracked(TaskTracker, Arc<AtomicUsize>);
    impl Drop for Tracked {
        fn drop(&mut self) {
            self.1.store(self.0.len(), SeqCst);
        }
    }
    let (tracker, counted) = (TaskTracker::new(), Arc::new(AtomicUsize::new(0)));
    let tracked = Tracked(tracker.clone(), counted.clone());
    drop(tracker.track_future(async move { drop(tracked) }));
    assert_eq!((counted.load(SeqCst), tracker.len()), (1, 0));
}

#[test]
fn a_guard_cancels_its_token_unless_it_is_disarmed() {
    let root = CancellationToken::new();
    let guard = root.child_token().drop_guard();
    let token = guard.disarm();
    assert!(!token.is_cancelled());
    drop(token.clone().drop_guard());
    assert!(token.is_cancelled() && !root.is_cancelled());
}

#[test]
fn closures_for_blocking_calls_all_block_at_once_on_one_worker() {
    ends(|| {
        let runtime = runtime(1);
        let all = Arc::new(Barrier::new(20));
        let closures: Vec<_> = (0..20)
            .map(|_| {
                let all = all.clone();
                runtime.spawn_blocking(move || all.wait())
            })
            .collect();
        let waits = closures.into_iter().map(|closure| closure.get().unwrap());
        assert_eq!(waits.filter(|wait| wait.is_leader()).count(), 1);
        // In async code, around one call.
        let (tell, told) = mpsc::channel();
        let waits = runtime.spawn(async move { task::block_in_place(|| told.recv().unwrap()) });
        runtime.spawn(async move { tell.send(3).unwrap() });
        assert_eq!(waits.get().unwrap(), 3);
    });
}

#[test]
fn a_handle_of_a_runtime_spawns_on_it_and_does_not_keep_it_alive() {
    ends(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.stats().workers.len(), 1);
        let handle = runtime.handle().clone();
        let theirs = handle.clone();
        let inner = std::thread::spawn(move || theirs.block_on(async { Handle::current() }));
        let inner = inner.join().unwrap();
        let workers = async { Runtime::current().stats().workers.len() };
        assert_eq!(inner.spawn(workers).get().unwrap(), 1);
        assert_eq!(handle.spawn_blocking(|| 2).get().unwrap(), 2);
        drop(runtime);
        assert!(handle.spawn(async {}).get().unwrap_err().is_cancelled());
    });
}
