//! One connection of a load client: requests under way in order, replies read and verified.

use super::MESSAGE;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// A connection with its requests under way.
pub struct Connection {
    stream: TcpStream,
    under_way: VecDeque<(u64, Instant)>,
    reply: [u8; MESSAGE],
    received: usize,
}

impl Connection {
    /// Connects `count` times and registers each connection for reading, with its index as data.
    pub fn open_all(server: SocketAddr, count: usize) -> (Epoll, Vec<Connection>) {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).expect("an epoll descriptor");
        let connect = |index: usize| {
            let stream = TcpStream::connect(server).expect("the server accepts connections");
            stream.set_nodelay(true).expect("TCP_NODELAY can be set");
            stream
                .set_nonblocking(true)
                .expect("a socket can be non-blocking");
            let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
            epoll.add(&stream, event).expect("a socket can be polled");
            Connection {
                stream,
                under_way: VecDeque::new(),
                reply: [0; MESSAGE],
                received: 0,
            }
        };
        let connections = (0..count).map(connect).collect();
        (epoll, connections)
    }

    /// Sends request number `sequence`, whose latency counts from `since`.
    pub fn send(&mut self, sequence: u64, since: Instant) {
        let mut request = [0; MESSAGE];
        request[..8].copy_from_slice(&sequence.to_le_bytes());
        let sent = self.stream.write(&request);
        assert!(
            matches!(sent, Ok(MESSAGE)),
            "a request of {MESSAGE} bytes was not taken whole ({sent:?}): the server has stopped reading"
        );
        self.under_way.push_back((sequence, since));
    }

    /// Reads all replies that have come and calls `each` with the time from which the latency of each counts.
    pub fn receive(&mut self, mut each: impl FnMut(Instant)) {
        loop {
            match self.stream.read(&mut self.reply[self.received..]) {
                Ok(0) => panic!("the server closed a connection"),
                Ok(count) => self.received += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("a connection failed: {error}"),
            }
            if self.received == MESSAGE {
                self.received = 0;
                let (sequence, since) = self.under_way.pop_front().expect("a reply has a request");
                assert_eq!(
                    self.reply[..8],
                    sequence.to_le_bytes(),
                    "a reply to another request"
                );
                each(since);
                if self.under_way.is_empty() {
                    return;
                }
            }
        }
    }

    /// Takes the requests that are still without a reply.
    pub fn unanswered(&mut self) -> impl Iterator<Item = Instant> {
        self.under_way.drain(..).map(|(_, since)| since)
    }
}
