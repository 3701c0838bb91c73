//! What needs no place or permit waits for none, and sockets are as safe across a panic as Tokio's.

mod common;

use common::poll;
use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    pin::pin,
};
use urgency::{
    io::Async,
    net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream},
    sync::{Semaphore, mpsc},
};

#[test]
fn no_place_and_no_permit_are_had_at_once_beside_waiters() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    assert_eq!(sender.try_reserve_many(0).unwrap().len(), 0);
    let mut waiter = Box::pin(sender.send(2));
    assert!(poll(waiter.as_mut()).is_pending());
    assert_eq!(sender.try_reserve_many(0).unwrap().len(), 0);
    assert!(poll(pin!(sender.reserve_many(0))).is_ready());
    drop(waiter);
    receiver.close();
    assert!(sender.try_reserve_many(0).is_err(), "closed");

    let semaphore = Semaphore::new(1);
    let mut many = Box::pin(semaphore.acquire_many(2));
    assert!(poll(many.as_mut()).is_pending());
    assert!(semaphore.try_acquire_many(0).is_ok());
    assert!(poll(pin!(semaphore.acquire_many(0))).is_ready());
    semaphore.close();
    assert!(semaphore.try_acquire_many(0).is_err(), "closed");
}

#[test]
fn a_channel_has_no_capacity_for_others_while_a_sender_waits_for_more_than_there_is() {
    let (sender, receiver) = mpsc::channel(2);
    let permit = sender.try_reserve().unwrap();
    let mut waiter = Box::pin(sender.reserve_many(2));
    assert!(poll(waiter.as_mut()).is_pending());
    assert!(sender.try_send(1).is_err());
    assert_eq!((sender.capacity(), receiver.capacity()), (0, 0));
    drop(waiter);
    assert_eq!((sender.capacity(), receiver.capacity()), (1, 1));
    drop(permit);
}

#[test]
fn sockets_may_cross_a_panic_as_tokios_may() {
    fn both<T: UnwindSafe + RefUnwindSafe>() {}
    both::<TcpListener>();
    both::<TcpStream>();
    both::<UdpSocket>();
    both::<UnixDatagram>();
    both::<UnixListener>();
    both::<UnixStream>();
    both::<Async<std::os::fd::OwnedFd>>();
}

#[test]
fn permits_that_were_handed_over_before_a_semaphore_is_closed_are_had() {
    let semaphore = Semaphore::new(0);
    let (mut served, mut refused) = (pin!(semaphore.acquire()), pin!(semaphore.acquire()));
    assert!(poll(served.as_mut()).is_pending());
    assert!(poll(refused.as_mut()).is_pending());
    semaphore.add_permits(1);
    semaphore.close();
    assert!(matches!(poll(served), std::task::Poll::Ready(Ok(_))));
    assert!(matches!(poll(refused), std::task::Poll::Ready(Err(_))));
}
