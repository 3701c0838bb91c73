//! One connection of a lane: at most one request under way.

use super::super::MESSAGE;
use super::Protocol;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

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
        assert!(
            matches!(sent, Ok(count) if count == self.request.len()),
            "a request was not taken whole ({sent:?}): the server has stopped reading"
        );
        self.received.clear();
        self.under_way = Some(due);
    }

    /// Reads what has come; when the reply is whole and right, when its request was due.
    pub fn receive(&mut self, protocol: &Protocol) -> Option<u64> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("the server closed a connection"),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => panic!("a connection failed: {error}"),
            }
            if self.is_whole(protocol) {
                return self.under_way.take();
            }
        }
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
