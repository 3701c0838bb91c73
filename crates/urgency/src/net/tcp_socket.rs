//! A TCP socket before it is a listener or a stream: for the options that must be set before.

use super::{TcpListener, connect::Connect, tcp_stream::address};
use crate::reactor::sockets;
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{AddressFamily, SocketType, sockopt},
};
use std::{io, net::SocketAddr};

/// A TCP socket that neither listens nor is connected yet.
///
/// ```
/// use urgency::net::TcpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_reuseaddr(true)?;
///     socket.bind("127.0.0.1:0".parse().unwrap())?;
///     let listener = socket.listen(1024)?;
///     let client = TcpSocket::new_v4()?.connect(listener.local_addr()?).await?;
///     assert_eq!(client.peer_addr()?, listener.local_addr()?);
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    fd: OwnedFd,
}

/// An option: how it is asked for, and how it is set.
macro_rules! option {
    ($(#[$text:meta])* $name:ident, $set:ident: $type:ty, $kernel:ident, $set_kernel:ident) => {
        $(#[$text])*
        ///
        /// # Errors
        /// The errors of the kernel.
        pub fn $name(&self) -> io::Result<$type> {
            Ok(sockopt::$kernel(&self.fd)?.try_into().expect("the kernel's type holds it"))
        }

        #[doc = concat!("See [`", stringify!($name), "`](Self::", stringify!($name), ").")]
        ///
        /// # Errors
        /// The errors of the kernel.
        pub fn $set(&self, value: $type) -> io::Result<()> {
            let value = value.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
            Ok(sockopt::$set_kernel(&self.fd, value)?)
        }
    };
}

impl TcpSocket {
    /// For IPv4.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn new_v4() -> io::Result<Self> {
        TcpSocket::new(AddressFamily::INET)
    }

    /// For IPv6.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn new_v6() -> io::Result<Self> {
        TcpSocket::new(AddressFamily::INET6)
    }

    /// For the family of `address`.
    pub(super) fn of(address: SocketAddr) -> io::Result<Self> {
        match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }
    }

    fn new(family: AddressFamily) -> io::Result<Self> {
        let fd = sockets::socket(family, SocketType::STREAM)?;
        Ok(TcpSocket { fd })
    }

    /// Takes an address, of which port 0 is any free port.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn bind(&self, address: SocketAddr) -> io::Result<()> {
        Ok(rustix::net::bind(&self.fd, &address)?)
    }

    /// Listens. At most `backlog` connections wait to be accepted; the kernel has a limit of its own.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let backlog = backlog.try_into().unwrap_or(i32::MAX);
        rustix::net::listen(&self.fd, backlog)?;
        Ok(TcpListener::from_nonblocking(self.fd))
    }

    /// Connects, at once: before the future is polled.
    ///
    /// # Errors
    /// The future gives the errors of the kernel.
    pub fn connect(self, address: SocketAddr) -> Connect {
        Connect::with(self, address)
    }

    /// The address that it was bound to.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        address(rustix::net::getsockname(&self.fd)?)
    }

    option! {
        /// Whether an address may be bound again while old connections of it are still being closed.
        reuseaddr, set_reuseaddr: bool, socket_reuseaddr, set_socket_reuseaddr
    }
    option! {
        /// Whether several sockets may be bound to the same address.
        reuseport, set_reuseport: bool, socket_reuseport, set_socket_reuseport
    }
    option! {
        /// Whether small writes are sent at once instead of being collected (Nagle's algorithm off).
        nodelay, set_nodelay: bool, tcp_nodelay, set_tcp_nodelay
    }
    option! {
        /// Whether the kernel asks a silent peer whether it is there.
        keepalive, set_keepalive: bool, socket_keepalive, set_socket_keepalive
    }
    option! {
        /// How many bytes the kernel keeps to be sent; it doubles what it is given.
        send_buffer_size, set_send_buffer_size: u32, socket_send_buffer_size, set_socket_send_buffer_size
    }
    option! {
        /// How many received bytes the kernel keeps; it doubles what it is given.
        recv_buffer_size, set_recv_buffer_size: u32, socket_recv_buffer_size, set_socket_recv_buffer_size
    }

    /// The descriptor, for the rest.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
