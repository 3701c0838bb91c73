//! UDP: datagrams, connected or not.

use super::{Started, StartedReceive, StartedSend, ToAddresses, addr, started::Startable};
use crate::io::{
    Async, Blocking,
    source::{Direction, Done},
    unread::Unread,
};
use rustix::fd::{AsFd, BorrowedFd};
use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    task::{Context, Poll},
};

type Socket = std::net::UdpSocket;

/// A UDP socket.
///
/// Several tasks may receive from it by `&`; each datagram goes to one of them, and those that wait get
/// their turn in order. A datagram that is longer than the buffer is cut.
///
/// ```
/// use urgency::net::UdpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let (a, b) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
///     a.send_to(b"hello", b.local_addr()?).await?;
///     let mut buffer = [0; 1500];
///     let (count, from) = b.recv_from(&mut buffer).await?;
///     assert_eq!((&buffer[..count], from), (&b"hello"[..], a.local_addr()?));
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct UdpSocket {
    io: Async<Socket>,
    unread: Unread<Datagram>,
}

#[derive(Debug)]
struct Datagram {
    buffer: Vec<u8>,
    count: usize,
    from: SocketAddr,
}

impl Datagram {
    fn copy_to(&self, buffer: &mut [u8]) -> (usize, SocketAddr) {
        let count = self.count.min(buffer.len());
        buffer[..count].copy_from_slice(&self.buffer[..count]);
        (count, self.from)
    }
}

impl UdpSocket {
    /// Binds to the first of the addresses that can be bound. Port 0 takes any free port. A *name* is looked
    /// up here and now, in a declared blocking call.
    ///
    /// # Errors
    /// That of the last address; or `InvalidInput` if there is no address.
    pub fn bind(to: impl ToSocketAddrs) -> io::Result<Self> {
        let addresses = crate::blocking(|| to.to_socket_addrs())?;
        addr::first_that_works(addresses, Socket::bind)?.try_into()
    }

    /// Sets the only peer, for [`send`](UdpSocket::send) and [`recv`](UdpSocket::recv).
    ///
    /// # Errors
    /// That of the last address, or of the name's lookup.
    pub async fn connect(&self, to: impl ToAddresses) -> io::Result<()> {
        let addresses = to.resolve();
        let addresses = addresses.get().await?;
        addr::first_that_works(addresses, |address| self.socket().connect(address))
    }

    /// Sends one datagram to `to`. Dropping the future before it is ready has sent nothing.
    ///
    /// # Errors
    /// Those of the kernel, or that the runtime was shut down.
    pub async fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.io
            .write_with(|socket| socket.send_to(datagram, to))
            .await
    }

    /// Sends one datagram to the connected peer.
    ///
    /// # Errors
    /// As [`send_to`](UdpSocket::send_to), and if the socket is not connected.
    pub async fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.io.write_with(|socket| socket.send(datagram)).await
    }

    /// Receives one datagram: its length and where it came from. Dropping the future loses none.
    ///
    /// # Errors
    /// Those of the kernel, or that the runtime was shut down.
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io
            .operate(Direction::Read, |_| self.attempt_receive(buffer))
            .await
    }

    /// Receives one datagram from the connected peer.
    ///
    /// # Errors
    /// As [`recv_from`](UdpSocket::recv_from).
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv_from(buffer).await?.0)
    }

    /// As [`recv_from`](UdpSocket::recv_from), but the datagram will be received again.
    ///
    /// # Errors
    /// As [`recv_from`](UdpSocket::recv_from).
    pub async fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io
            .operate(Direction::Read, |socket| {
                let unread = self
                    .unread
                    .take_with(|datagram| (datagram.copy_to(buffer), Some(datagram)));
                unread
                    .map_or_else(|| socket.peek_from(buffer), Ok)
                    .map(Done::maybe_more)
            })
            .await
    }

    /// The `poll_*` form of [`recv_from`](UdpSocket::recv_from).
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.io
            .poll_operate(cx, Direction::Read, |_| self.attempt_receive(buffer))
    }

    /// The `poll_*` form of [`send_to`](UdpSocket::send_to).
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_write_with(cx, |socket| socket.send_to(datagram, to))
    }

    /// Starts to receive now; await the datagram later. Dropping it loses no datagram.
    pub fn start_recv_from(&self, buffer: Vec<u8>) -> StartedReceive<'_> {
        Started::new(ReceiveOperation {
            socket: self,
            buffer,
        })
    }

    /// Sends now, or as soon as there is room; await the result later.
    pub fn start_send_to(&self, datagram: Vec<u8>, to: SocketAddr) -> StartedSend<'_> {
        Started::new(SendOperation {
            socket: self,
            datagram,
            to,
        })
    }

    /// The blocking forms, for closures.
    pub fn blocking(&self) -> Blocking<'_, Self> {
        Blocking::new(self)
    }

    /// The address of this end.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket().local_addr()
    }

    /// The address of the connected peer.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket().peer_addr()
    }

    /// The socket of the standard library, for its options (broadcast, multicast, time to live).
    pub fn socket(&self) -> &std::net::UdpSocket {
        self.io.get_ref()
    }

    #[inline]
    fn attempt_receive(&self, buffer: &mut [u8]) -> io::Result<Done<(usize, SocketAddr)>> {
        let unread = self
            .unread
            .take_with(|datagram| (datagram.copy_to(buffer), None));
        unread
            .map_or_else(|| self.socket().recv_from(buffer), Ok)
            .map(Done::maybe_more)
    }
}

impl Blocking<'_, UdpSocket> {
    /// See [`UdpSocket::send_to`].
    ///
    /// # Errors
    /// As there.
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        crate::block_on(self.inner.send_to(datagram, to))
    }

    /// See [`UdpSocket::send`].
    ///
    /// # Errors
    /// As there.
    pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        crate::block_on(self.inner.send(datagram))
    }

    /// See [`UdpSocket::recv_from`].
    ///
    /// # Errors
    /// As there.
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        crate::block_on(self.inner.recv_from(buffer))
    }

    /// See [`UdpSocket::recv`].
    ///
    /// # Errors
    /// As there.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        crate::block_on(self.inner.recv(buffer))
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl TryFrom<std::net::UdpSocket> for UdpSocket {
    type Error = io::Error;

    /// Makes the socket non-blocking.
    fn try_from(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(UdpSocket {
            io: Async::from_nonblocking(socket),
            unread: Unread::new(),
        })
    }
}

/// A receive that owns its buffer.
#[derive(Debug)]
pub struct ReceiveOperation<'a> {
    socket: &'a UdpSocket,
    buffer: Vec<u8>,
}

#[expect(private_interfaces, reason = "sealed: the module is private")]
impl<'a> Startable<'a> for ReceiveOperation<'a> {
    type Item = (usize, SocketAddr);
    type Output = (io::Result<(usize, SocketAddr)>, Vec<u8>);
    type Socket = Socket;

    fn socket(&self) -> &'a Async<Socket> {
        &self.socket.io
    }

    fn direction(&self) -> Direction {
        Direction::Read
    }

    fn attempt(&mut self) -> io::Result<Done<Self::Item>> {
        self.socket.attempt_receive(&mut self.buffer)
    }

    fn finish(self, result: io::Result<Self::Item>) -> Self::Output {
        (result, self.buffer)
    }

    fn put_back(self, (count, from): Self::Item) -> bool {
        self.socket.unread.put_back(Datagram {
            buffer: self.buffer,
            count,
            from,
        });
        true
    }
}

/// A send that owns its datagram.
#[derive(Debug)]
pub struct SendOperation<'a> {
    socket: &'a UdpSocket,
    datagram: Vec<u8>,
    to: SocketAddr,
}

#[expect(private_interfaces, reason = "sealed: the module is private")]
impl<'a> Startable<'a> for SendOperation<'a> {
    type Item = usize;
    type Output = (io::Result<usize>, Vec<u8>);
    type Socket = Socket;

    fn socket(&self) -> &'a Async<Socket> {
        &self.socket.io
    }

    fn direction(&self) -> Direction {
        Direction::Write
    }

    fn attempt(&mut self) -> io::Result<Done<usize>> {
        let sent = self.socket.socket().send_to(&self.datagram, self.to)?;
        Ok(Done::maybe_more(sent))
    }

    fn finish(self, result: io::Result<usize>) -> Self::Output {
        (result, self.datagram)
    }

    fn put_back(self, _: usize) -> bool {
        false
    }
}
