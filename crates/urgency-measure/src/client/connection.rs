//! One connection: requests that wait for their turn, requests under way, bytes in both directions.
//!
//! Replies come in the order of the requests, so the requests under way are a queue. At most `depth` of them
//! are under way; further ones wait here, in the client, and their latency runs: it counts from the time at
//! which they were due. A request becomes bytes when it is sent, not before, so what it notes at that time is in the
//! order of sending.

use super::{Chunk, Server, Stream, Times, Traffic, Trouble};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Instant;

/// A request that is due.
#[derive(Clone, Copy, Debug)]
pub struct Asked<R> {
    /// From when its latency counts.
    pub due: Instant,
    /// The request.
    pub request: R,
}

/// A request under way, and when it was sent.
#[derive(Clone, Copy, Debug)]
struct Sent<R> {
    asked: Asked<R>,
    at: Instant,
}

/// Bytes that may wait for the socket before no further request is made into bytes.
const OUT_FULL: usize = 128 * 1024;
const FIRST_INPUT: usize = 4096;

/// A connection.
#[derive(Debug)]
pub struct Connection<R> {
    stream: Stream,
    waiting: VecDeque<Asked<R>>,
    under_way: VecDeque<Sent<R>>,
    out: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    filled: usize,
    /// The stamp of what was read last.
    stamp: Option<Instant>,
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

impl<R: Copy> Connection<R> {
    /// Connects.
    ///
    /// # Errors
    ///
    /// [`Trouble::Connect`].
    pub fn open(server: &Server) -> Result<Self, Trouble> {
        Ok(Connection {
            stream: Stream::connect(server)?,
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
            out: Vec::new(),
            written: 0,
            input: vec![0; FIRST_INPUT],
            filled: 0,
            stamp: None,
            replies: 0,
        })
    }

    /// Connects again. All requests that were open wait to be sent, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Trouble::Connect`].
    pub fn reopen(&mut self, server: &Server) -> Result<(), Trouble> {
        let mut again = Self::open(server)?;
        again.waiting = self.under_way.iter().map(|sent| sent.asked).collect();
        again.waiting.append(&mut self.waiting);
        *self = again;
        Ok(())
    }

    /// The stream, to be polled.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether nothing is under way in either direction.
    pub fn is_clean(&self) -> bool {
        self.under_way.is_empty() && self.written == self.out.len() && self.filled == 0
    }

    /// Whether it has no request.
    pub fn is_free(&self) -> bool {
        self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// A request is due here.
    pub fn push(&mut self, asked: Asked<R>) {
        self.waiting.push_back(asked);
    }

    /// Makes waiting requests into bytes, while fewer than `depth` are under way.
    pub fn start<T: Traffic<Request = R>>(&mut self, depth: usize, traffic: &mut T) {
        while self.under_way.len() < depth && self.out.len() - self.written < OUT_FULL {
            let Some(mut asked) = self.waiting.pop_front() else {
                return;
            };
            traffic.write(&mut asked.request, &mut self.out);
            let at = Instant::now();
            self.under_way.push_back(Sent { asked, at });
        }
    }

    /// Gives the socket what it takes.
    ///
    /// # Errors
    ///
    /// [`Trouble::Broken`], [`Trouble::Closed`].
    pub fn flush(&mut self, server: &Server) -> Result<Flushed, Trouble> {
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

    /// Reads once; whether anything came.
    ///
    /// # Errors
    ///
    /// [`Trouble::Closed`], [`Trouble::Broken`].
    pub fn read(&mut self, server: &Server) -> Result<bool, Trouble> {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(Chunk { count: 0, .. }) => Err(self.closed(server)),
            Ok(Chunk { count, stamp }) => {
                self.filled += count;
                self.stamp = stamp;
                Ok(true)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(false)
            }
            Err(error) => Err(self.broken(server, error)),
        }
    }

    /// Lets `traffic` take each whole reply of what was read; how many there were.
    ///
    /// # Errors
    ///
    /// [`Trouble::Unasked`], and the traffic's.
    pub fn take_replies<T: Traffic<Request = R>>(
        &mut self,
        server: &Server,
        traffic: &mut T,
    ) -> Result<usize, T::Error> {
        let now = Instant::now();
        let (mut taken, mut replies) = (0, 0);
        while taken < self.filled {
            let bytes = &self.input[taken..self.filled];
            let Some(Sent { asked, at }) = self.under_way.front() else {
                let (server, bytes) = (server.clone(), bytes.to_vec());
                return Err(Trouble::Unasked { server, bytes }.into());
            };
            let times = Times {
                due: asked.due,
                sent: *at,
                replied: self.stamp.unwrap_or(now),
                now,
            };
            let Some(length) = traffic.receive(&asked.request, times, bytes)? else {
                break;
            };
            self.under_way.pop_front();
            self.replies += 1;
            taken += length;
            replies += 1;
        }
        self.input.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        Ok(replies)
    }

    /// Requests under way and requests that wait.
    pub fn open_requests(&self) -> impl Iterator<Item = &Asked<R>> {
        let under_way = self.under_way.iter().map(|sent| &sent.asked);
        under_way.chain(&self.waiting)
    }

    /// Forgets the requests that were not sent.
    pub fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Whether the server may close it here without having left a reply half.
    pub fn is_between_replies(&self) -> bool {
        self.filled == 0
    }

    fn closed(&self, server: &Server) -> Trouble {
        Trouble::Closed {
            server: server.clone(),
            replies: self.replies,
            awaited: self.under_way.len(),
        }
    }

    fn broken(&self, server: &Server, cause: std::io::Error) -> Trouble {
        match cause.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => self.closed(server),
            _ => Trouble::Broken {
                server: server.clone(),
                cause,
            },
        }
    }
}
