//! Unix datagram sockets.
//!
//! Datagrams are sent to the connected peer only: if the queue of another socket is full, the kernel has no way
//! to say when it is not, so that a send to it could wait for ever.

use super::{
    Started, StartedReceive, StartedSend,
    datagram::{Datagrams, ReceiveOperation, SendOperation, Socket},
};
use crate::io::Blocking;
use rustix::fd::{AsFd, BorrowedFd};
use std::{io, os::unix::net as unix, path::Path};

/// A Unix socket for datagrams, which are neither lost nor reordered.
///
/// ```
/// use urgency::net::UnixDatagram;
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let (a, b) = UnixDatagram::pair()?;
///     a.send(b"hello").await?;
///     let mut buffer = [0; 100];
///     let count = b.recv(&mut buffer).await?;
///     assert_eq!(&buffer[..count], b"hello");
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct UnixDatagram {
    datagrams: Datagrams<unix::UnixDatagram>,
}

impl Socket for unix::UnixDatagram {
    type Address = unix::SocketAddr;

    fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.recv_from(buffer)
    }

    fn transmit(&self, datagram: &[u8], to: Option<&unix::SocketAddr>) -> io::Result<usize> {
        match to {
            Some(to) => self.send_to_addr(datagram, to),
            None => self.send(datagram),
        }
    }
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
        self.datagrams.transmit(datagram, None).await
    }

    /// Receives one datagram and gives its length. Dropping the future loses none.
    ///
    /// # Errors
    /// Those of the kernel, or that the runtime was shut down.
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv_from(buffer).await?.0)
    }

    /// As [`recv`](UnixDatagram::recv), with the address of the sender.
    ///
    /// # Errors
    /// As [`recv`](UnixDatagram::recv).
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.datagrams.receive(buffer).await
    }

    /// Starts to receive now; await the datagram later. Dropping it loses no datagram.
    pub fn start_recv_from(&self, buffer: Vec<u8>) -> StartedReceive<'_, unix::UnixDatagram> {
        Started::new(ReceiveOperation {
            datagrams: &self.datagrams,
            buffer,
        })
    }

    /// Sends now to the connected peer, or as soon as there is room; await the result later.
    pub fn start_send(&self, datagram: Vec<u8>) -> StartedSend<'_, unix::UnixDatagram> {
        Started::new(SendOperation {
            datagrams: &self.datagrams,
            datagram,
            to: None,
        })
    }

    /// The blocking forms, for closures.
    pub fn blocking(&self) -> Blocking<'_, Self> {
        Blocking::new(self)
    }

    /// The socket of the standard library, for its addresses and options.
    pub fn socket(&self) -> &unix::UnixDatagram {
        self.datagrams.socket()
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
        self.socket().as_fd()
    }
}

impl TryFrom<unix::UnixDatagram> for UnixDatagram {
    type Error = io::Error;

    /// Makes the socket non-blocking.
    fn try_from(socket: unix::UnixDatagram) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(UnixDatagram {
            datagrams: Datagrams::new(socket),
        })
    }
}
