//! The primitives that suspend: order, cancellation, backpressure, and that waiting costs no worker.

mod common;

use common::{all, ends, poll, rounds, runtime, with_levels};
use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
};
use urgency::{
    JoinHandle, LevelId, Runtime, block_on,
    sync::{
        Mutex, Notify, Semaphore,
        mpsc::{
            self,
            error::{TryRecvError, TrySendError},
        },
        oneshot,
    },
    yield_now,
};

urgency::levels! { App: High > Middle > Low }

/// Starts tasks that each wait and then note their name; each waits before the next is started.
fn waiters<F: Future + Send + 'static>(
    runtime: &Runtime,
    levels: &[LevelId],
    log: &Arc<StdMutex<Vec<usize>>>,
    wait: impl Fn() -> F,
) -> Vec<JoinHandle<()>> {
    let start = |(name, &level): (usize, &LevelId)| {
        let (log, wait) = (log.clone(), wait());
        let waits = Arc::new(AtomicBool::new(false));
        let told = waits.clone();
        let task = runtime.at(level).spawn(async move {
            let mut wait = pin!(wait);
            let got = poll_fn(|cx| {
                let got = wait.as_mut().poll(cx);
                told.store(true, SeqCst);
                got
            });
            let _kept = got.await;
            log.lock().unwrap().push(name);
        });
        while !waits.load(SeqCst) {
            std::thread::yield_now();
        }
        task
    };
    levels.iter().enumerate().map(start).collect()
}

#[test]
fn a_lock_is_handed_to_more_urgent_levels_first_and_to_equals_in_order() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (mutex, log) = (Arc::new(Mutex::new(())), Arc::default());
        let held = mutex.try_lock().unwrap();
        let levels = [
            Low.into(),
            High.into(),
            Middle.into(),
            Low.into(),
            High.into(),
        ];
        let tasks = waiters(&runtime, &levels, &log, || mutex.clone().lock_owned());
        drop(held);
        all(tasks);
        assert_eq!(*log.lock().unwrap(), [1, 4, 2, 0, 3]);
    });
}

#[test]
fn a_waiter_that_has_come_for_a_lock_is_not_overtaken_by_a_later_one() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock().unwrap();
    let mut first = pin!(mutex.lock());
    assert!(poll(first.as_mut()).is_pending());
    drop(held);
    let overtakes = mutex.try_lock().expect("the waiter has not come yet");
    assert!(poll(first.as_mut()).is_pending());
    drop(overtakes);
    assert!(mutex.is_locked(), "it was handed over");
    assert!(mutex.try_lock().is_err());
    let mut second = pin!(mutex.lock());
    assert!(poll(second.as_mut()).is_pending());
    let Poll::Ready(guard) = poll(first.as_mut()) else {
        panic!("the lock was handed over");
    };
    drop(guard);
    assert!(poll(second.as_mut()).is_ready());
}

#[test]
fn what_was_handed_to_a_dropped_waiter_goes_to_the_next() {
    let (mutex, places, event) = (Mutex::new(()), Semaphore::new(1), Notify::new());

    let held = mutex.try_lock().unwrap();
    let (mut a, mut b) = (Box::pin(mutex.lock()), Box::pin(mutex.lock()));
    assert!(poll(a.as_mut()).is_pending() && poll(b.as_mut()).is_pending());
    drop(held);
    drop(a);
    assert!(poll(b.as_mut()).is_ready());

    let held = places.try_acquire().unwrap();
    let (mut a, mut b) = (Box::pin(places.acquire()), Box::pin(places.acquire()));
    assert!(poll(a.as_mut()).is_pending() && poll(b.as_mut()).is_pending());
    drop(held);
    drop(a);
    assert!(poll(b.as_mut()).is_ready());
    drop(b);
    assert_eq!(places.available_permits(), 1);

    let (mut a, mut b) = (Box::pin(event.notified()), Box::pin(event.notified()));
    assert!(poll(a.as_mut()).is_pending() && poll(b.as_mut()).is_pending());
    event.notify_one();
    drop(a);
    assert!(poll(b.as_mut()).is_ready());
}

#[test]
fn a_place_handed_to_a_dropped_sender_goes_to_the_next() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (mut a, mut b) = (Box::pin(sender.send(1)), Box::pin(sender.send(2)));
    assert!(poll(a.as_mut()).is_pending() && poll(b.as_mut()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)), "it is a's");
    drop(a);
    assert!(poll(b.as_mut()).is_ready());
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    sender.try_send(4).unwrap();
}

#[test]
fn a_waiter_for_many_permits_is_not_starved_by_waiters_for_one() {
    let places = Semaphore::new(3);
    let held = places.try_acquire_many(2).unwrap();
    let mut many = Box::pin(places.acquire_many(3));
    assert!(poll(many.as_mut()).is_pending());
    let mut one = Box::pin(places.acquire());
    assert!(
        poll(one.as_mut()).is_pending(),
        "one is free, but it is kept"
    );
    drop(many);
    assert!(poll(one.as_mut()).is_ready(), "the next needs fewer");
    drop(held);
}

#[test]
fn a_more_urgent_waiter_that_needs_fewer_permits_is_served_at_once() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let places = Arc::new(Semaphore::new(3));
        let held = places.try_acquire_many(2).unwrap();
        let log = Arc::default();
        let first = waiters(&runtime, &[Low.into()], &log, || {
            places.clone().acquire_many_owned(3)
        });
        let second = waiters(&runtime, &[High.into()], &log, || {
            places.clone().acquire_owned()
        });
        all(second);
        drop(held);
        all(first);
        assert_eq!(*log.lock().unwrap(), [0, 0]);
    });
}

#[test]
fn permits_can_be_forgotten_split_and_added_and_a_closed_semaphore_gives_none() {
    let places = Semaphore::new(4);
    let mut three = places.try_acquire_many(3).unwrap();
    let one = three.split(1).unwrap();
    assert!(three.split(3).is_none());
    three.forget();
    assert_eq!((places.available_permits(), one.num_permits()), (1, 1));
    places.add_permits(5);
    let mut waiting = Box::pin(places.acquire_many(7));
    assert!(poll(waiting.as_mut()).is_pending());
    places.close();
    assert!(matches!(poll(waiting.as_mut()), Poll::Ready(Err(_))));
    drop(one);
    assert_eq!(places.available_permits(), 7);
    assert!(places.blocking_acquire().is_err());
}

#[test]
fn a_blocked_closure_gives_its_worker_away() {
    ends(|| {
        let runtime = runtime(1);
        let (mutex, event) = (Arc::new(Mutex::new(0)), Arc::new(Notify::new()));
        let (sender, mut receiver) = mpsc::channel(1);
        let (tell, told) = oneshot::channel();
        let held = mutex.clone().try_lock_owned().unwrap();
        let (theirs, ours) = (mutex.clone(), event.clone());
        // Each waits for what only a later one does, all on one worker.
        let closures = [
            runtime.spawn_fn(move || {
                *theirs.blocking_lock() += 1;
                sender.blocking_send(1).unwrap();
                sender.blocking_send(2).unwrap();
            }),
            runtime.spawn_fn(move || {
                assert_eq!(receiver.blocking_recv(), Some(1));
                assert_eq!(receiver.blocking_recv(), Some(2));
                assert_eq!(receiver.blocking_recv(), None);
                tell.send(()).unwrap();
            }),
            runtime.spawn_fn(move || {
                told.blocking_recv().unwrap();
                ours.notify_one();
            }),
            runtime.spawn_fn(move || event.blocking_wait()),
            runtime.spawn_fn(move || drop(held)),
        ];
        all(closures);
        assert_eq!(*mutex.blocking_lock(), 1);
    });
}

#[test]
fn tasks_closures_and_plain_threads_share_a_lock() {
    ends(|| {
        let runtime = runtime(2);
        let count = Arc::new(Mutex::new(0));
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let count = count.clone();
                if n % 2 == 0 {
                    runtime.spawn(async move {
                        for _ in 0..rounds(200) {
                            let mut count = count.lock().await;
                            let before = *count;
                            yield_now().await;
                            *count = before + 1;
                        }
                    })
                } else {
                    runtime.spawn_fn(move || {
                        (0..rounds(200)).for_each(|_| *count.blocking_lock() += 1)
                    })
                }
            })
            .collect();
        for _ in 0..rounds(200) {
            *count.blocking_lock() += 1;
        }
        all(tasks);
        assert_eq!(*count.blocking_lock(), 9 * rounds(200));
    });
}

#[test]
fn a_full_channel_holds_its_producers_back() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, mut receiver) = mpsc::channel(4);
        let (sent, received) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let producers: Vec<_> = (0..3)
            .map(|_| {
                let (sender, sent) = (sender.clone(), sent.clone());
                runtime.spawn(async move {
                    for n in 0..rounds(500) {
                        sender.send(n).await.unwrap();
                        sent.fetch_add(1, SeqCst);
                    }
                })
            })
            .collect();
        drop(sender);
        while receiver.blocking_recv().is_some() {
            let received = received.fetch_add(1, SeqCst) + 1;
            let ahead = sent.load(SeqCst).saturating_sub(received);
            assert!(ahead <= 4, "{ahead} messages in a channel for 4");
        }
        assert_eq!(received.into_inner(), 3 * rounds(500));
        all(producers);
    });
}

#[test]
fn messages_of_one_sender_arrive_in_order_bounded_or_not() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, mut receiver) = mpsc::channel(3);
        let (sends_at_once, mut unbounded) = mpsc::unbounded_channel();
        let producer = runtime.spawn(async move {
            for n in 0..rounds(1000) {
                sends_at_once.send(n).unwrap();
                sender.send(n).await.unwrap();
            }
        });
        let consumer = runtime.spawn(async move {
            for n in 0..rounds(1000) {
                assert_eq!(receiver.recv().await, Some(n));
                assert_eq!(unbounded.recv().await, Some(n));
            }
            assert_eq!(receiver.recv().await, None);
            assert_eq!(unbounded.recv().await, None);
        });
        all(vec![producer, consumer]);
    });
}

#[test]
fn a_closed_channel_refuses_messages_and_gives_out_the_ones_it_has() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    let mut waiting = Box::pin(sender.send(2));
    assert!(poll(waiting.as_mut()).is_pending());
    receiver.close();
    assert!(matches!(poll(waiting.as_mut()), Poll::Ready(Err(error)) if error.0 == 2));
    assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
    assert_eq!(receiver.blocking_recv(), Some(1));
    assert_eq!(receiver.blocking_recv(), None);
}

#[test]
fn a_oneshot_message_to_nobody_comes_back() {
    let (sender, receiver) = oneshot::channel();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send(5), Err(5));
    let (sender, mut receiver) = oneshot::channel();
    sender.send(6).unwrap();
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(6), "sent before it was closed");
    assert_eq!(
        receiver.try_recv(),
        Err(oneshot::error::TryRecvError::Closed)
    );
}

#[test]
fn notifying_all_wakes_waiters_and_futures_that_are_about_to_wait() {
    let event = Notify::new();
    let mut early = Box::pin(event.notified());
    let mut waits = Box::pin(event.notified());
    assert!(poll(waits.as_mut()).is_pending());
    event.notify_waiters();
    assert!(poll(waits.as_mut()).is_ready() && poll(early.as_mut()).is_ready());
    assert!(
        poll(Box::pin(event.notified()).as_mut()).is_pending(),
        "not stored"
    );
    event.notify_one();
    event.notify_one();
    block_on(event.notified());
    assert!(
        poll(Box::pin(event.notified()).as_mut()).is_pending(),
        "one is stored"
    );
}

#[test]
fn a_future_that_is_enabled_after_a_poll_still_wakes_its_task() {
    let (event, ready) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (theirs, told) = (event.clone(), ready.clone());
    let task = urgency::spawn(async move {
        let mut notified = pin!(theirs.notified());
        let mut enabled = false;
        let polled = poll_fn(|cx| {
            let state = notified.as_mut().poll(cx);
            if !enabled {
                enabled = true;
                assert!(!notified.as_mut().enable());
                told.notify_one();
            }
            state
        });
        polled.await;
    });
    block_on(ready.notified());
    event.notify_one();
    ends(|| task.get().unwrap());
}

#[test]
fn a_send_that_is_dropped_after_the_channel_was_closed_gives_no_place_back() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let mut waiting = Box::pin(sender.send(1));
    assert!(poll(waiting.as_mut()).is_pending());
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(0));
    drop(waiting);

    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let mut waiting: Vec<_> = (1..3).map(|n| Box::pin(sender.send(n))).collect();
    assert!(
        waiting
            .iter_mut()
            .all(|send| poll(send.as_mut()).is_pending())
    );
    drop(receiver);
    drop(waiting);
    assert!(sender.is_closed());
}

#[test]
fn a_newcomer_does_not_cost_a_woken_waiter_its_turn() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock().unwrap();
    let mut first = pin!(mutex.lock());
    assert!(poll(first.as_mut()).is_pending());
    drop(held);
    let overtakes = mutex.try_lock().expect("the waiter has not come yet");
    let mut second = pin!(mutex.lock());
    assert!(poll(second.as_mut()).is_pending());
    assert!(poll(first.as_mut()).is_pending(), "it has come");
    drop(overtakes);
    assert!(mutex.try_lock().is_err(), "it was handed over");
    assert!(poll(first.as_mut()).is_ready());
    assert!(poll(second.as_mut()).is_ready());
}

#[test]
fn a_lock_future_that_waited_on_a_thread_takes_what_it_is_offered_in_a_task() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.try_lock().unwrap();
        let mut first = Box::pin(mutex.clone().lock_owned());
        assert!(poll(first.as_mut()).is_pending());
        drop(held);
        let task = runtime.at(Low).spawn(async move { drop(first.await) });
        task.get().unwrap();
    });
}

/// A waker that owns a future, as an executor's does.
#[allow(dead_code, reason = "it owns it")]
struct Owner(StdMutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl std::task::Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_of_a_waiter_may_own_another_waiter_of_the_same_lock() {
    ends(|| {
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.try_lock().unwrap();
        let [mut a, mut b, mut c] = [(); 3].map(|()| {
            let mutex = mutex.clone();
            Box::pin(async move { drop(mutex.lock_owned().await) })
        });
        assert!(poll(a.as_mut()).is_pending() && poll(c.as_mut()).is_pending());
        let waker = Waker::from(Arc::new(Owner(StdMutex::new(Some(c)))));
        let polled = b.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop(waker);
        drop(held);
        // It is offered to `a`, and `b`, which is as urgent, comes first. Its waker is gone then, and `c`
        // with it.
        assert!(poll(b.as_mut()).is_ready());
        assert!(poll(a.as_mut()).is_ready());
    });
}

/// Beyond it the number that a word has room for comes next, and none of the permits is lost.
#[test]
fn permits_beyond_the_greatest_number_are_refused() {
    let semaphore = Semaphore::new(5);
    for more in [Semaphore::MAX_PERMITS, usize::MAX - 3, usize::MAX] {
        let adds = AssertUnwindSafe(|| semaphore.add_permits(more));
        let panic = catch_unwind(adds).unwrap_err();
        let text = panic.downcast_ref::<&str>().unwrap();
        assert!(text.contains("at most"), "{text}");
        assert_eq!(semaphore.available_permits(), 5);
    }
}
