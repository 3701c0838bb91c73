//! A datagram was sent to a port at which nothing is, and the kernel has an error to tell.

use super::LOCAL;
use crate::{
    io::{Interest, Ready},
    net::UdpSocket,
    time::timeout,
};
use std::{future::poll_fn, io::ErrorKind, task::Poll, time::Duration};

#[test]
fn the_error_of_a_datagram_that_was_sent_is_received_and_is_no_datagram() {
    crate::block_on(async {
        let gone = UdpSocket::bind(LOCAL).await.unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind(LOCAL).await.unwrap();
        socket.connect(gone).await.unwrap();
        socket.send(b"ping").await.unwrap();
        assert!(socket.ready(Interest::ERROR).await.unwrap().is_error());

        let both = Interest::READABLE | Interest::WRITABLE;
        let ready = socket.ready(both).await.unwrap();
        assert!(ready.is_writable() && ready & Ready::READABLE == Ready::EMPTY);
        let never = || Ok::<_, std::io::Error>(());
        let refused = socket.try_io(Interest::READABLE, never).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        let wait = Duration::from_millis(20);
        assert!(timeout(wait, socket.readable()).await.is_err());
        let polled = poll_fn(|cx| Poll::Ready(socket.poll_recv_ready(cx)));
        assert!(polled.await.is_pending());

        let received = socket.try_recv(&mut [0; 8]).unwrap_err();
        assert_eq!(received.kind(), ErrorKind::ConnectionRefused);
    });
}
