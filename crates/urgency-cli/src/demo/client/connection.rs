//! One connection of the load client: the requests under way, and the latencies of the answered ones.
//!
//! The sender notes each request before it writes it; the receiver takes the note when the reply is complete.
//! Replies on one connection come in the order of the requests, so the notes are a queue. Both ends hold the
//! lock for a few instructions, and both run in the same class, so neither waits for a thread that is not
//! running.
//!
//! Closing wakes the receiver. Only an end that was not announced by [`Connection::close`] is an error.

use crate::demo::{error::Error, latencies::Latencies, wire};
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// One connection.
pub struct Connection {
    stream: TcpStream,
    under_way: Mutex<VecDeque<Asked>>,
    latencies: Mutex<Latencies>,
    closing: AtomicBool,
}

/// A request under way.
struct Asked {
    sequence: u64,
    key: u64,
    due: Instant,
    recorded: bool,
}

impl Connection {
    /// Connects to `server`.
    pub fn open(server: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(server).and_then(|stream| {
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        Ok(Connection {
            stream: stream.map_err(|cause| Error::Connect { server, cause })?,
            under_way: Mutex::default(),
            latencies: Mutex::new(Latencies::new()),
            closing: AtomicBool::new(false),
        })
    }

    /// Sends a request that was due at `due`.
    pub fn send(&self, sequence: u64, key: u64, due: Instant, recorded: bool) -> Result<(), Error> {
        lock(&self.under_way).push_back(Asked {
            sequence,
            key,
            due,
            recorded,
        });
        (&self.stream)
            .write_all(&wire::request(sequence, key))
            .map_err(|cause| Error::Connection { cause })
    }

    /// Receives and checks replies until the connection is closed.
    pub fn receive(&self) -> Result<(), Error> {
        let answers: Vec<_> = (0..wire::KEYS).map(wire::answer).collect();
        let mut reply = [0; wire::MESSAGE];
        loop {
            if let Err(cause) = (&self.stream).read_exact(&mut reply) {
                return match self.closing.load(Ordering::Acquire) {
                    true => Ok(()),
                    false => Err(Error::Connection {
                        cause: named(cause),
                    }),
                };
            }
            let now = Instant::now();
            let (sequence, answer) = wire::parse(&reply);
            let Some(asked) = lock(&self.under_way).pop_front() else {
                return Err(Error::WrongReply { sequence });
            };
            if (sequence, answer) != (asked.sequence, answers[asked.key as usize]) {
                return Err(Error::WrongReply {
                    sequence: asked.sequence,
                });
            }
            if asked.recorded {
                lock(&self.latencies).answered(now - asked.due);
            }
        }
    }

    /// Whether every request has its reply.
    pub fn is_quiet(&self) -> bool {
        lock(&self.under_way).is_empty()
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        // It may be broken already, and then it is closed.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Takes the recorded requests that have no reply; the times that they waited.
    pub fn give_up(&self) -> Vec<Duration> {
        lock(&self.under_way)
            .drain(..)
            .filter(|asked| asked.recorded)
            .map(|asked| asked.due.elapsed())
            .collect()
    }

    /// Adds the latencies so far.
    pub fn add_to(&self, total: &mut Latencies) {
        total.merge(&lock(&self.latencies));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that panics is done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// "Failed to fill whole buffer" tells nobody anything.
fn named(cause: io::Error) -> io::Error {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(cause.kind(), "the server closed it"),
        _ => cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, thread};

    /// A server that treats its first connection with `treat`.
    fn connected(treat: impl FnOnce(TcpStream) + Send + 'static) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let server = listener.local_addr().expect("a listener has an address");
        thread::spawn(move || treat(listener.accept().expect("one comes").0));
        Connection::open(server).expect("somebody listens")
    }

    fn first_request(stream: &mut TcpStream) -> [u8; wire::MESSAGE] {
        let mut request = [0; wire::MESSAGE];
        stream.read_exact(&mut request).expect("one request");
        request
    }

    #[test]
    fn a_latency_counts_from_the_time_at_which_the_request_was_due() {
        let connection = connected(|mut stream| {
            let request = first_request(&mut stream);
            stream.write_all(&wire::reply(&request)).expect("one reply");
            // Keeps the connection until the client closes it.
            let _ = stream.read(&mut [0]);
        });
        let due = Instant::now() - Duration::from_secs(5);
        connection.send(0, 3, due, true).expect("a request");
        thread::scope(|scope| {
            let receiver = scope.spawn(|| connection.receive());
            while !connection.is_quiet() {
                thread::yield_now();
            }
            connection.close();
            receiver.join().unwrap().expect("closing is no error");
        });
        let mut latencies = Latencies::new();
        connection.add_to(&mut latencies);
        assert!(latencies.quantile(0.0).unwrap().ms > 4_990.0);
        assert_eq!(connection.give_up(), []);
    }

    #[test]
    fn a_wrong_answer_is_an_error() {
        let connection = connected(|mut stream| {
            let mut reply = wire::reply(&first_request(&mut stream));
            reply[15] ^= 1;
            stream.write_all(&reply).expect("one reply");
        });
        connection
            .send(7, 3, Instant::now(), true)
            .expect("a request");
        let error = connection.receive().expect_err("the answer is wrong");
        assert!(
            matches!(error, Error::WrongReply { sequence: 7 }),
            "{error}"
        );
    }

    #[test]
    fn a_connection_that_the_server_closes_is_an_error_and_its_requests_are_unanswered() {
        let connection = connected(drop);
        // The server may be gone already.
        let _ = connection.send(0, 0, Instant::now(), true);
        let error = connection.receive().expect_err("nobody answers");
        assert!(matches!(error, Error::Connection { .. }), "{error}");
        assert_eq!(connection.give_up().len(), 1);
    }
}
