//! Models of how the sending side learns of the end, and of places that are reserved when it comes.

use super::{block_on, model};
use crate::sync::{mpsc, oneshot};
use loom::{sync::Arc, thread};
use std::{
    future::Future,
    task::{Context, Poll, Waker},
};

#[test]
fn a_oneshot_sender_that_waits_for_the_end_is_woken_by_it() {
    for closes in [true, false] {
        model(move || {
            let (mut sender, mut receiver) = oneshot::channel();
            let thread = thread::spawn(move || {
                block_on(sender.closed());
                assert!(sender.send(Arc::new(7)).is_err());
            });
            if closes {
                receiver.close();
            }
            drop(receiver);
            thread.join().unwrap();
        });
    }
}

#[test]
fn a_oneshot_sender_that_no_longer_waits_for_the_end_sends() {
    model(|| {
        let (mut sender, receiver) = oneshot::channel();
        let thread = thread::spawn(move || {
            let mut unwoken = Context::from_waker(Waker::noop());
            let ended = sender.poll_closed(&mut unwoken).is_ready();
            let sent = sender.send(Arc::new(7)).is_ok();
            assert!(!(ended && sent), "sent after the end");
        });
        drop(receiver);
        thread.join().unwrap();
    });
}

#[test]
fn a_oneshot_sender_that_waited_for_the_end_with_two_wakers_is_freed_once() {
    model(|| {
        let (mut sender, mut receiver) = oneshot::channel();
        let thread = thread::spawn(move || {
            let mut unwoken = Context::from_waker(Waker::noop());
            for _ in 0..2 {
                let _ended: Poll<()> = sender.poll_closed(&mut unwoken);
            }
            drop(sender);
        });
        receiver.close();
        let received: Result<Arc<u8>, _> = block_on(receiver);
        assert!(received.is_err());
        thread.join().unwrap();
    });
}

#[test]
fn a_receiver_that_closed_gets_what_is_sent_into_a_reserved_place_and_then_the_end() {
    for sends in [true, false] {
        model(move || {
            let (sender, mut receiver) = mpsc::channel(1);
            let thread = thread::spawn(move || match sender.try_reserve() {
                Ok(permit) if sends => {
                    permit.send(7);
                    true
                }
                Ok(_permit) => false,
                Err(_) => false,
            });
            receiver.close();
            let received = block_on(receiver.recv());
            assert_eq!(received.is_some(), thread.join().unwrap());
        });
    }
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
