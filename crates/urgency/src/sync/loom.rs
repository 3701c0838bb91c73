//! Models of the primitives, run by loom over all interleavings (two preemptions).
//!
//! A thread that sleeps when nobody will wake it is a deadlock, which loom reports; so each model that ends
//! shows that no wake-up was lost. Data that a primitive guards is a loom cell, so that an access which the
//! primitive did not order is reported, too.

use super::{Notify, Semaphore, lists::Key, mpsc, oneshot, portions::Portions, raw::RawMutex};
use crate::task::Guarded;
use loom::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Wake, Waker},
};

/// A thread that parks, as a waker.
struct Parked(Mutex<bool>, Condvar);

impl Wake for Parked {
    fn wake(self: std::sync::Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let parked = std::sync::Arc::new(Parked(Mutex::new(false), Condvar::new()));
    let waker = Waker::from(parked.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut woken = parked.0.lock().unwrap();
        while !*woken {
            woken = parked.1.wait(woken).unwrap();
        }
        *woken = false;
    }
}

/// Polls once. The future is dropped where it stands.
fn poll_and_drop<F: Future>(future: F) -> Poll<F::Output> {
    let mut future = pin!(future);
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(body);
}

/// A raw mutex and what it guards, used as `Mutex` does.
struct Counter {
    raw: RawMutex,
    count: Guarded<usize>,
}

// SAFETY: the count is only reached under the lock.
unsafe impl Send for Counter {}
// SAFETY: as above; loom reports it if it is not so.
unsafe impl Sync for Counter {}

struct Locking<'a>(&'a RawMutex, Option<Key>);

impl Future for Locking<'_> {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.0
            .poll_lock(&mut this.1, cx, std::panic::Location::caller())
    }
}

impl Drop for Locking<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.1.take() {
            self.0.leave(key);
        }
    }
}

impl Counter {
    fn new() -> Arc<Self> {
        Arc::new(Counter {
            raw: RawMutex::new(),
            count: Guarded::new(0),
        })
    }

    fn add(&self) {
        block_on(Locking(&self.raw, None));
        // SAFETY: locked.
        self.count.with_mut(|count| unsafe { *count += 1 });
        self.raw.unlock();
    }
}

#[test]
fn a_lock_that_two_want_is_had_by_one_at_a_time_and_by_both() {
    model(|| {
        let counter = Counter::new();
        let other = counter.clone();
        let thread = thread::spawn(move || other.add());
        counter.add();
        thread.join().unwrap();
        // SAFETY: the other thread has ended.
        counter.count.with(|count| assert_eq!(unsafe { *count }, 2));
        assert!(!counter.raw.is_locked());
    });
}

#[test]
fn a_lock_handed_to_a_waiter_that_is_dropped_goes_to_the_next() {
    model(|| {
        let counter = Counter::new();
        assert!(counter.raw.try_lock());
        let dropped = counter.clone();
        let dropped = thread::spawn(move || {
            if poll_and_drop(Locking(&dropped.raw, None)).is_ready() {
                dropped.raw.unlock();
            }
        });
        let other = counter.clone();
        let other = thread::spawn(move || other.add());
        counter.raw.unlock();
        dropped.join().unwrap();
        other.join().unwrap();
        assert!(!counter.raw.is_locked());
    });
}

#[test]
fn permits_are_neither_lost_nor_made_by_waiters_for_one_and_for_two() {
    model(|| {
        let places = Arc::new(Semaphore::new(2));
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|permits| {
                let places = places.clone();
                thread::spawn(move || drop(block_on(places.acquire_many(permits)).unwrap()))
            })
            .collect();
        let _ = poll_and_drop(places.acquire_many(2));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(places.available_permits(), 2);
    });
}

#[test]
fn closing_a_semaphore_wakes_who_waits() {
    model(|| {
        let places = Arc::new(Semaphore::new(0));
        let waiting = places.clone();
        let waiting = thread::spawn(move || block_on(waiting.acquire()).is_err());
        places.close();
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn each_notification_of_one_reaches_one_though_another_waiter_is_dropped() {
    model(|| {
        let event = Arc::new(Notify::new());
        let waiting = event.clone();
        let waiting = thread::spawn(move || block_on(waiting.notified()));
        let dropped = event.clone();
        let dropped = thread::spawn(move || {
            // A notification that it got is passed on.
            if poll_and_drop(dropped.notified()).is_ready() {
                dropped.notify_one();
            }
        });
        event.notify_one();
        waiting.join().unwrap();
        dropped.join().unwrap();
    });
}

#[test]
fn a_condition_that_changes_after_the_future_was_made_is_not_missed() {
    model(|| {
        let event = Arc::new((Notify::new(), loom::sync::atomic::AtomicBool::new(false)));
        let other = event.clone();
        let setter = thread::spawn(move || {
            other.1.store(true, loom::sync::atomic::Ordering::Release);
            other.0.notify_all();
        });
        loop {
            let changed = event.0.notified();
            if event.1.load(loom::sync::atomic::Ordering::Acquire) {
                break;
            }
            block_on(changed);
        }
        setter.join().unwrap();
    });
}

#[test]
fn a_oneshot_message_arrives_or_comes_back() {
    model(|| {
        let (sender, receiver) = oneshot::channel();
        let thread = thread::spawn(move || sender.send(Box::new(7)).is_ok());
        let received = poll_and_drop(receiver);
        let sent = thread.join().unwrap();
        assert!(sent || received.is_pending(), "received, and came back");
    });
}

#[test]
fn a_oneshot_receiver_sleeps_through_no_message_and_no_end() {
    for sends in [true, false] {
        model(move || {
            let (sender, receiver) = oneshot::channel();
            let thread = thread::spawn(move || {
                if sends {
                    sender.send(Box::new(7)).unwrap();
                }
            });
            assert_eq!(block_on(receiver).is_ok(), sends);
            thread.join().unwrap();
        });
    }
}

#[test]
fn a_oneshot_receiver_that_is_polled_with_another_waker_is_woken() {
    model(|| {
        let (sender, mut receiver) = oneshot::channel();
        let thread = thread::spawn(move || sender.send(1).unwrap());
        let early = std::pin::Pin::new(&mut receiver).poll(&mut Context::from_waker(Waker::noop()));
        if early.is_pending() {
            assert_eq!(block_on(receiver), Ok(1));
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_full_channel_loses_no_message_and_no_place() {
    model(|| {
        let (sender, mut receiver) = mpsc::bounded(1);
        sender.try_send(0).unwrap();
        let other = sender.clone();
        let dropped = thread::spawn(move || poll_and_drop(other.send(1)).is_ready());
        let thread = thread::spawn(move || block_on(sender.send(2)).unwrap());
        let mut received = 0;
        while block_on(receiver.recv()).is_some() {
            received += 1;
        }
        thread.join().unwrap();
        let sent = 2 + usize::from(dropped.join().unwrap());
        assert_eq!(received, sent);
    });
}

#[test]
fn a_sender_that_waits_for_a_receiver_that_goes_gets_its_message_back() {
    model(|| {
        let (sender, receiver) = mpsc::bounded(1);
        sender.try_send(0).unwrap();
        let thread = thread::spawn(move || drop(receiver));
        assert!(block_on(sender.send(1)).is_err());
        thread.join().unwrap();
    });
}

#[test]
fn a_oneshot_that_both_sides_leave_at_once_is_freed_once() {
    for closes in [true, false] {
        model(move || {
            let (sender, mut receiver) = oneshot::channel();
            let thread = thread::spawn(move || sender.send(Arc::new(7)).is_ok());
            let early =
                std::pin::Pin::new(&mut receiver).poll(&mut Context::from_waker(Waker::noop()));
            if closes {
                receiver.close();
            }
            drop((receiver, early));
            thread.join().unwrap();
        });
    }
}

#[test]
fn a_value_in_portions_is_freed_once() {
    model(|| {
        let mut portions = Portions::new(None, Arc::new(7), 3);
        let (one, two) = (portions.take(), portions.take());
        let first = thread::spawn(move || *one.into_value().0);
        let second = thread::spawn(move || drop(two));
        drop(portions);
        assert_eq!(first.join().unwrap(), 7);
        second.join().unwrap();
    });
}
