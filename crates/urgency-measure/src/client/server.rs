//! Where the server is, and one stream to it.

use super::Trouble;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
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
    pub fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(to),
            Stream::Unix(stream) => stream.read(to),
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
