//! Wakers whose drop panics: what waits beside them is woken, and no lock is lost with them.

mod common;

use common::{ends, poll};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};
use urgency::{
    block_on, spawn,
    sync::{Mutex, mpsc, oneshot},
};

/// A waker whose drop panics.
struct PanicsWhenGone;

impl Wake for PanicsWhenGone {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PanicsWhenGone {
    fn drop(&mut self) {
        panic!("on purpose, in the drop of a waker");
    }
}

#[test]
fn a_sender_whose_own_waker_panics_when_it_is_dropped_sends_all_the_same() {
    ends(|| {
        for sends in [true, false] {
            let (mut sender, receiver) = oneshot::channel();
            let waker = Waker::from(Arc::new(PanicsWhenGone));
            let polled = sender.poll_closed(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            let gone = catch_unwind(AssertUnwindSafe(|| drop(waker)));
            assert!(gone.is_ok(), "the channel has the other one");
            let ended = catch_unwind(AssertUnwindSafe(|| match sends {
                true => sender.send(1).unwrap(),
                false => drop(sender),
            }));
            let received = block_on(receiver);
            assert_eq!(received.is_ok(), sends && ended.is_ok());
            assert!(ended.is_ok());
        }
    });
}

/// Polls once, and leaves what waits with the only reference to a waker whose drop panics.
fn polled_by_one_that_panics<F: Future>(future: Pin<&mut F>) {
    let waker = Waker::from(Arc::new(PanicsWhenGone));
    assert!(future.poll(&mut Context::from_waker(&waker)).is_pending());
}

#[test]
fn a_mutex_that_its_waiter_has_is_released_although_the_waiters_old_waker_panics() {
    ends(|| {
        let mutex = Mutex::new(());
        let held = mutex.try_lock().unwrap();
        let mut first = Box::pin(mutex.lock());
        assert!(poll(first.as_mut()).is_pending());
        let mut second = Box::pin(mutex.lock());
        polled_by_one_that_panics(second.as_mut());
        drop(held);
        // The lock is offered to the first, and the second comes before it.
        let polled = catch_unwind(AssertUnwindSafe(|| poll(second.as_mut())));
        drop((polled, first, second));
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn a_sender_that_gives_up_lets_the_next_go_on_although_its_waker_panics() {
    ends(|| {
        let (sender, _receiver) = mpsc::channel::<()>(2);
        let _one = sender.try_reserve().unwrap();
        let mut two = Box::pin(sender.reserve_many(2));
        polled_by_one_that_panics(two.as_mut());
        let theirs = sender.clone();
        let next = spawn(async move { theirs.send(()).await });
        thread::sleep(Duration::from_millis(20));
        assert!(!next.is_finished(), "it waits behind the other");
        let gone = catch_unwind(AssertUnwindSafe(|| drop(two)));
        assert!(gone.is_err());
        assert!(next.get().unwrap().is_ok());
    });
}
