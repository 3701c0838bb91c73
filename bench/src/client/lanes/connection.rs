//! One connection of a lane: at most one request under way.
//!
//! A server may close a connection that is idle (`urgency_web` does after 30 s), and may do so while a
//! request is on its way to it. As in any pooled client, the connection is then replaced and the request sent again;
//! its latency still counts from its intended time. A connection that closes in the middle of a reply is a failure.

use super::super::MESSAGE;
use super::Protocol;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

/// What reading gave.
pub enum Received {
    /// The reply is not there, or not whole.
    Nothing,
    /// The reply to the request that was due then.
    Reply(u64),
    /// The server has closed the connection, not in the middle of a reply.
    Closed,
}

/// A connection.
pub struct Connection {
    /// The socket, to be polled.
    pub stream: TcpStream,
    /// When the request under way was due.
    pub under_way: Option<u64>,
    request: Vec<u8>,
    received: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub fn open(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).expect("the server accepts connections");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        stream
            .set_nonblocking(true)
            .expect("a socket can be non-blocking");
        Connection {
            stream,
            under_way: None,
            request: Vec::new(),
            received: Vec::new(),
        }
    }

    /// Sends a request of `protocol` that was due at `due`; `sequence` tells it from others.
    pub fn send(&mut self, protocol: &Protocol, due: u64, sequence: u64) {
        self.request.clear();
        match protocol {
            Protocol::Echo => {
                self.request.resize(MESSAGE, 0);
                self.request[..8].copy_from_slice(&sequence.to_le_bytes());
            }
            Protocol::Get { path, .. } => {
                write!(self.request, "GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n")
                    .expect("a vector takes any bytes");
            }
        }
        let sent = self.stream.write(&self.request);
        let is_closed = sent.as_ref().is_err_and(is_closed);
        assert!(
            is_closed || matches!(sent, Ok(count) if count == self.request.len()),
            "a request was not taken whole ({sent:?}): the server has stopped reading"
        );
        // If it is closed, reading says so, and the request is sent again.
        self.received.clear();
        self.under_way = Some(due);
    }

    /// Reads what has come, and verifies a whole reply.
    pub fn receive(&mut self, protocol: &Protocol) -> Received {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return self.closed(),
                Err(error) if is_closed(&error) => return self.closed(),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Nothing,
                Err(error) => panic!("a connection failed: {error}"),
            }
            if self.is_whole(protocol) {
                let due = self.under_way.take();
                return due.map_or(Received::Nothing, Received::Reply);
            }
        }
    }

    fn closed(&self) -> Received {
        assert!(
            self.under_way.is_none() || self.received.is_empty(),
            "the server closed a connection in the middle of a reply"
        );
        Received::Closed
    }

    /// Whether the reply has come, which is then verified.
    fn is_whole(&self, protocol: &Protocol) -> bool {
        match protocol {
            Protocol::Echo => {
                let whole = self.received.len() == MESSAGE;
                assert!(!whole || self.received == self.request, "another reply");
                whole
            }
            Protocol::Get { expects, .. } => {
                let text = String::from_utf8_lossy(&self.received);
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    return false;
                };
                assert!(head.starts_with("HTTP/1.1 200"), "an error: {head}");
                let whole = body.len() >= expects.len();
                assert!(!whole || body == expects, "{body:?} is not {expects:?}");
                whole
            }
        }
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn a_connection_that_closes_before_a_reply_is_closed_and_its_request_still_under_way() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = Connection::open(listener.local_addr().unwrap());
        drop(listener.accept().unwrap());
        let protocol = Protocol::Get {
            path: "/".to_owned(),
            expects: "ok".to_owned(),
        };
        connection.send(&protocol, 7, 0);
        for _ in 0..20_000 {
            match connection.receive(&protocol) {
                Received::Closed => {
                    assert_eq!(connection.under_way, Some(7));
                    return;
                }
                Received::Nothing => std::thread::sleep(Duration::from_millis(1)),
                Received::Reply(_) => panic!("nobody replied"),
            }
        }
        panic!("a closed connection was not noticed");
    }
}
