//! UDP: datagrams, connected or not.

use super::{
    Started, StartedReceive, StartedSend, ToSocketAddrs, addr,
    datagram::{Datagrams, ReceiveOperation, SendOperation, Socket},
    impl_datagrams::impl_datagrams,
    of_std::of_std,
    receive_buffer::ReceiveBuffer,
};
use crate::io::{Blocking, Interest, Ready};
use rustix::fd::{AsFd, BorrowedFd};
use std::{
    io,
    net::{self, SocketAddr},
    task::{Context, Poll},
};

/// A UDP socket.
///
/// Several tasks may receive from it by `&`. Each datagram goes to one of them, and waiting tasks get their turn in
/// order. A datagram that is longer than the buffer is cut.
///
/// ```
/// use urgency::net::UdpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let a = UdpSocket::bind("127.0.0.1:0").await?;
///     let b = UdpSocket::bind("127.0.0.1:0").await?;
///     a.send_to(b"hello", b.local_addr()?).await?;
///     let mut buffer = [0; 1500];
///     let (count, from) = b.recv_from(&mut buffer).await?;
///     assert_eq!((&buffer[..count], from), (&b"hello"[..], a.local_addr()?));
///
///     let (sent, _buffer) = a.start_send_to(b"again".to_vec(), b.local_addr()?).await;
///     assert_eq!((sent?, b.recv(&mut buffer).await?), (5, 5));
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct UdpSocket {
    datagrams: Datagrams<net::UdpSocket>,
}

impl Socket for net::UdpSocket {
    type Address = SocketAddr;

    fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.recv_from(buffer)
    }

    #[cfg(feature = "tokio-io")]
    fn receive_uninit(
        &self,
        buffer: &mut [std::mem::MaybeUninit<u8>],
    ) -> io::Result<(usize, SocketAddr)> {
        let flags = rustix::net::RecvFlags::empty();
        let ((received, _), _, from) = rustix::net::recvfrom(self, buffer, flags)?;
        let from = from.ok_or(rustix::io::Errno::INVAL)?;
        Ok((received.len(), from.try_into()?))
    }

    fn transmit(&self, datagram: &[u8], to: Option<&SocketAddr>) -> io::Result<usize> {
        match to {
            Some(to) => self.send_to(datagram, to),
            None => self.send(datagram),
        }
    }
}

impl_datagrams!(UdpSocket of net::UdpSocket, SocketAddr);

impl UdpSocket {
    /// Binds to the first of the addresses that can be bound. Port 0 takes any free port. It waits for nothing but the
    /// lookup of a name. Dropping the future binds nothing.
    ///
    /// # Errors
    /// The error of the last address; or `InvalidInput` if there is no address.
    pub fn bind<A: ToSocketAddrs>(to: A) -> impl Future<Output = io::Result<Self>> + Send + use<A> {
        let addresses = to.resolve();
        async { addr::first_that_works(addresses.get().await?, net::UdpSocket::bind)?.try_into() }
    }

    /// Of a socket of the standard library, which is made non-blocking.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        socket.try_into()
    }

    /// Sets the only peer, for [`send`](UdpSocket::send) and [`recv`](UdpSocket::recv). Nothing is sent, so
    /// this waits only for the lookup of a name; [`spawn`](crate::spawn) starts that before it is awaited. Dropping
    /// the future leaves the peer as it was.
    ///
    /// # Errors
    /// The error of the last address, or of the name's lookup.
    pub async fn connect(&self, to: impl ToSocketAddrs) -> io::Result<()> {
        let addresses = to.resolve();
        let addresses = addresses.get().await?;
        addr::first_that_works(addresses, |address| self.socket().connect(address))
    }

    /// Sends one datagram to `to`, or to the first address of a name. Dropping the future before it is ready has sent
    /// nothing.
    ///
    /// # Errors
    /// The kernel's errors, an error of the lookup of a name, or that the runtime was shut down; `InvalidInput` if
    /// there is no address.
    pub async fn send_to(&self, datagram: &[u8], to: impl ToSocketAddrs) -> io::Result<usize> {
        let to = to.resolve().first().await?;
        self.datagrams.transmit(datagram, Some(&to)).await
    }

    /// As [`recv_from`](UdpSocket::recv_from), but the datagram will be received again.
    ///
    /// ```
    /// use urgency::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// urgency::block_on(async {
    ///     let (a, b) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
    ///     a.send_to(b"once", b.local_addr()?).await?;
    ///     let mut buffer = [0; 8];
    ///     assert_eq!(b.peek_from(&mut buffer).await?, (4, a.local_addr()?));
    ///     assert_eq!(b.peek(&mut buffer).await?, 4);
    ///     assert_eq!(b.recv(&mut buffer).await?, 4);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`recv_from`](UdpSocket::recv_from).
    pub async fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let peek = |socket: &net::UdpSocket, buffer: &mut [u8]| socket.peek_from(buffer);
        self.datagrams.peek(buffer, peek).await
    }

    /// As [`recv`](UdpSocket::recv), but the datagram will be received again.
    ///
    /// # Errors
    /// As [`recv`](UdpSocket::recv).
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.peek_from(buffer).await?.0)
    }

    /// Sends one datagram to `to`, if there is room for it now.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`send_to`](UdpSocket::send_to).
    pub fn try_send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.socket().transmit(datagram, Some(&to))
    }

    /// The `poll_*` form of [`send_to`](UdpSocket::send_to).
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.datagrams.poll_transmit(cx, datagram, Some(&to))
    }

    /// Sends now, or as soon as there is room; await the result later.
    pub fn start_send_to(
        &self,
        datagram: Vec<u8>,
        to: SocketAddr,
    ) -> StartedSend<'_, net::UdpSocket> {
        Started::new(
            self.datagrams.io(),
            SendOperation {
                datagrams: &self.datagrams,
                datagram,
                to: Some(to),
            },
        )
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The kernel's errors.
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
}

impl Blocking<'_, UdpSocket> {
    /// See [`UdpSocket::send_to`].
    ///
    /// # Errors
    /// As there.
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        crate::block_on(self.inner.send_to(datagram, to))
    }
}
