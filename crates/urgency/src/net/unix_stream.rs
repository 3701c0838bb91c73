//! Unix sockets: listeners and streams.

use super::{
    ConnectUnix, Incoming, Started, StartedAccept, StartedRead, StartedWrite,
    accept::{AcceptOperation, Accepted, Acceptor, impl_listener},
    impl_stream::impl_stream,
    of_std::of_std,
    split,
    stream::{ReadOperation, Stream, WriteOperation},
};
use crate::{
    io::{Async, Blocking, Interest, Ready},
    reactor::sockets::{is_unnamed, listen_unix, peer_credentials, with_std},
};
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
    /// Connects to the socket at `path`, at once: before the future is polled. A path that begins with a NUL is a name
    /// in the abstract namespace.
    ///
    /// If the listener's queue is full, the kernel has no way to say when it is not. Then the future tries again by a
    /// timer, with pauses that double from 1 ms to 50 ms: it gets on only while it is polled. Dropping it gives the
    /// attempt up at once.
    ///
    /// ```
    /// use urgency::net::{UnixListener, UnixStream};
    ///
    /// let path = std::env::temp_dir().join(format!("urgency-connect-{}", std::process::id()));
    /// urgency::block_on(async {
    ///     let listener = UnixListener::bind(&path)?;
    ///     let client = UnixStream::connect(&path).await?;
    ///     let (server, peer) = listener.accept().await?;
    ///     assert!(peer.is_unnamed()); // a client is, as a rule
    ///     client.write_all(b"ping").await?;
    ///     let mut heard = [0; 4];
    ///     server.read_exact(&mut heard).await?;
    ///     assert_eq!(&heard, b"ping");
    ///     std::io::Result::Ok(())
    /// })?;
    /// std::fs::remove_file(path)?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// The future gives the kernel's errors; or that the runtime was shut down before there was room in the queue.
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

    /// Of a stream of the standard library, which is made non-blocking.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn from_std(stream: unix::UnixStream) -> io::Result<Self> {
        stream.try_into()
    }

    /// The stream of the standard library, still non-blocking. Bytes that a dropped started read put back are lost:
    /// read them first.
    ///
    /// # Errors
    /// None yet.
    pub fn into_std(self) -> io::Result<unix::UnixStream> {
        Ok(self.into())
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn local_addr(&self) -> io::Result<unix::SocketAddr> {
        with_std(self.stream.io().get_ref(), unix::UnixStream::local_addr)
    }

    /// The address of the other end.
    ///
    /// ```
    /// use urgency::net::{UnixListener, UnixStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("urgency-peer-addr-{}", std::process::id()));
    /// urgency::block_on(async {
    ///     let listener = UnixListener::bind(&path)?;
    ///     let client = UnixStream::connect(&path).await?;
    ///     assert_eq!(listener.local_addr()?.as_pathname(), Some(&*path));
    ///     assert_eq!(client.peer_addr()?.as_pathname(), Some(&*path));
    ///     assert!(listener.accept().await?.1.is_unnamed());
    ///     std::fs::remove_file(&path)
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn peer_addr(&self) -> io::Result<unix::SocketAddr> {
        with_std(self.stream.io().get_ref(), unix::UnixStream::peer_addr)
    }

    /// The process at the other end, as it was when the connection was made.
    ///
    /// ```
    /// let (a, _b) = urgency::net::UnixStream::pair()?;
    /// let peer = a.peer_cred()?;
    /// assert_eq!(peer.pid(), Some(std::process::id().try_into().unwrap()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn peer_cred(&self) -> io::Result<UCred> {
        let peer = peer_credentials(self.stream.io().get_ref())?;
        Ok(UCred {
            user: peer.uid,
            group: peer.gid,
            process: (peer.pid != 0).then_some(peer.pid),
        })
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

/// The process at the other end of a connection: see [`UnixStream::peer_cred`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UCred {
    user: u32,
    group: u32,
    process: Option<i32>,
}

impl UCred {
    /// Its effective user; `u32::MAX` if the socket is not connected.
    pub fn uid(&self) -> u32 {
        self.user
    }

    /// Its effective group; `u32::MAX` if the socket is not connected.
    pub fn gid(&self) -> u32 {
        self.group
    }

    /// Its number. `None` if it is in a pid namespace that this process does not see, or if the socket is not
    /// connected.
    pub fn pid(&self) -> Option<i32> {
        self.process
    }
}

impl Accepted for (UnixStream, unix::SocketAddr) {
    /// If the peer's address cannot be read, the connection has an unnamed peer: it is not lost.
    fn new(socket: OwnedFd, peer: Option<SocketAddrAny>) -> io::Result<Self> {
        let stream = UnixStream::from_nonblocking(socket);
        // As a rule a client is unnamed, and this is no further system call.
        let peer = match peer {
            Some(peer) if !is_unnamed(&peer) => stream.peer_addr().ok(),
            _ => None,
        };
        let peer = peer.map_or_else(|| unix::SocketAddr::from_pathname(""), Ok)?;
        Ok((stream, peer))
    }
}

/// A Unix socket that accepts connections. It is bound to a path, which it does not remove.
#[derive(Debug)]
pub struct UnixListener {
    acceptor: Acceptor<(UnixStream, unix::SocketAddr)>,
}

impl_listener!(UnixListener of (UnixStream, unix::SocketAddr));

impl UnixListener {
    /// Binds to `path`, which must not exist, and listens. A path that begins with a NUL is a name in the abstract
    /// namespace, which needs no file.
    ///
    /// # Errors
    /// The kernel's errors; `AddrInUse` if the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        listen_unix(path.as_ref())?.try_into()
    }

    /// Of a listener of the standard library, which is made non-blocking.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn from_std(listener: unix::UnixListener) -> io::Result<Self> {
        listener.try_into()
    }

    /// The listener of the standard library, still non-blocking. Connections that a dropped started accept put back
    /// are closed: accept them first.
    ///
    /// # Errors
    /// None yet.
    pub fn into_std(self) -> io::Result<unix::UnixListener> {
        Ok(self.acceptor.into_fd().into())
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn local_addr(&self) -> io::Result<unix::SocketAddr> {
        with_std(self.acceptor.io().get_ref(), unix::UnixStream::local_addr)
    }
}

impl Incoming<'_, UnixListener> {
    /// The next connection. It never ends.
    ///
    /// # Errors
    /// As [`UnixListener::accept`].
    pub async fn next(&mut self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Incoming<'_, UnixListener> {
    type Item = io::Result<UnixStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = self.listener.poll_accept(cx);
        accepted.map(|result| Some(result.map(|(stream, _)| stream)))
    }
}

of_std!(unix::UnixListener => UnixListener, |listener| {
    UnixListener { acceptor: Acceptor::new(listener.into()) }
});
