//! TCP: listeners and streams.

use super::{
    Started, StartedAccept, StartedRead, StartedWrite, TcpSocket, ToSocketAddrs,
    accept::{AcceptOperation, Accepted, Acceptor, impl_listener},
    addr,
    connect::Connect,
    impl_stream::impl_stream,
    of_std::of_std,
    split,
    stream::{ReadOperation, Stream, WriteOperation},
};
use crate::io::{Async, Blocking, Interest, Ready};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{SocketAddrAny, sockopt},
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// How many connections may wait to be accepted; the kernel lowers it to its own limit.
const BACKLOG: u32 = 4096;

/// A TCP connection.
///
/// It can be used from several tasks by `&`; [`net`](crate::net) says how its operations can be made.
///
/// ```
/// use urgency::net::{TcpListener, TcpStream};
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let connecting = TcpStream::connect(listener.local_addr()?);
///     let (server, peer) = listener.accept().await?;
///     let client = connecting.await?;
///     assert_eq!(peer, client.local_addr()?);
///
///     client.write_all(b"ping").await?;
///     let mut buffer = [0; 4];
///     server.read_exact(&mut buffer).await?;
///     assert_eq!(&buffer, b"ping");
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct TcpStream {
    stream: Stream,
}

impl_stream!(TcpStream);

impl TcpStream {
    /// Connects. A literal address is connected to at once, before the future is polled; a name is looked up
    /// first (a blocking call that costs no worker). Several addresses are tried in order.
    ///
    /// ```
    /// use urgency::net::{TcpListener, TcpStream};
    ///
    /// urgency::block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     assert_eq!(client.peer_addr()?, listener.local_addr()?);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// The future gives the error of the last address; or `InvalidInput` if there is no address.
    pub fn connect(to: impl ToSocketAddrs) -> Connect {
        Connect::new(to.resolve())
    }

    /// Of a stream of the standard library, which is made non-blocking.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        stream.try_into()
    }

    /// The stream of the standard library, still non-blocking. Bytes that a dropped started read put back are lost:
    /// read them first.
    ///
    /// # Errors
    /// None yet.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        Ok(self.into())
    }

    pub(crate) fn from_async(socket: Async<OwnedFd>) -> Self {
        TcpStream {
            stream: Stream::new(socket, true),
        }
    }

    fn fd(&self) -> &OwnedFd {
        self.stream.io().get_ref()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        address(rustix::net::getsockname(self.fd())?)
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let peer = rustix::net::getpeername(self.fd())?;
        address(peer.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// Whether small writes are sent at once instead of being collected (Nagle's algorithm off).
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(sockopt::tcp_nodelay(self.fd())?)
    }

    /// See [`nodelay`](TcpStream::nodelay); off for new streams.
    ///
    /// ```
    /// use urgency::net::{TcpListener, TcpStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// urgency::block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     assert!(!stream.nodelay()?);
    ///     stream.set_nodelay(true)?;
    ///     assert!(stream.nodelay()?);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        Ok(sockopt::set_tcp_nodelay(self.fd(), nodelay)?)
    }

    /// How long closing waits for what is not sent yet; `None`: it does not wait, and the kernel goes on sending.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(sockopt::socket_linger(self.fd())?)
    }

    /// Makes closing drop what is not sent yet and reset the connection. (A longer
    /// [`linger`](TcpStream::linger) would block the thread that closes.)
    ///
    /// # Errors
    /// The errors of the kernel.
    ///
    /// ```
    /// use urgency::net::{TcpListener, TcpStream};
    ///
    /// urgency::block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, _) = listener.accept().await?;
    ///     server.set_zero_linger()?;
    ///     drop(server);
    ///     assert!(client.read(&mut [0]).await.is_err()); // reset
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_zero_linger(&self) -> io::Result<()> {
        Ok(sockopt::set_socket_linger(self.fd(), Some(Duration::ZERO))?)
    }
}

of_std!(std::net::TcpStream => TcpStream, |stream| {
    TcpStream::from_async(Async::from_nonblocking(stream.into()))
});

impl From<TcpStream> for std::net::TcpStream {
    /// The stream is still non-blocking. Bytes that a dropped started read put back are lost: read them
    /// first.
    fn from(stream: TcpStream) -> Self {
        stream.stream.into_fd().into()
    }
}

impl Accepted for (TcpStream, SocketAddr) {
    fn new(socket: OwnedFd, peer: Option<SocketAddrAny>) -> io::Result<Self> {
        let stream = TcpStream::from_async(Async::from_nonblocking(socket));
        let peer = match peer {
            Some(peer) => address(peer)?,
            None => stream.peer_addr()?,
        };
        Ok((stream, peer))
    }
}

/// A TCP socket that accepts connections.
///
/// Several tasks may accept from one listener by `&`; each connection wakes one of them, the one that has
/// waited longest.
///
/// ```
/// use urgency::net::{TcpListener, TcpStream};
///
/// urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let accepting = listener.start_accept();
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let (mut server, peer) = accepting.await?;
///     assert_eq!(peer, client.local_addr()?);
///     let (from_client, to_client) = server.split();
///     drop((from_client, to_client));
///     assert!(listener.start_accept().cancel().is_none()); // nobody connected
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TcpListener {
    acceptor: Acceptor<(TcpStream, SocketAddr)>,
}

impl_listener!(TcpListener of (TcpStream, SocketAddr));

impl TcpListener {
    /// Binds to the first of the addresses that can be bound, and listens. Port 0 takes any free port. It waits for
    /// nothing but the lookup of a name. Dropping the future binds nothing.
    ///
    /// # Errors
    /// The error of the last address; or `InvalidInput` if there is no address.
    pub fn bind<A: ToSocketAddrs>(to: A) -> impl Future<Output = io::Result<Self>> + Send + use<A> {
        let addresses = to.resolve();
        async {
            addr::first_that_works(addresses.get().await?, |address| {
                let socket = TcpSocket::of(address)?;
                socket.set_reuseaddr(true)?;
                socket.bind(address)?;
                socket.listen(BACKLOG)
            })
        }
    }

    /// Of a socket that listens.
    pub(super) fn from_nonblocking(socket: OwnedFd) -> Self {
        TcpListener {
            acceptor: Acceptor::new(socket),
        }
    }

    /// Of a listener of the standard library, which is made non-blocking.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.try_into()
    }

    /// The listener of the standard library, still non-blocking. Connections that a dropped started accept put back
    /// are closed: accept them first.
    ///
    /// # Errors
    /// None yet.
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        Ok(self.acceptor.into_fd().into())
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        address(rustix::net::getsockname(self.acceptor.io().get_ref())?)
    }
}

of_std!(std::net::TcpListener => TcpListener, |listener| {
    TcpListener::from_nonblocking(listener.into())
});

/// The connections of a listener; see [`TcpListener::incoming`]. With the feature `stream` it is a `Stream`.
///
/// ```
/// use urgency::net::{Incoming, TcpListener, TcpStream};
///
/// urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let mut incoming: Incoming<'_> = listener.incoming();
///     assert_eq!(incoming.next().await?.peer_addr()?, client.local_addr()?);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Incoming<'a, L = TcpListener> {
    pub(super) listener: &'a L,
}

impl<L> Clone for Incoming<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Incoming<'_, L> {}

impl Incoming<'_> {
    /// The next connection. It never ends.
    ///
    /// # Errors
    /// As [`TcpListener::accept`].
    pub async fn next(&mut self) -> io::Result<TcpStream> {
        Ok(self.listener.accept().await?.0)
    }

    /// The `poll_*` form of [`next`](Incoming::next), with the signature of a stream's `poll_next`; never
    /// ready with `None`.
    pub fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<TcpStream>>> {
        let accepted = self.listener.poll_accept(cx);
        accepted.map(|result| Some(result.map(|(stream, _)| stream)))
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Incoming::poll_next(self, cx)
    }
}

pub(super) fn address(any: SocketAddrAny) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(any)?)
}
