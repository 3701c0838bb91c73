//! What TCP and Unix listeners share: connections, accepted one at a time.

use super::started::Startable;
use crate::{
    io::{
        Async,
        source::Done,
        unread::{Place, Unread},
    },
    reactor::{directions::Direction, sockets},
};
use rustix::{fd::OwnedFd, io::Errno, net::SocketAddrAny};
use std::{
    io,
    task::{Context, Poll},
};

/// Whether the process or the machine is out of what a connection needs: descriptors, memory, or places in epoll
/// (`fs.epoll.max_user_watches`).
///
/// An `accept` that fails so has taken no connection, and fails again until something is given back. Its clients wait
/// in the kernel's queue meanwhile: pause for some milliseconds, say so once, and accept again. Other errors of
/// `accept` are about one connection, or about the listener.
///
/// # Examples
///
/// ```
/// use std::{io, time::Duration};
/// use urgency::{net, time::sleep};
///
/// async fn serve(listener: net::TcpListener) -> io::Result<()> {
///     loop {
///         match listener.accept().await {
///             Ok((stream, _)) => drop(stream),
///             Err(error) if net::is_exhausted(&error) => sleep(Duration::from_millis(5)).await,
///             Err(error) => return Err(error),
///         }
///     }
/// }
/// # assert!(net::is_exhausted(&io::Error::from_raw_os_error(24)));
/// # let _ = serve;
/// ```
pub fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC)
    )
}

/// What an accepted socket becomes.
pub trait Accepted: Sized {
    /// Makes it of the non-blocking socket and its peer, if the kernel told.
    fn new(socket: OwnedFd, peer: Option<SocketAddrAny>) -> io::Result<Self>;
}

/// The socket of a listener.
#[derive(Debug)]
pub struct Acceptor<C> {
    io: Async<OwnedFd>,
    unread: Unread<C>,
}

impl<C: Accepted> Acceptor<C> {
    /// The socket listens and is non-blocking.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Acceptor {
            io: Async::from_nonblocking(socket),
            unread: Unread::new(),
        }
    }

    pub(crate) fn io(&self) -> &Async<OwnedFd> {
        &self.io
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.io.into_inner()
    }

    fn attempt(&self) -> io::Result<Done<C>> {
        let unread = self.unread.take_with(|_, accepted| (accepted, None));
        unread
            .map_or_else(|| self.accept_now(), Ok)
            .map(Done::maybe_more)
    }

    fn accept_now(&self) -> io::Result<C> {
        let (socket, peer) = sockets::accept(self.io.get_ref())?;
        C::new(socket, peer)
    }

    pub(crate) async fn accept(&self) -> io::Result<C> {
        self.io.operate(Direction::Read, |_| self.attempt()).await
    }

    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<C>> {
        self.io
            .poll_operate(cx, Direction::Read, |_| self.attempt())
    }
}

/// An accept that was started.
#[derive(Debug)]
pub struct AcceptOperation<'a, C> {
    pub(crate) acceptor: &'a Acceptor<C>,
}

#[expect(private_interfaces, reason = "sealed: the module is private")]
impl<C: Accepted> Startable for AcceptOperation<'_, C> {
    const DIRECTION: Direction = Direction::Read;
    type Item = (C, Place);
    type Output = io::Result<C>;
    type Socket = OwnedFd;

    fn attempt(&mut self) -> io::Result<Done<Self::Item>> {
        let unread = &self.acceptor.unread;
        let taken = unread.take_with(|place, accepted| ((accepted, place), None));
        if let Some(taken) = taken {
            return Ok(Done::maybe_more(taken));
        }
        let accepted = self.acceptor.accept_now()?;
        Ok(Done::maybe_more((accepted, unread.place(1))))
    }

    fn finish(self, result: io::Result<Self::Item>) -> io::Result<C> {
        result.map(|(accepted, _)| accepted)
    }

    fn put_back(self, (accepted, place): Self::Item) -> bool {
        self.acceptor.unread.put_back(place, accepted);
        true
    }
}

/// Gives a type with a field `acceptor: Acceptor<$accepted>` the operations of a listener. A macro and not a generic
/// type, as `impl_stream`.
macro_rules! impl_listener {
    ($type:ident of $accepted:ty) => {
        impl $type {
            /// The next connection, with the address of its peer. Dropping the future loses none.
            ///
            /// # Errors
            /// The kernel's errors, among them the limit of open descriptors. The listener stays usable: when
            /// descriptors are closed it accepts again, so wait a little before the next try. A connection that was
            /// aborted before it was accepted is passed over.
            pub async fn accept(&self) -> io::Result<$accepted> {
                self.acceptor.accept().await
            }

            /// Starts to accept now; await the connection later.
            pub fn start_accept(&self) -> StartedAccept<'_, $accepted> {
                Started::new(
                    self.acceptor.io(),
                    AcceptOperation {
                        acceptor: &self.acceptor,
                    },
                )
            }

            /// The `poll_*` form of [`accept`](Self::accept).
            pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<$accepted>> {
                self.acceptor.poll_accept(cx)
            }

            /// All connections, one after the other.
            pub fn incoming(&self) -> Incoming<'_, Self> {
                Incoming { listener: self }
            }

            /// The blocking forms, for closures.
            pub fn blocking(&self) -> Blocking<'_, Self> {
                Blocking::new(self)
            }
        }

        impl Blocking<'_, $type> {
            #[doc = concat!("See [`", stringify!($type), "::accept`].")]
            ///
            /// # Errors
            /// As there.
            pub fn accept(&self) -> io::Result<$accepted> {
                crate::block_on(self.inner.accept())
            }
        }

        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.acceptor.io().as_fd()
            }
        }
    };
}

pub(super) use impl_listener;
