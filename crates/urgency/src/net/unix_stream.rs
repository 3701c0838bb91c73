//! Unix sockets: listeners and streams.

use super::{
    ConnectUnix, Incoming, Started, StartedAccept, StartedRead, StartedWrite,
    accept::{AcceptOperation, Accepted, Acceptor, impl_listener},
    impl_stream::impl_stream,
    of_std::of_std,
    split,
    stream::{ReadOperation, Stream, WriteOperation},
};
use crate::io::{Async, Blocking};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::SocketAddrAny,
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
    /// Connects to the socket at `path`, at once: before the future is polled.
    ///
    /// If the listener's queue is full, the kernel has no way to say when it is not; then a declared blocking
    /// call waits for it.
    ///
    /// # Errors
    /// The future gives the kernel's errors.
    pub fn connect(path: impl AsRef<Path>) -> ConnectUnix {
        ConnectUnix::new(path.as_ref())
    }

    /// Two connected streams.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = unix::UnixStream::pair()?;
        Ok((a.try_into()?, b.try_into()?))
    }

    pub(crate) fn from_nonblocking(socket: OwnedFd) -> Self {
        UnixStream {
            stream: Stream::new(Async::from_nonblocking(socket), false),
        }
    }
}

of_std!(unix::UnixStream => UnixStream, |stream| UnixStream::from_nonblocking(stream.into()));

impl From<UnixStream> for unix::UnixStream {
    /// The stream is still non-blocking. Bytes that a dropped started read put back are lost: read them
    /// first.
    fn from(stream: UnixStream) -> Self {
        stream.stream.into_fd().into()
    }
}

impl Accepted for UnixStream {
    fn new(socket: OwnedFd, _: Option<SocketAddrAny>) -> io::Result<Self> {
        Ok(UnixStream::from_nonblocking(socket))
    }
}

/// A Unix socket that accepts connections. It is bound to a path, which it does not remove.
#[derive(Debug)]
pub struct UnixListener {
    acceptor: Acceptor<UnixStream>,
}

impl_listener!(UnixListener of UnixStream);

impl UnixListener {
    /// Binds to `path`, which must not exist, and listens.
    ///
    /// # Errors
    /// The kernel's errors; `AddrInUse` if the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        unix::UnixListener::bind(path)?.try_into()
    }
}

impl Incoming<'_, UnixListener> {
    /// The next connection. It never ends.
    ///
    /// # Errors
    /// As [`UnixListener::accept`].
    pub async fn next(&mut self) -> io::Result<UnixStream> {
        self.listener.accept().await
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Incoming<'_, UnixListener> {
    type Item = io::Result<UnixStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.listener.poll_accept(cx).map(Some)
    }
}

of_std!(unix::UnixListener => UnixListener, |listener| {
    UnixListener { acceptor: Acceptor::new(listener.into()) }
});
