//! Unix sockets: listeners, streams, datagrams.

use super::{
    ReadHalf, Started, StartedRead, StartedWrite, WriteHalf, split,
    stream::{ReadOperation, Stream, WriteOperation, impl_stream},
};
use crate::{
    fs::Offloaded,
    io::{
        Async, Blocking, poller,
        source::{Direction, Done},
    },
};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketType},
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    os::unix::net as unix,
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};

/// A connection to another process of this machine.
///
/// ```
/// use urgency::net::UnixStream;
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let (a, b) = UnixStream::pair()?;
///     a.write_all(b"ping").await?;
///     let mut buffer = [0; 4];
///     b.read_exact(&mut buffer).await?;
///     assert_eq!(&buffer, b"ping");
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct UnixStream {
    stream: Stream,
}

impl_stream!(UnixStream);

impl UnixStream {
    /// Connects to the socket at `path`.
    ///
    /// If the listener's queue is full, the kernel has no way to say when it is not; then a declared blocking
    /// call waits for it.
    ///
    /// # Errors
    /// Those of the kernel.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let address = SocketAddrUnix::new(path)?;
        let socket = poller::socket(AddressFamily::UNIX, SocketType::STREAM)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => Ok(UnixStream::from_nonblocking(socket)),
            Err(Errno::AGAIN) => {
                let path = path.to_owned();
                let stream = Offloaded::new(move || unix::UnixStream::connect(path)).await?;
                stream.try_into()
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Two connected streams.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = unix::UnixStream::pair()?;
        Ok((a.try_into()?, b.try_into()?))
    }

    fn from_nonblocking(socket: OwnedFd) -> Self {
        UnixStream {
            stream: Stream::new(Async::from_nonblocking(socket), false),
        }
    }
}

impl TryFrom<unix::UnixStream> for UnixStream {
    type Error = io::Error;

    /// Makes the stream non-blocking.
    fn try_from(stream: unix::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(UnixStream::from_nonblocking(stream.into()))
    }
}

impl From<UnixStream> for unix::UnixStream {
    /// The stream is still non-blocking.
    fn from(stream: UnixStream) -> Self {
        stream.stream.into_fd().into()
    }
}

/// A Unix socket that accepts connections. It is bound to a path, which it does not remove.
#[derive(Debug)]
pub struct UnixListener {
    io: Async<unix::UnixListener>,
}

impl UnixListener {
    /// Binds to `path`, which must not exist, and listens.
    ///
    /// # Errors
    /// Those of the kernel; `AddrInUse` if the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        unix::UnixListener::bind(path)?.try_into()
    }

    /// The next connection. Dropping the future loses none.
    ///
    /// # Errors
    /// As [`TcpListener::accept`](super::TcpListener::accept); the listener stays usable.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        self.io.operate(Direction::Read, attempt_accept).await
    }

    /// The `poll_*` form of [`accept`](UnixListener::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        self.io.poll_operate(cx, Direction::Read, attempt_accept)
    }

    /// The blocking forms, for closures.
    pub fn blocking(&self) -> Blocking<'_, Self> {
        Blocking::new(self)
    }

    /// The listener of the standard library, for its address.
    pub fn socket(&self) -> &unix::UnixListener {
        self.io.get_ref()
    }
}

fn attempt_accept(listener: &unix::UnixListener) -> io::Result<Done<UnixStream>> {
    let (socket, _) = poller::accept(listener)?;
    Ok(Done::maybe_more(UnixStream::from_nonblocking(socket)))
}

impl Blocking<'_, UnixListener> {
    /// See [`UnixListener::accept`].
    ///
    /// # Errors
    /// As there.
    pub fn accept(&self) -> io::Result<UnixStream> {
        crate::block_on(self.inner.accept())
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl TryFrom<unix::UnixListener> for UnixListener {
    type Error = io::Error;

    /// Makes the listener non-blocking.
    fn try_from(listener: unix::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(UnixListener {
            io: Async::from_nonblocking(listener),
        })
    }
}

/// A Unix socket for datagrams, which are neither lost nor reordered.
#[derive(Debug)]
pub struct UnixDatagram {
    io: Async<unix::UnixDatagram>,
}

impl UnixDatagram {
    /// Binds to `path`, which must not exist.
    ///
    /// # Errors
    /// Those of the kernel; `AddrInUse` if the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        unix::UnixDatagram::bind(path)?.try_into()
    }

    /// A socket without an address, to send from.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn unbound() -> io::Result<Self> {
        unix::UnixDatagram::unbound()?.try_into()
    }

    /// Two connected sockets.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = unix::UnixDatagram::pair()?;
        Ok((a.try_into()?, b.try_into()?))
    }

    /// Sets the only peer. This does not wait.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.socket().connect(path)
    }

    /// Sends one datagram to the connected peer.
    ///
    /// # Errors
    /// Those of the kernel, or that the runtime was shut down.
    pub async fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.io.write_with(|socket| socket.send(datagram)).await
    }

    /// Receives one datagram and gives its length. Dropping the future loses none.
    ///
    /// # Errors
    /// Those of the kernel, or that the runtime was shut down.
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.read_with(|socket| socket.recv(buffer)).await
    }

    /// As [`recv`](UnixDatagram::recv), with the address of the sender.
    ///
    /// # Errors
    /// As [`recv`](UnixDatagram::recv).
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.io.read_with(|socket| socket.recv_from(buffer)).await
    }

    /// The blocking forms, for closures.
    pub fn blocking(&self) -> Blocking<'_, Self> {
        Blocking::new(self)
    }

    /// The socket of the standard library, for its addresses and options.
    pub fn socket(&self) -> &unix::UnixDatagram {
        self.io.get_ref()
    }
}

impl Blocking<'_, UnixDatagram> {
    /// See [`UnixDatagram::send`].
    ///
    /// # Errors
    /// As there.
    pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        crate::block_on(self.inner.send(datagram))
    }

    /// See [`UnixDatagram::recv`].
    ///
    /// # Errors
    /// As there.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        crate::block_on(self.inner.recv(buffer))
    }
}

impl AsFd for UnixDatagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl TryFrom<unix::UnixDatagram> for UnixDatagram {
    type Error = io::Error;

    /// Makes the socket non-blocking.
    fn try_from(socket: unix::UnixDatagram) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(UnixDatagram {
            io: Async::from_nonblocking(socket),
        })
    }
}
