//! A Unix socket before it is a listener, a stream or a socket for datagrams.

use super::{ConnectUnix, UnixDatagram, UnixListener};
use crate::reactor::sockets::{socket, unix_address, with_std};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{AddressFamily, SocketType},
};
use std::{io, os::unix::net as unix, path::Path};

/// A Unix socket that neither listens nor is connected yet: for a client that has an address of its own, and for a
/// listener with another queue than the usual one.
///
/// ```
/// use urgency::net::UnixSocket;
///
/// # fn main() -> std::io::Result<()> {
/// let folder = std::env::temp_dir().join(format!("urgency-unix-socket-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let (service, client) = (folder.join("service"), folder.join("client"));
/// urgency::block_on(async {
///     let socket = UnixSocket::new_stream()?;
///     socket.bind(&service)?;
///     let listener = socket.listen(16)?;
///
///     let socket = UnixSocket::new_stream()?;
///     socket.bind(&client)?;
///     let _stream = socket.connect(&service).await?;
///     let (_server, peer) = listener.accept().await?;
///     assert_eq!(peer.as_pathname(), Some(&*client));
///     std::fs::remove_dir_all(&folder)
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct UnixSocket {
    fd: OwnedFd,
    kind: SocketType,
}

impl UnixSocket {
    /// For datagrams.
    ///
    /// ```
    /// let socket = urgency::net::UnixSocket::new_datagram()?.datagram()?;
    /// assert!(socket.local_addr()?.is_unnamed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn new_datagram() -> io::Result<Self> {
        UnixSocket::new(SocketType::DGRAM)
    }

    /// For a stream, or a listener of streams.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn new_stream() -> io::Result<Self> {
        UnixSocket::new(SocketType::STREAM)
    }

    fn new(kind: SocketType) -> io::Result<Self> {
        let fd = socket(AddressFamily::UNIX, kind)?;
        Ok(UnixSocket { fd, kind })
    }

    /// Takes the address `path`, which must not exist. A path that begins with a NUL is a name in the abstract
    /// namespace, which needs no file.
    ///
    /// # Errors
    /// The errors of the kernel; `AddrInUse` if the path exists.
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let address = unix_address(path.as_ref())?;
        Ok(rustix::net::bind(&self.fd, &address)?)
    }

    /// Listens. At most `backlog` connections wait to be accepted; the kernel has a limit of its own.
    ///
    /// # Errors
    /// `Other` if it is a socket for datagrams, and the errors of the kernel.
    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.must_be(SocketType::STREAM, "listen")?;
        let backlog = backlog.try_into().unwrap_or(i32::MAX);
        rustix::net::listen(&self.fd, backlog)?;
        unix::UnixListener::from(self.fd).try_into()
    }

    /// Connects to the socket at `path`, at once: before the future is polled. A full queue of the listener is waited
    /// for as by [`UnixStream::connect`](super::UnixStream::connect). Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// `Other` if it is a socket for datagrams, and as [`UnixStream::connect`](super::UnixStream::connect).
    pub fn connect(self, path: impl AsRef<Path>) -> ConnectUnix {
        let is_stream = self.must_be(SocketType::STREAM, "connect");
        ConnectUnix::with(is_stream.map(|()| self.fd), path.as_ref())
    }

    /// The socket for datagrams.
    ///
    /// # Errors
    /// `Other` if it is a socket for a stream.
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.must_be(SocketType::DGRAM, "datagram")?;
        unix::UnixDatagram::from(self.fd).try_into()
    }

    /// The address that it was bound to.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<unix::SocketAddr> {
        with_std(&self.fd, unix::UnixStream::local_addr)
    }

    fn must_be(&self, kind: SocketType, call: &str) -> io::Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        let (is, right) = if kind == SocketType::STREAM {
            ("a datagram", "new_stream")
        } else {
            ("a stream", "new_datagram")
        };
        Err(io::Error::other(format!(
            "{call} cannot be called on {is} socket; make it by UnixSocket::{right}"
        )))
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
