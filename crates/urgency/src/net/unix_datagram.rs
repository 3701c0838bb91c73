//! Unix datagram sockets.
//!
//! A datagram goes into the queue of the receiving socket, and waits in the sender if that is full. The
//! kernel tells only sockets that are *connected* to the receiver when there is room again. So a send to any
//! other receiver that finds the queue full connects a *scout*, a socket that sends nothing, waits until that
//! is writable, and tries again. Whether it is the queue that is full or the sender's own buffer, a look at
//! the sender tells: its own buffer makes it unwritable. (A sender that has a peer is also unwritable while
//! that peer's queue is full, and then waits for the wrong one.)

use super::{
    Started, StartedReceive, StartedSend,
    datagram::{Datagrams, ReceiveOperation, SendOperation, Socket},
    impl_datagrams::impl_datagrams,
    of_std::of_std,
    receive_buffer::ReceiveBuffer,
};
use crate::io::{Async, Blocking, Interest, Ready, ready::ready_for};
use rustix::fd::{AsFd, BorrowedFd};
use std::{
    io,
    os::unix::net as unix,
    path::Path,
    task::{Context, Poll},
};

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

    /// An address of the kernel's becomes one of the standard library by its own call only, which takes bytes.
    #[cfg(feature = "tokio-io")]
    fn receive_uninit(
        &self,
        buffer: &mut [std::mem::MaybeUninit<u8>],
    ) -> io::Result<(usize, unix::SocketAddr)> {
        buffer.fill(std::mem::MaybeUninit::new(0));
        // SAFETY: all of it is initialised.
        self.recv_from(unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [u8]) })
    }

    fn transmit(&self, datagram: &[u8], to: Option<&unix::SocketAddr>) -> io::Result<usize> {
        match to {
            Some(to) => self.send_to_addr(datagram, to),
            None => self.send(datagram),
        }
    }
}

impl_datagrams!(UnixDatagram of unix::UnixDatagram, unix::SocketAddr);

impl UnixDatagram {
    /// Binds to `path`, which must not exist.
    ///
    /// # Errors
    /// The kernel's errors; `AddrInUse` if the path exists.
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
    /// The kernel's errors.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.socket().connect(path)
    }

    /// Of a socket of the standard library, which is made non-blocking.
    ///
    /// # Errors
    /// The errors of the kernel.
    pub fn from_std(socket: unix::UnixDatagram) -> io::Result<Self> {
        socket.try_into()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The kernel's errors.
    pub fn local_addr(&self) -> io::Result<unix::SocketAddr> {
        self.socket().local_addr()
    }

    /// The address of the connected peer.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<unix::SocketAddr> {
        self.socket().peer_addr()
    }

    /// Ends one direction or both.
    ///
    /// ```
    /// use std::net::Shutdown;
    /// use urgency::net::UnixDatagram;
    ///
    /// let (a, _b) = UnixDatagram::pair()?;
    /// a.shutdown(Shutdown::Write)?;
    /// assert!(a.try_send(b"too late").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotConnected` if there is no peer.
    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        self.socket().shutdown(how)
    }

    /// Sends one datagram to the socket that is bound to this path: as [`send_to_addr`](UnixDatagram::send_to_addr).
    ///
    /// ```
    /// use urgency::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # let folder = std::env::temp_dir();
    /// let path = folder.join(format!("urgency-send-to-path-{}", std::process::id()));
    /// let receiver = UnixDatagram::bind(&path)?;
    /// let sender = UnixDatagram::unbound()?;
    /// urgency::block_on(async {
    ///     sender.send_to(b"hello", &path).await?;
    ///     let mut buffer = [0; 100];
    ///     assert_eq!(receiver.recv(&mut buffer).await?, 5);
    ///     std::fs::remove_file(&path)
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there, or the path is longer than an address holds.
    pub async fn send_to(&self, datagram: &[u8], to: impl AsRef<Path>) -> io::Result<usize> {
        self.send_to_addr(datagram, &unix::SocketAddr::from_pathname(to)?)
            .await
    }

    /// Sends one datagram to the socket at `to`: the address that [`recv_from`](UnixDatagram::recv_from)
    /// gave, or a path's. While that socket's queue is full, it waits (if the sender has a peer whose queue
    /// is full as well, for room in both). Dropping the future before it is ready has sent nothing. To start it
    /// at once, [`spawn`](crate::spawn) it.
    ///
    /// ```
    /// use std::os::unix::net::SocketAddr;
    /// use urgency::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # let folder = std::env::temp_dir();
    /// let path = folder.join(format!("urgency-send-to-{}", std::process::id()));
    /// let receiver = UnixDatagram::bind(&path)?;
    /// let sender = UnixDatagram::unbound()?;
    /// urgency::block_on(async {
    ///     sender.send_to_addr(b"hello", &SocketAddr::from_pathname(&path)?).await?;
    ///     let mut buffer = [0; 100];
    ///     let (count, from) = receiver.recv_from(&mut buffer).await?;
    ///     assert_eq!(&buffer[..count], b"hello");
    ///     assert!(from.is_unnamed());
    ///     std::fs::remove_file(&path)
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// The kernel's errors, or that the runtime was shut down.
    pub async fn send_to_addr(&self, datagram: &[u8], to: &unix::SocketAddr) -> io::Result<usize> {
        let attempt = |socket: &unix::UnixDatagram| match socket.send_to_addr(datagram, to) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Not the sender's buffer: the receiver's queue.
                let has_room = ready_for(socket, Interest::WRITABLE)?.is_writable();
                if has_room { Ok(None) } else { Err(error) }
            }
            sent => sent.map(Some),
        };
        loop {
            if let Some(sent) = self.datagrams.io().write_with(attempt).await? {
                return Ok(sent);
            }
            queue_has_room(to).await?;
        }
    }
}

/// Waits until the queue of the socket at `to` has room.
async fn queue_has_room(to: &unix::SocketAddr) -> io::Result<()> {
    let scout = unix::UnixDatagram::unbound()?;
    scout.set_nonblocking(true)?;
    match scout.connect_addr(to) {
        Ok(()) => Async::from_nonblocking(scout).writable().await,
        // The receiver has chosen a peer meanwhile. If that is our sender, the limit does not bind it; else
        // it is refused.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

impl Blocking<'_, UnixDatagram> {
    /// See [`UnixDatagram::send_to`].
    ///
    /// # Errors
    /// As there.
    pub fn send_to(&self, datagram: &[u8], to: impl AsRef<Path>) -> io::Result<usize> {
        crate::block_on(self.inner.send_to(datagram, to))
    }

    /// See [`UnixDatagram::send_to_addr`].
    ///
    /// # Errors
    /// As there.
    pub fn send_to_addr(&self, datagram: &[u8], to: &unix::SocketAddr) -> io::Result<usize> {
        crate::block_on(self.inner.send_to_addr(datagram, to))
    }
}
