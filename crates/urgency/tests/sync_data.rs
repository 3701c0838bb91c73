//! The primitives with data and events: reader-writer lock, condition variable, barrier, once cell,
//! broadcast, watch, promise; and several futures at once.

mod common;

use common::{ends, rounds, runtime};
use std::{
    future::{Future, pending, ready},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
};
use urgency::{
    block_on,
    future::{Either, join_all, race, race_all, try_join, try_join_all, zip},
    select,
    sync::{
        Barrier, BrokenPromise, Condvar, Mutex, OnceCell, RwLock, RwLockWriteGuard, SetError,
        broadcast::{
            self,
            error::{RecvError, TryRecvError},
        },
        oneshot, promise, watch,
    },
    yield_now,
};

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn readers_share_and_writers_do_not_and_no_reader_overtakes_a_writer() {
    let lock = RwLock::new(1);
    let (one, two) = (lock.try_read().unwrap(), lock.try_read().unwrap());
    let mut writer = Box::pin(lock.write());
    assert!(poll(writer.as_mut()).is_pending());
    assert!(lock.try_read().is_err(), "behind the writer");
    let mut reader = Box::pin(lock.read());
    assert!(poll(reader.as_mut()).is_pending());
    drop((one, two));
    let Poll::Ready(mut guard) = poll(writer.as_mut()) else {
        panic!("the lock was handed over");
    };
    *guard = 2;
    assert!(poll(reader.as_mut()).is_pending());
    let guard = RwLockWriteGuard::downgrade(guard);
    assert!(matches!(poll(reader.as_mut()), Poll::Ready(seen) if *seen == 2));
    assert!(lock.try_write().is_err());
    drop(guard);
}

#[test]
fn a_writer_that_is_dropped_lets_the_readers_behind_it_go_on() {
    let lock = RwLock::new(());
    let held = lock.try_read().unwrap();
    let mut writer = Box::pin(lock.write());
    let mut reader = Box::pin(lock.read());
    assert!(poll(writer.as_mut()).is_pending() && poll(reader.as_mut()).is_pending());
    drop(writer);
    assert!(poll(reader.as_mut()).is_ready());
    drop(held);
}

#[test]
fn an_owned_guard_goes_to_another_task_and_keeps_the_data_until_it_is_dropped() {
    let (counted, lock) = {
        let counted = Arc::new(0);
        (counted.clone(), Arc::new(RwLock::new(counted)))
    };
    let (one, two) = (lock.clone().try_read_owned(), lock.clone().try_read_owned());
    assert!(lock.clone().try_write_owned().is_err());
    drop(two);
    let mut writing = pin!(lock.clone().write_owned());
    assert!(poll(writing.as_mut()).is_pending(), "one reader is left");
    let reading = urgency::spawn(async move { **one.expect("nobody wrote") });
    assert_eq!(reading.get().unwrap(), 0);
    let Poll::Ready(mut guard) = poll(writing.as_mut()) else {
        panic!("the last reader has gone");
    };
    assert!(lock.try_read().is_err() && lock.clone().try_read_owned().is_err());
    drop(lock);
    *guard = Arc::new(1);
    assert_eq!(Arc::strong_count(&counted), 1);
    let written = Arc::downgrade(&guard);
    assert_eq!(**guard, 1);
    let dropping = urgency::spawn(async move { drop(guard) });
    dropping.get().unwrap();
    assert!(
        written.upgrade().is_none(),
        "the guard was the last that kept it"
    );
}

#[test]
fn readers_never_see_half_of_a_write() {
    ends(|| {
        let runtime = runtime(2);
        let lock = Arc::new(RwLock::new((0, 0)));
        let tasks: Vec<_> = (0..6)
            .map(|n| {
                let lock = lock.clone();
                runtime.spawn(async move {
                    for _ in 0..rounds(200) {
                        if n % 3 == 0 {
                            let mut pair = lock.write().await;
                            pair.0 += 1;
                            yield_now().await;
                            pair.1 += 1;
                        } else {
                            let pair = lock.read().await;
                            assert_eq!(pair.0, pair.1);
                            yield_now().await;
                        }
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        assert_eq!(*lock.blocking_read(), (2 * rounds(200), 2 * rounds(200)));
    });
}

#[test]
fn consumers_that_wait_for_a_condition_get_each_item_once() {
    ends(|| {
        let runtime = runtime(2);
        let shared = Arc::new((Mutex::new((0, false)), Condvar::new()));
        let consumers: Vec<_> = (0..4)
            .map(|n| {
                let shared = shared.clone();
                let consume = async move {
                    let mut got = 0;
                    loop {
                        let state = shared.0.lock().await;
                        let empty = |state: &mut (usize, bool)| state.0 == 0 && !state.1;
                        let mut state = shared.1.wait_while(state, empty).await;
                        if state.0 == 0 {
                            return got;
                        }
                        state.0 -= 1;
                        got += 1;
                    }
                };
                if n % 2 == 0 {
                    runtime.spawn(consume)
                } else {
                    runtime.spawn_fn(|| block_on(consume))
                }
            })
            .collect();
        for _ in 0..rounds(500) {
            shared.0.blocking_lock().0 += 1;
            shared.1.notify_one();
        }
        shared.0.blocking_lock().1 = true;
        shared.1.notify_all();
        let got: usize = consumers.into_iter().map(|c| c.get().unwrap()).sum();
        assert_eq!(got, rounds(500));
    });
}

#[test]
fn a_notification_handed_to_a_waiter_that_is_dropped_goes_to_the_next_and_none_is_stored() {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    changed.notify_one();
    let mut a = Box::pin(changed.wait(mutex.try_lock().unwrap()));
    assert!(poll(a.as_mut()).is_pending(), "nothing was stored");
    let mut b = Box::pin(changed.wait(mutex.try_lock().unwrap()));
    assert!(poll(b.as_mut()).is_pending());
    changed.notify_one();
    drop(a);
    assert!(poll(b.as_mut()).is_ready());
}

#[test]
fn all_pass_a_barrier_together_each_round_and_one_leads() {
    ends(|| {
        let runtime = runtime(2);
        let barrier = Arc::new(Barrier::new(5));
        let (came, led) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..5)
            .map(|_| {
                let (barrier, came, led) = (barrier.clone(), came.clone(), led.clone());
                runtime.spawn(async move {
                    for round in 1..=rounds(50) {
                        came.fetch_add(1, SeqCst);
                        led.fetch_add(usize::from(barrier.wait().await.is_leader()), SeqCst);
                        let came = came.load(SeqCst);
                        assert!((5 * round..5 * round + 5).contains(&came));
                        barrier.wait().await;
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        assert_eq!(led.load(SeqCst), rounds(50));
    });
}

#[test]
fn a_dropped_arrival_does_not_count() {
    let barrier = Barrier::new(2);
    let mut gone = Box::pin(barrier.wait());
    assert!(poll(gone.as_mut()).is_pending());
    drop(gone);
    let mut waits = Box::pin(barrier.wait());
    assert!(poll(waits.as_mut()).is_pending());
    let last = poll(Box::pin(barrier.wait()).as_mut());
    assert!(matches!(last, Poll::Ready(last) if last.is_leader()));
    let waited = poll(waits.as_mut());
    assert!(matches!(waited, Poll::Ready(waited) if !waited.is_leader()));
}

#[test]
fn a_cell_is_filled_once_and_after_a_failure_by_the_next() {
    ends(|| {
        let runtime = runtime(2);
        let (cell, made) = (Arc::new(OnceCell::new()), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (cell, made) = (cell.clone(), made.clone());
                runtime.spawn(async move {
                    let make = async || {
                        yield_now().await;
                        match made.fetch_add(1, SeqCst) {
                            0..3 => Err("not yet"),
                            n => Ok(n),
                        }
                    };
                    cell.get_or_try_init(make).await.copied()
                })
            })
            .collect();
        let results: Vec<_> = tasks.into_iter().map(|task| task.get().unwrap()).collect();
        assert_eq!(results.iter().filter(|r| r.is_err()).count(), 3);
        assert_eq!(results.iter().filter(|r| **r == Ok(3)).count(), 5);
        assert_eq!(cell.set(9), Err(SetError::AlreadyInitializedError(9)));
    });
}

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

#[test]
fn of_two_that_are_ready_the_first_wins_and_the_others_are_dropped() {
    assert_eq!(block_on(race(ready(1), ready(2))), Either::First(1));
    assert_eq!(block_on(race(pending::<()>(), ready(2))), Either::Second(2));
    let (sender, receiver) = oneshot::channel::<()>();
    assert_eq!(block_on(race(receiver, ready(()))), Either::Second(()));
    assert!(sender.is_closed(), "the loser was dropped");
    let (place, output) = block_on(race_all([
        Box::pin(async { pending::<u32>().await }) as Pin<Box<dyn Future<Output = u32>>>,
        Box::pin(ready(7)),
        Box::pin(ready(8)),
    ]));
    assert_eq!((place, output), (1, 7));
}

#[test]
fn a_thousand_joined_futures_that_end_one_by_one_are_polled_once_for_each_wake_up() {
    let polls = Arc::new(AtomicUsize::new(0));
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..rounds(1000)).map(|_| oneshot::channel()).unzip();
    let futures = receivers.into_iter().map(|receiver| {
        let polls = polls.clone();
        let mut receiver = Box::pin(receiver);
        std::future::poll_fn(move |cx| {
            polls.fetch_add(1, SeqCst);
            receiver.as_mut().poll(cx)
        })
    });
    let mut all = pin!(join_all(futures));
    assert!(poll(all.as_mut()).is_pending());
    let mut outputs = None;
    for (n, sender) in senders.into_iter().enumerate() {
        assert!(outputs.is_none());
        sender.send(n).unwrap();
        if let Poll::Ready(ready) = poll(all.as_mut()) {
            outputs = Some(ready);
        }
    }
    let outputs: Vec<_> = outputs.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(outputs, (0..rounds(1000)).collect::<Vec<_>>());
    assert_eq!(polls.load(SeqCst), 2 * rounds(1000));
}

#[test]
fn joins_end_with_all_or_with_the_first_error() {
    assert_eq!(block_on(zip(ready(1), ready('b'))), (1, 'b'));
    let fails = try_join(pending::<Result<(), _>>(), ready(Err::<(), _>("no")));
    assert_eq!(block_on(fails), Err("no"));
    assert_eq!(
        block_on(try_join(ready(Ok::<_, ()>(1)), ready(Ok(2)))),
        Ok((1, 2))
    );
    let of = |n: i32| async move { if n < 3 { Ok(n) } else { Err(n) } };
    assert_eq!(block_on(try_join_all([0, 1, 2].map(of))), Ok(vec![0, 1, 2]));
    assert_eq!(block_on(try_join_all([0, 5, 4].map(of))), Err(5));
    assert_eq!(block_on(join_all([0; 0].map(of))), []);
}

#[test]
fn select_takes_the_first_that_is_ready_and_its_code_may_leave_the_function() {
    async fn first(n: Option<u32>) -> Result<u32, &'static str> {
        let mut rounds = 0;
        loop {
            select! {
                biased;
                () = pending::<()>() => unreachable!(),
                found = ready(n) => {
                    rounds += 1;
                    if rounds == 3 {
                        return found.ok_or("nothing");
                    }
                }
                () = async { unreachable!("the one before was ready") } => {}
            }
        }
    }
    assert_eq!(block_on(first(Some(3))), Ok(3));
    assert_eq!(block_on(first(None)), Err("nothing"));
    let waited = block_on(async {
        select! {
            biased;
            () = pending() => 1,
            default => 2,
        }
    });
    assert_eq!(waited, 2);
}

#[test]
fn a_notification_that_found_its_waiter_before_it_had_the_lock_is_not_lost_with_it() {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    let wait = || {
        let mut wait = Box::pin(changed.wait(mutex.try_lock().unwrap()));
        assert!(poll(wait.as_mut()).is_pending());
        wait
    };
    let (mut a, mut b) = (wait(), wait());
    let held = mutex.try_lock().unwrap();
    changed.notify_one();
    assert!(poll(a.as_mut()).is_pending(), "it waits for the mutex now");
    drop(a);
    drop(held);
    assert!(poll(b.as_mut()).is_ready());
    drop(b);

    // All were notified: nobody is owed anything.
    let mut a = wait();
    let held = mutex.try_lock().unwrap();
    changed.notify_all();
    assert!(poll(a.as_mut()).is_pending());
    drop(held);
    let mut late = wait();
    drop(a);
    assert!(poll(late.as_mut()).is_pending());
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

#[test]
fn a_branch_that_is_always_ready_keeps_no_other_from_its_turn_unless_biased() {
    block_on(async {
        // Of 200 turns the second branch gets none with a chance of 2^-200.
        let mut turns = [0, 0];
        for _ in 0..200 {
            select! {
                () = ready(()) => turns[0] += 1,
                () = ready(()) => turns[1] += 1,
            }
        }
        assert!(turns.iter().all(|&n| n > 0), "{turns:?}");
        for _ in 0..200 {
            select! {
                biased;
                () = ready(()) => {}
                () = ready(()) => panic!("the first is ready"),
            }
        }
    });
}

#[test]
fn a_select_goes_on_without_the_branches_that_are_disabled() {
    block_on(async {
        let asks = false;
        let got = select! {
            n = ready(1), if asks => n,
            Some(n) = ready(None) => n,
            n = yielding(3) => n,
            else => 4,
        };
        assert_eq!(got, 3);
        let got = select! {
            n = ready(1), if asks => n,
            Some(n) = ready(None) => n,
            else => 4,
        };
        assert_eq!(got, 4);
    });

    async fn yielding(n: i32) -> i32 {
        yield_now().await;
        n
    }
}
