//! Sockets: TCP, UDP and Unix, each operation an I/O future.
//!
//! There are three ways to make an operation, and they mix freely on one socket:
//!
//! - `socket.read(&mut buffer).await`: the operation is tried when the future is first polled, and waits
//!   for its turn if it would block. Dropping the future cancels it, and then nothing has happened.
//! - `socket.start_read(vec)`: the operation is tried *now*; the future, which owns its buffer, can
//!   be awaited later or sent elsewhere. Dropping it loses nothing either: what it read goes
//!   back to the socket. (The I/O futures of the papers: start, do something else, get.)
//! - `socket.blocking()`: the same operations for closures, returning when they are done.
//!
//! Streams also implement [`futures_io::AsyncRead`] and [`futures_io::AsyncWrite`], by value and by
//! reference. Operations of several tasks in the same direction of one socket are served in the order in
//! which they began to wait, if they are futures or started operations. The traits, the `poll_*` forms
//! and the [`Blocking`](crate::io::Blocking) view of a stream, which goes by the traits, have no place in
//! that order: all of their tasks are woken by each readiness, and may overtake the others and one
//! another.
//!
//! Readiness wakes the operation that waits first; when that ends or is dropped, it passes on what readiness is left.
//! So an operation that was polled is polled until it ends, or dropped: if a task keeps it aside, the operations behind
//! it wait until the socket becomes ready once more.
//!
//! Every socket option that has no method here can be set through `AsFd` (for instance with the
//! crate `socket2`).
//!
//! From the bottom up: `addr` (addresses and names), `started` (operations that start at once),
//! `stream`, `accept`, `datagram` and `receive_buffer` (what TCP or UDP and Unix sockets share), `split`, `connect`,
//! `impl_stream` and `impl_datagrams` (the surfaces of both kinds of each), then one file per kind of socket, and
//! `unix/pipe`.

mod accept;
mod addr;
mod connect;
pub(crate) mod datagram;
mod impl_datagrams;
mod impl_stream;
mod of_std;
mod options;
pub(crate) mod receive_buffer;
mod split;
mod started;
mod stream;
mod tcp_socket;
mod tcp_stream;
mod udp;
mod unix_datagram;
mod unix_socket;
mod unix_stream;

pub use accept::is_exhausted;
pub use addr::{ToSocketAddrs, lookup_host};
pub use connect::{Connect, ConnectUnix};
pub use receive_buffer::ReceiveBuffer;
pub use started::{Started, StartedAccept, StartedRead, StartedReceive, StartedSend, StartedWrite};
pub use tcp_socket::TcpSocket;
pub use tcp_stream::{Incoming, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix_datagram::UnixDatagram;
pub use unix_socket::UnixSocket;
pub use unix_stream::{UnixListener, UnixStream};

/// The halves of a [`TcpStream`].
///
/// ```
/// use std::io;
/// use urgency::net::{TcpListener, TcpStream, tcp};
///
/// /// Borrowed halves: two sides of one task.
/// async fn echo(from: tcp::ReadHalf<'_>, to: tcp::WriteHalf<'_>) -> io::Result<()> {
///     let mut buffer = [0; 4];
///     from.read_exact(&mut buffer).await?;
///     to.write_all(&buffer).await
/// }
///
/// urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let (mut server, _) = listener.accept().await?;
///     // Owned halves can go to two tasks.
///     let (reader, writer): (tcp::OwnedReadHalf, tcp::OwnedWriteHalf) = client.into_split();
///     let heard = urgency::spawn(async move {
///         let mut buffer = [0; 4];
///         reader.read_exact(&mut buffer).await.map(|_| buffer)
///     });
///     writer.write_all(b"ping").await?;
///     let (from, to) = server.split();
///     echo(from, to).await?;
///     assert_eq!(&heard.await.unwrap()?, b"ping");
///     io::Result::Ok(())
/// })?;
/// # io::Result::Ok(())
/// ```
pub mod tcp {
    pub use super::split::ReuniteError;
    use super::{TcpStream, split};

    /// The half that reads, borrowed: [`TcpStream::split`].
    pub type ReadHalf<'a> = split::ReadHalf<'a, TcpStream>;
    /// The half that writes, borrowed: [`TcpStream::split`].
    pub type WriteHalf<'a> = split::WriteHalf<'a, TcpStream>;
    /// The half that reads: [`TcpStream::into_split`].
    pub type OwnedReadHalf = split::OwnedReadHalf<TcpStream>;
    /// The half that writes: [`TcpStream::into_split`].
    pub type OwnedWriteHalf = split::OwnedWriteHalf<TcpStream>;
}

/// The halves of a [`UnixStream`], pipes, and an address.
///
/// ```
/// use std::io;
/// use urgency::net::{UnixStream, unix};
///
/// urgency::block_on(async {
///     let (mut client, server) = UnixStream::pair()?;
///     let (reader, _writer): (unix::OwnedReadHalf, unix::OwnedWriteHalf) = server.into_split();
///     let (_from, to): (unix::ReadHalf<'_>, unix::WriteHalf<'_>) = client.split();
///     to.write_all(b"ping").await?;
///     let mut buffer = [0; 4];
///     reader.read_exact(&mut buffer).await?;
///     assert_eq!(&buffer, b"ping");
///     io::Result::Ok(())
/// })?;
/// # io::Result::Ok(())
/// ```
pub mod unix {
    pub mod pipe;

    use super::{UnixStream, split};
    pub use super::{split::ReuniteError, unix_stream::UCred};
    pub use std::os::unix::net::SocketAddr;

    /// The half that reads, borrowed: [`UnixStream::split`].
    pub type ReadHalf<'a> = split::ReadHalf<'a, UnixStream>;
    /// The half that writes, borrowed: [`UnixStream::split`].
    pub type WriteHalf<'a> = split::WriteHalf<'a, UnixStream>;
    /// The half that reads: [`UnixStream::into_split`].
    pub type OwnedReadHalf = split::OwnedReadHalf<UnixStream>;
    /// The half that writes: [`UnixStream::into_split`].
    pub type OwnedWriteHalf = split::OwnedWriteHalf<UnixStream>;
}

#[cfg(test)]
mod tests;
