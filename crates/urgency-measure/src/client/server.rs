//! Where the server is, and one stream to it.
//!
//! The kernel stamps what comes over TCP (`SO_TIMESTAMPNS`). Over loopback it does so inside of the call by which the
//! server sends, so the stamp of a reply is when the server sent it, however late the client reads it, and whichever
//! server it is.

use super::Trouble;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use serde::Serialize;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, str::FromStr};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Server {
    /// `HOST:PORT`.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Server {
    type Err = String;

    /// `HOST:PORT`, `HOST` (port 11211), or a path with a `/` in it, with or without `unix:` before it.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Server::Unix(path.into()));
        }
        if text.contains('/') {
            return Ok(Server::Unix(text.into()));
        }
        let refusal = "allowed: HOST:PORT, HOST (port 11211), or the path of a Unix socket, as in /run/cache.sock or unix:cache.sock";
        match text.rsplit_once(':') {
            None if !text.is_empty() => Ok(Server::Tcp(format!("{text}:11211"))),
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0) => {
                Ok(Server::Tcp(text.to_owned()))
            }
            _ => Err(refusal.to_owned()),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Server::Tcp(address) => f.write_str(address),
            Server::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl From<Server> for String {
    fn from(server: Server) -> String {
        server.to_string()
    }
}

/// A connected stream that never waits.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

/// What one read gave.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// So many bytes.
    pub count: usize,
    /// When the kernel had the last of them. None over a Unix socket, which has no stamps, and in the first moments
    /// after a process of the machine asked the kernel to stamp what comes.
    pub stamp: Option<Instant>,
}

impl Stream {
    /// Connects.
    ///
    /// # Errors
    ///
    /// [`Trouble::Connect`] with the system's reason.
    pub fn connect(server: &Server) -> Result<Stream, Trouble> {
        let connect = || -> io::Result<Stream> {
            match server {
                Server::Tcp(address) => {
                    let stream = TcpStream::connect(address.as_str())?;
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                    setsockopt(&stream, sockopt::ReceiveTimestampns, &true)?;
                    Ok(Stream::Tcp(stream))
                }
                Server::Unix(path) => {
                    let stream = UnixStream::connect(path)?;
                    stream.set_nonblocking(true)?;
                    Ok(Stream::Unix(stream))
                }
            }
        };
        connect().map_err(|cause| Trouble::Connect {
            server: server.clone(),
            cause,
        })
    }

    /// Reads what has come.
    ///
    /// # Errors
    ///
    /// The socket's errors; `WouldBlock` if nothing has come.
    pub fn read(&mut self, to: &mut [u8]) -> io::Result<Chunk> {
        match self {
            Stream::Tcp(stream) => read_stamped(stream, to),
            Stream::Unix(stream) => stream.read(to).map(|count| Chunk { count, stamp: None }),
        }
    }

    /// Writes as much as the socket takes.
    ///
    /// # Errors
    ///
    /// The socket's errors; `WouldBlock` if the socket takes nothing now.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}

fn read_stamped(stream: &TcpStream, to: &mut [u8]) -> io::Result<Chunk> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(to)];
    let (descriptor, flags) = (stream.as_raw_fd(), MsgFlags::empty());
    let message = recvmsg::<()>(descriptor, &mut parts, Some(&mut control), flags)?;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    });
    Ok(Chunk {
        count: message.bytes,
        stamp: stamp.map(|stamp| monotonic(Duration::from(stamp))),
    })
}

/// A time of the kernel's real-time clock that has just passed, on the clock that nobody sets.
fn monotonic(stamp: Duration) -> Instant {
    let (now, real) = (Instant::now(), SystemTime::now());
    let since = real.duration_since(SystemTime::UNIX_EPOCH);
    let age = since.unwrap_or_default().saturating_sub(stamp);
    now.checked_sub(age).unwrap_or(now)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_stamp_of_what_came_is_when_it_was_sent_however_late_it_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let mut stream = Stream::connect(&Server::Tcp(address.to_string())).expect("it listens");
        let (mut peer, _) = listener.accept().expect("one has connected");
        let late = Duration::from_millis(100);
        let mut send = || {
            let before = Instant::now();
            peer.write_all(b"reply").expect("the other side is open");
            let after = Instant::now();
            std::thread::sleep(late);
            let chunk = stream.read(&mut [0; 64]).expect("it has come");
            assert_eq!(chunk.count, 5);
            chunk.stamp.map(|stamp| (before, stamp, after))
        };
        // The first bytes have none: the kernel begins a moment after it was asked to.
        let stamped = (0..100).find_map(|_| send());
        let (before, stamp, after) = stamped.expect("the kernel stamps TCP");
        // Two clocks were read one after the other, and a busy machine may take long between them.
        assert!(stamp + late / 2 >= before, "{:?}", before - stamp);
        assert!(stamp <= after + late / 2, "{:?}", stamp - after);
    }

    #[test]
    fn addresses_are_told_apart() {
        let server = |text: &str| text.parse::<Server>().expect(text);
        assert_eq!(server("cache"), Server::Tcp("cache:11211".into()));
        assert_eq!(server("127.0.0.1:5"), Server::Tcp("127.0.0.1:5".into()));
        assert_eq!(server("[::1]:5"), Server::Tcp("[::1]:5".into()));
        assert_eq!(server("/run/x"), Server::Unix("/run/x".into()));
        assert_eq!(server("unix:x"), Server::Unix("x".into()));
        for text in ["", ":5", "host:", "host:0", "host:70000", "host:x"] {
            let refusal = text.parse::<Server>().expect_err(text);
            assert!(refusal.contains("allowed"), "{text}");
        }
    }
}
