//! The primitives with data: reader-writer lock, condition variable, barrier, once cell.

mod common;

use common::{ends, poll, rounds, runtime};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
};
use urgency::{
    block_on,
    sync::{Barrier, Condvar, Mutex, OnceCell, RwLock, RwLockWriteGuard, SetError},
    yield_now,
};

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
