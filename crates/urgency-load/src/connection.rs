//! One connection: requests that wait for their turn, requests under way, bytes in both directions.
//!
//! Replies come in the order of the requests, so the requests under way are a queue. At most `depth` of them
//! are under way; further ones wait here, in the client, and their latency runs: it counts from the time at
//! which they were due. A request becomes bytes when it is sent, not before, so the versions of a key are
//! sent in the order in which they are drawn.

use crate::protocol::{Command, Malformed, Protocol, Reply, shorten};
use crate::{Error, Server, server::Stream};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Instant;

/// A request that is due.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// From when its latency counts.
    pub since: Instant,
    /// What it asks for.
    pub command: Command,
    /// Which key.
    pub key: u32,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What was due.
    pub due: Due,
    /// A set: its version. A get: the lowest version that it may return.
    pub version: u32,
    /// When it was made into bytes, just before the socket was given them.
    pub sent: Instant,
}

/// Bytes that may wait for the socket before no further request is made into bytes.
const OUT_FULL: usize = 128 * 1024;
const FIRST_INPUT: usize = 4096;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    waiting: VecDeque<Due>,
    under_way: VecDeque<Request>,
    out: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    filled: usize,
    replies: u64,
}

/// Whether a connection can go on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Everything was given to the socket.
    All,
    /// The socket takes no more now.
    Blocked,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`].
    pub fn open(server: &Server) -> Result<Self, Error> {
        Ok(Connection {
            stream: Stream::connect(server)?,
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
            out: Vec::new(),
            written: 0,
            input: vec![0; FIRST_INPUT],
            filled: 0,
            replies: 0,
        })
    }

    /// The stream, to be polled.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether nothing is under way in either direction.
    pub fn is_clean(&self) -> bool {
        self.under_way.is_empty() && self.written == self.out.len() && self.filled == 0
    }

    /// A request is due here.
    pub fn push(&mut self, due: Due) {
        self.waiting.push_back(due);
    }

    /// Makes waiting requests into bytes, while fewer than `depth` are under way, by `write`, which returns
    /// the request's version.
    pub fn start(&mut self, depth: usize, mut write: impl FnMut(&Due, &mut Vec<u8>) -> u32) {
        while self.under_way.len() < depth && self.out.len() - self.written < OUT_FULL {
            let Some(due) = self.waiting.pop_front() else {
                return;
            };
            let version = write(&due, &mut self.out);
            let sent = Instant::now();
            self.under_way.push_back(Request { due, version, sent });
        }
    }

    /// Gives the socket what it takes.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`].
    pub fn flush(&mut self, server: &Server) -> Result<Flushed, Error> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Flushed::Blocked);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(server, error)),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(Flushed::All)
    }

    /// Reads once and hands each whole reply to `each`.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], [`Error::Broken`], [`Error::Malformed`].
    pub fn receive(
        &mut self,
        server: &Server,
        protocol: Protocol,
        mut each: impl FnMut(&Request, Reply<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => return Err(self.closed(server)),
            Ok(count) => self.filled += count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(error) => return Err(self.broken(server, error)),
        }
        let mut taken = 0;
        while taken < self.filled {
            let bytes = &self.input[taken..self.filled];
            let Some(request) = self.under_way.front() else {
                let line = shorten(bytes);
                return Err(Error::Malformed {
                    command: "request that was not sent",
                    line,
                });
            };
            let command = request.due.command;
            match protocol.reply(command, bytes) {
                Ok(None) => break,
                Ok(Some((reply, length))) => {
                    each(request, reply)?;
                    self.under_way.pop_front();
                    self.replies += 1;
                    taken += length;
                }
                Err(Malformed(line)) => {
                    let command = command_name(command);
                    return Err(Error::Malformed { command, line });
                }
            }
        }
        self.input.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        Ok(())
    }

    /// Requests under way and requests that wait.
    pub fn open_requests(&self) -> impl Iterator<Item = &Due> {
        let under_way = self.under_way.iter().map(|request| &request.due);
        under_way.chain(&self.waiting)
    }

    /// Forgets the requests that were not sent.
    pub fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    fn closed(&self, server: &Server) -> Error {
        Error::Closed {
            server: server.clone(),
            replies: self.replies,
            awaited: self.under_way.len(),
        }
    }

    fn broken(&self, server: &Server, cause: std::io::Error) -> Error {
        match cause.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => self.closed(server),
            _ => Error::Broken {
                server: server.clone(),
                cause,
            },
        }
    }
}

/// The command's name in messages.
pub fn command_name(command: Command) -> &'static str {
    match command {
        Command::Get => "get",
        Command::Set => "set",
    }
}
