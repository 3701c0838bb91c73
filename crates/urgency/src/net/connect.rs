//! Connecting: a TCP stream, to one address after the other; a Unix stream.
//!
//! TCP:
//!
//! 1. A literal address is connected to when the future is made; a name is looked up first.
//! 2. The kernel reports a connection in progress as writable when it is made or refused. The attempt then finds out
//!    which: it asks for the socket's error, and then whether the socket has a peer.
//! 3. If the connection is refused, the next address is tried. The error is the last address's.
//!
//! Unix: the kernel connects at once or refuses, unless the listener's queue is full. There is no readiness for room in
//! that queue: the kernel tells only a thread that blocks in the call. A thread in that call cannot be called off, so a
//! dropped attempt would keep it, with its descriptor, as long as the server does not accept. So the future tries again
//! by a timer: after [`FIRST_PAUSE`], then after twice the pause before, at most [`LONGEST_PAUSE`]. What a full queue
//! costs is such a pause, and that waiting clients have no order.

use super::{
    TcpSocket,
    addr::{self, Resolved},
    tcp_stream::TcpStream,
    unix_stream::UnixStream,
};
use crate::{
    fs::Offloaded,
    io::{Async, source::Done},
    reactor::{
        directions::Direction,
        readiness::Ticket,
        sockets::{socket, unix_address},
    },
    sched::doors::caller::ends_with_runtime,
    time::{Sleep, sleep},
};
use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketType},
};
use std::{
    io,
    net::SocketAddr,
    path::Path,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
    vec,
};

/// A connection in the making: see [`TcpStream::connect`].
///
/// Dropping it gives up the attempt.
#[derive(Debug)]
#[must_use = "dropping it gives up the attempt"]
pub struct Connect {
    lookup: Option<Offloaded<Vec<SocketAddr>>>,
    rest: vec::IntoIter<SocketAddr>,
    current: Option<Pending>,
    /// Why the address before failed.
    error: Option<io::Error>,
}

/// A socket that connects.
#[derive(Debug)]
struct Pending {
    /// Taken when it is connected.
    socket: Option<Async<OwnedFd>>,
    ticket: Option<Ticket>,
}

impl Connect {
    pub(crate) fn new(target: Resolved) -> Self {
        let (lookup, addresses) = match target {
            Resolved::One(address) => (None, vec![address]),
            Resolved::Now(addresses) => (None, addresses),
            Resolved::Later(lookup) => (Some(lookup), Vec::new()),
        };
        let mut connect = Connect {
            lookup,
            rest: addresses.into_iter(),
            current: None,
            error: None,
        };
        connect.try_next();
        connect
    }

    /// To one address, with a socket that is there.
    pub(super) fn with(socket: TcpSocket, address: SocketAddr) -> Self {
        let (current, error) = match begin(socket, address) {
            Ok(pending) => (Some(pending), None),
            Err(error) => (None, Some(error)),
        };
        Connect {
            lookup: None,
            rest: Vec::new().into_iter(),
            current,
            error,
        }
    }

    /// Begins with the next address that can be begun with, if there is one.
    fn try_next(&mut self) {
        self.current = None;
        for address in self.rest.by_ref() {
            match TcpSocket::of(address).and_then(|socket| begin(socket, address)) {
                Ok(pending) => {
                    self.current = Some(pending);
                    return;
                }
                Err(error) => self.error = Some(error),
            }
        }
    }
}

fn begin(socket: TcpSocket, address: SocketAddr) -> io::Result<Pending> {
    match rustix::net::connect(&socket, &address) {
        // Interrupted: it goes on in the background all the same.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Pending {
            socket: Some(Async::from_nonblocking(socket.into_fd())),
            ticket: None,
        }),
        Err(error) => Err(error.into()),
    }
}

/// Whether the connection is made; `WouldBlock` while it is in progress.
fn is_connected(socket: &OwnedFd) -> io::Result<Done<()>> {
    rustix::net::sockopt::socket_error(socket)??;
    match rustix::net::getpeername(socket) {
        Ok(_) => Ok(Done::maybe_more(())),
        Err(Errno::NOTCONN) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

impl Future for Connect {
    type Output = io::Result<TcpStream>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(lookup) = &mut this.lookup {
            let addresses = ready!(Pin::new(lookup).poll(cx));
            this.lookup = None;
            this.rest = addresses?.into_iter();
            this.try_next();
        }
        while let Some(pending) = &mut this.current {
            match ready!(pending.poll(cx)) {
                Ok(socket) => {
                    this.current = None;
                    return Poll::Ready(Ok(TcpStream::from_async(socket)));
                }
                Err(error) => {
                    this.error = Some(error);
                    this.try_next();
                }
            }
        }
        Poll::Ready(Err(this.error.take().unwrap_or_else(addr::no_address)))
    }
}

impl Pending {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Async<OwnedFd>>> {
        let socket = self.socket.as_ref().expect("taken once, at the end");
        let ticket = &mut self.ticket;
        ready!(socket.poll_with_ticket(cx, Direction::Write, ticket, is_connected))?;
        Poll::Ready(Ok(self.socket.take().expect("it was there above")))
    }
}

// Nobody else waits on a socket that is being connected, and its waiters go with it: a dropped ticket
// needs no leave.

/// The pause after the first attempt that finds the listener's queue full.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The pauses double up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A Unix connection in the making: see [`UnixStream::connect`].
///
/// The first attempt is made before the future is polled. If the listener's queue is full, the future tries again by a
/// timer, because the kernel gives no readiness for that queue: it gets on only while it is polled.
///
/// Dropping it closes the connection if it is made, and gives the attempt up if not: nothing of it is left.
#[derive(Debug)]
#[must_use = "dropping it gives up the attempt"]
pub struct ConnectUnix(AtOnce);

#[derive(Debug)]
enum AtOnce {
    /// The result, until it is taken.
    Has(Option<io::Result<UnixStream>>),
    /// The queue of the listener is full.
    Waits(Box<Retry>),
}

/// The attempts to connect to a listener whose queue was full.
#[derive(Debug)]
struct Retry {
    /// Taken when it is connected.
    socket: Option<OwnedFd>,
    address: SocketAddrUnix,
    pause: Duration,
    timer: Sleep,
}

impl ConnectUnix {
    pub(crate) fn new(path: &Path) -> Self {
        let socket = socket(AddressFamily::UNIX, SocketType::STREAM);
        ConnectUnix::with(socket, path)
    }

    /// With a socket that is there.
    pub(super) fn with(socket: io::Result<OwnedFd>, path: &Path) -> Self {
        let began = socket.and_then(|socket| AtOnce::new(socket, path));
        ConnectUnix(began.unwrap_or_else(|error| AtOnce::Has(Some(Err(error)))))
    }
}

impl AtOnce {
    fn new(socket: OwnedFd, path: &Path) -> io::Result<Self> {
        let address = unix_address(path)?;
        if connects(&socket, &address)? {
            let stream = UnixStream::from_nonblocking(socket);
            return Ok(AtOnce::Has(Some(Ok(stream))));
        }
        Ok(AtOnce::Waits(Box::new(Retry {
            socket: Some(socket),
            address,
            pause: FIRST_PAUSE,
            timer: sleep(FIRST_PAUSE),
        })))
    }
}

/// Whether the connection is made. If not, the queue of the listener is full, and the socket is as before.
fn connects(socket: &OwnedFd, address: &SocketAddrUnix) -> io::Result<bool> {
    match rustix::net::connect(socket, address) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Retry {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        loop {
            match ready!(self.timer.poll_unless_shut(cx)) {
                Ok(()) => {}
                Err(_) if ends_with_runtime() => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            let socket = self.socket.as_ref().expect("taken once, at the end");
            if connects(socket, &self.address)? {
                let socket = self.socket.take().expect("it was there above");
                return Poll::Ready(Ok(UnixStream::from_nonblocking(socket)));
            }
            self.pause = LONGEST_PAUSE.min(self.pause * 2);
            self.timer = sleep(self.pause);
        }
    }
}

impl Future for ConnectUnix {
    type Output = io::Result<UnixStream>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            AtOnce::Has(result) => {
                Poll::Ready(result.take().expect("not polled after it was ready"))
            }
            AtOnce::Waits(retry) => retry.poll(cx),
        }
    }
}
