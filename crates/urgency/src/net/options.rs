//! What sockets have in common beside their operations: the number of the descriptor, the pending error, and options of
//! IP by the standard library's names.

use super::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixSocket,
    UnixStream,
};
use crate::reactor::sockets;
use rustix::{fd::AsFd, net::sockopt};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr},
    os::fd::{AsRawFd, RawFd},
};

macro_rules! sockets {
    ($($type:ty),*) => {$(
        impl AsRawFd for $type {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }

        impl $type {
            /// The socket's pending error (`SO_ERROR`), if there is one. It is taken: the next call gives `None`.
            ///
            /// # Errors
            /// The kernel's errors of the question itself.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                Ok(sockopt::socket_error(self)?.err().map(io::Error::from))
            }
        }
    )*};
}

sockets!(
    TcpStream,
    TcpListener,
    TcpSocket,
    UdpSocket,
    UnixStream,
    UnixListener,
    UnixDatagram,
    UnixSocket
);

macro_rules! time_to_live {
    ($($type:ty),*) => {$(
        impl $type {
            /// How many routers a packet may pass on its way (`IP_TTL`).
            ///
            /// # Errors
            /// The kernel's errors.
            pub fn ttl(&self) -> io::Result<u32> {
                Ok(sockopt::ip_ttl(self)?)
            }

            /// See [`ttl`](Self::ttl).
            ///
            /// # Errors
            /// The kernel's errors.
            pub fn set_ttl(&self, routers: u32) -> io::Result<()> {
                Ok(sockopt::set_ip_ttl(self, routers)?)
            }
        }
    )*};
}

time_to_live!(TcpStream, TcpListener, UdpSocket);

macro_rules! device {
    ($($type:ty),*) => {$(
        impl $type {
            /// The network interface to which the socket is bound, by its name (`SO_BINDTODEVICE`). `None`: all.
            ///
            /// # Errors
            /// The kernel's errors.
            pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
                sockets::device(self)
            }

            /// Binds the socket to the network interface of this name: what comes by another one is not received.
            /// `None` and an empty name end that.
            ///
            /// ```
            /// use urgency::net::TcpSocket;
            ///
            /// # fn main() -> std::io::Result<()> {
            /// let socket = TcpSocket::new_v4()?;
            /// match socket.bind_device(Some(b"lo")) {
            ///     Ok(()) => assert_eq!(socket.device()?, Some(b"lo".to_vec())),
            ///     Err(error) => eprintln!("the interface is not there, or may not be taken: {error}"),
            /// }
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// The kernel's errors: there is no interface of that name, or the process may not change what was said
            /// before.
            pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
                sockets::bind_device(self, interface)
            }
        }
    )*};
}

device!(TcpSocket, UdpSocket);

macro_rules! as_std {
    ($($(#[$text:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// Options by the names of [`std::net::UdpSocket`].
        impl UdpSocket {$(
            $(#[$text])*
            ///
            /// # Errors
            /// The kernel's errors.
            pub fn $name(&self, $($argument: $type),*) -> io::Result<as_std!(@ $($result)?)> {
                self.socket().$name($($argument),*)
            }
        )*}
    };
    (@) => { () };
    (@ $result:ty) => { $result };
}

as_std! {
    /// Whether it may send to a broadcast address.
    fn broadcast() -> bool;
    /// See [`broadcast`](Self::broadcast).
    fn set_broadcast(may: bool);
    /// Whether what it sends to a group of IPv4 comes back to this machine.
    fn multicast_loop_v4() -> bool;
    /// See [`multicast_loop_v4`](Self::multicast_loop_v4).
    fn set_multicast_loop_v4(comes_back: bool);
    /// Whether what it sends to a group of IPv6 comes back to this machine.
    fn multicast_loop_v6() -> bool;
    /// See [`multicast_loop_v6`](Self::multicast_loop_v6).
    fn set_multicast_loop_v6(comes_back: bool);
    /// How many routers a packet to a group of IPv4 may pass.
    fn multicast_ttl_v4() -> u32;
    /// See [`multicast_ttl_v4`](Self::multicast_ttl_v4).
    fn set_multicast_ttl_v4(routers: u32);
}

/// Groups.
impl UdpSocket {
    /// Joins a group of IPv4, by the interface that has the address `interface` (unspecified: any).
    ///
    /// ```
    /// use std::net::{Ipv4Addr, Ipv6Addr};
    /// use urgency::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (group, any) = (Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::UNSPECIFIED);
    /// let socket = urgency::block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// match socket.join_multicast_v4(group, any) {
    ///     Ok(()) => socket.leave_multicast_v4(group, any)?,
    ///     Err(no_route) => eprintln!("no interface has a route to the group: {no_route}"),
    /// }
    /// let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
    /// if let Ok(socket) = urgency::block_on(UdpSocket::bind("[::]:0")) {
    ///     if socket.join_multicast_v6(&group, 0).is_ok() {
    ///         socket.leave_multicast_v6(&group, 0)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The kernel's errors; `InvalidInput` if it is the address of no group.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.socket().join_multicast_v4(&group, &interface)
    }

    /// Leaves a group; see [`join_multicast_v4`](Self::join_multicast_v4).
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.socket().leave_multicast_v4(&group, &interface)
    }

    /// Joins a group of IPv6, by the interface of this number (0: any).
    ///
    /// # Errors
    /// The kernel's errors; `InvalidInput` if it is the address of no group.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.socket().join_multicast_v6(group, interface)
    }

    /// Leaves a group; see [`join_multicast_v6`](Self::join_multicast_v6).
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.socket().leave_multicast_v6(group, interface)
    }
}
