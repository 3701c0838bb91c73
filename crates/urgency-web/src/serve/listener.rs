//! What can be served on: TCP and Unix sockets, and whatever accepts connections.

use std::{
    fmt, io,
    net::SocketAddr,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite};
use urgency::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A source of connections for [`serve`](super::serve()).
///
/// It is implemented for the listeners of [`urgency::net`]. A program implements it for its own, to
/// filter peers or to set options of the sockets:
///
/// ```
/// use std::{io, net::SocketAddr, task::{Context, Poll, ready}};
/// use urgency::net::{TcpListener, TcpStream};
/// use urgency_web::serve::Listener;
///
/// /// Serves only clients on this machine.
/// struct Local(TcpListener);
///
/// impl Listener for Local {
///     type Stream = TcpStream;
///     type Peer = SocketAddr;
///
///     fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
///         loop {
///             let (stream, peer) = ready!(self.0.poll_accept(cx))?;
///             if peer.ip().is_loopback() {
///                 return Poll::Ready(Ok((stream, peer)));
///             }
///         }
///     }
///
///     fn set_nodelay(&self, stream: &TcpStream) -> io::Result<()> {
///         stream.set_nodelay(true)
///     }
/// }
/// ```
pub trait Listener: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    /// The address of the stream's other end.
    type Peer: Clone + fmt::Debug + Send + Sync + 'static;

    /// The next connection, or `cx` is woken when there is one.
    ///
    /// # Errors
    /// The kernel's errors. [`serve`](super::serve()) says what the server does about which.
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Self::Stream, Self::Peer)>>;

    /// Turns Nagle's algorithm off, where there is one. The default does nothing.
    ///
    /// # Errors
    /// The kernel's errors; the connection is served all the same.
    fn set_nodelay(&self, _stream: &Self::Stream) -> io::Result<()> {
        Ok(())
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    type Peer = SocketAddr;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.poll_accept(cx)
    }

    fn set_nodelay(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    /// Clients of Unix sockets rarely have a name.
    type Peer = ();

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, ())>> {
        self.poll_accept(cx).map_ok(|(stream, _)| (stream, ()))
    }
}
