//! One sender and many receivers: broadcast, watch, promise.

mod common;

use common::{ends, poll, rounds, runtime};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::Poll,
};
use urgency::sync::{
    Barrier, BrokenPromise,
    broadcast::{
        self,
        error::{RecvError, TryRecvError},
    },
    promise, watch,
};

#[test]
fn each_receiver_gets_each_message_and_a_slow_one_is_told_how_many_it_missed() {
    let (sender, mut slow) = broadcast::channel(2);
    let mut fast = sender.subscribe();
    for n in 0..5 {
        assert_eq!(sender.send(n).unwrap(), 2);
        assert_eq!(fast.try_recv(), Ok(n));
    }
    assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(3)));
    assert_eq!((slow.try_recv(), slow.try_recv()), (Ok(3), Ok(4)));
    assert_eq!(slow.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    assert_eq!(fast.blocking_recv(), Err(RecvError::Closed));
}

#[test]
fn a_message_that_everybody_got_is_not_kept() {
    let message = Arc::new(());
    let (sender, mut one) = broadcast::channel(4);
    let (mut two, three) = (sender.subscribe(), sender.subscribe());
    sender.send(message.clone()).unwrap();
    drop(one.try_recv());
    drop(two.try_recv());
    assert_eq!(Arc::strong_count(&message), 2);
    drop(three);
    assert_eq!(Arc::strong_count(&message), 1);
    drop((one, two));
    assert!(sender.send(message).is_err());
}

#[test]
fn broadcast_to_tasks_loses_nothing_that_fits() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, receiver) = broadcast::channel(2000);
        let receivers: Vec<_> = (0..4)
            .map(|_| {
                let mut receiver = receiver.resubscribe();
                runtime.spawn(async move {
                    let mut sum = 0;
                    while let Ok(n) = receiver.recv().await {
                        sum += n;
                    }
                    sum
                })
            })
            .collect();
        (0..rounds(1000)).for_each(|n| assert_eq!(sender.send(n).unwrap(), 5));
        drop((sender, receiver));
        for receiver in receivers {
            assert_eq!(receiver.get().unwrap(), (0..rounds(1000)).sum::<usize>());
        }
    });
}

#[test]
fn a_watcher_sees_the_latest_value_and_the_end() {
    let (sender, mut receiver) = watch::channel(0);
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(receiver.blocking_changed(), Ok(()));
    assert_eq!(*receiver.borrow(), 2);
    let mut next = Box::pin(receiver.changed());
    assert!(poll(next.as_mut()).is_pending());
    sender.send_modify(|n| *n += 1);
    assert_eq!(poll(next.as_mut()), Poll::Ready(Ok(())));
    drop(next);
    assert_eq!(*receiver.borrow(), 3);
    let mut closed = Box::pin(sender.closed());
    assert!(poll(closed.as_mut()).is_pending());
    let late = sender.subscribe();
    drop(late);
    sender.send(4).unwrap();
    drop(closed);
    drop(sender);
    assert_eq!(receiver.blocking_changed(), Ok(()));
    assert_eq!(*receiver.borrow(), 4);
    assert!(receiver.blocking_changed().is_err());
}

#[test]
fn a_look_holds_up_a_change_in_the_values_place_and_not_a_new_value() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, receiver) = watch::channel(vec![1]);
        let look = receiver.borrow();
        sender.send(vec![2]).unwrap();
        assert_eq!(*look, [1], "a look stays as it is");
        drop(look);
        let look = receiver.borrow();
        let changed = Arc::new(AtomicBool::new(false));
        let theirs = changed.clone();
        let task = runtime.spawn_fn(move || {
            sender.send_modify(|list| list.push(3));
            theirs.store(true, SeqCst);
            sender.send_replace(vec![])
        });
        for _ in 0..100 {
            std::thread::yield_now();
        }
        assert!(!changed.load(SeqCst) && *look == [2]);
        drop(look);
        assert_eq!(task.get().unwrap(), [2, 3]);
        assert!(receiver.borrow().is_empty());
    });
}

#[test]
fn concurrent_changes_of_a_watched_value_are_all_made() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, receiver) = watch::channel(0);
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let sender = sender.clone();
                runtime.spawn_fn(move || {
                    (0..rounds(200)).for_each(|_| sender.send_modify(|n| *n += 1))
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        assert_eq!(*receiver.borrow(), 4 * rounds(200));
    });
}

#[test]
fn a_promise_is_filled_for_all_or_broken_for_all() {
    ends(|| {
        let runtime = runtime(2);
        for fills in [true, false] {
            let (filler, promise) = promise::promise();
            let waiters: Vec<_> = (0..6)
                .map(|n| {
                    let promise = promise.clone();
                    if n % 2 == 0 {
                        runtime.spawn(async move { promise.wait().await.copied() })
                    } else {
                        runtime.spawn_fn(move || promise.get().copied())
                    }
                })
                .collect();
            assert!(promise.try_get().is_none());
            if fills {
                filler.fill(5);
            } else {
                drop(filler);
            }
            for waiter in waiters {
                let expected = if fills { Ok(5) } else { Err(BrokenPromise) };
                assert_eq!(waiter.get().unwrap(), expected);
            }
        }
    });
}

/// A task that does so without end lets its equals run, at the suspensions that it owes them.
fn lets_its_equals_run<F>(step: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send,
{
    let step = Arc::new(step);
    ends(move || {
        let gives_way = || {
            let runtime = runtime(1);
            let (step, done) = (step.clone(), Arc::new(AtomicBool::new(false)));
            let theirs = done.clone();
            let (start, started) = std::sync::mpsc::channel();
            let greedy = runtime.spawn(async move {
                start.send(()).unwrap();
                while !theirs.load(SeqCst) {
                    step().await;
                }
            });
            started.recv().unwrap();
            let other = runtime.spawn(async move { done.store(true, SeqCst) });
            other.get().unwrap();
            greedy.get().unwrap();
            runtime.stats().total().reliefs == 0
        };
        // Relief comes between if the machine is crowded.
        assert!((0..20).any(|_| gives_way()));
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_watch_a_promise_and_a_barrier_that_need_not_wait_let_equals_run() {
    let (sender, receiver) = watch::channel(0);
    let sender = Arc::new(sender);
    lets_its_equals_run(move || {
        let (sender, mut receiver) = (sender.clone(), receiver.clone());
        async move {
            sender.send(1).unwrap();
            receiver.changed().await.unwrap();
        }
    });
    let (_sender, receiver) = watch::channel(0);
    lets_its_equals_run(move || {
        let mut receiver = receiver.clone();
        async move { assert!(receiver.wait_for(|_| true).await.is_ok()) }
    });
    let (sender, _) = watch::channel(0);
    let sender = Arc::new(sender);
    lets_its_equals_run(move || {
        let sender = sender.clone();
        async move { sender.closed().await }
    });
    let (filler, promise) = promise::promise();
    filler.fill(1);
    let theirs = promise.clone();
    lets_its_equals_run(move || {
        let promise = theirs.clone();
        async move { assert_eq!(promise.wait().await, Ok(&1)) }
    });
    let barrier = Arc::new(Barrier::new(1));
    lets_its_equals_run(move || {
        let barrier = barrier.clone();
        async move { assert!(barrier.wait().await.is_leader()) }
    });
}
