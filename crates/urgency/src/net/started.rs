//! Operations that start at once.
//!
//! [`Started`] makes its first attempt when it is created. If the attempt would block, the socket is registered, so
//! that readiness is noticed from then on, and the rest happens when the future is polled. The future owns its buffer,
//! so it borrows nothing but the socket.
//!
//! A result that was not taken is *put back* when the future is dropped: bytes, datagrams and connections go to the
//! socket's `Unread`, where the next operation finds them first. What was sent cannot be unsent; [`Started::cancel`]
//! tells how much was sent.

use super::{
    accept::AcceptOperation,
    datagram::{ReceiveOperation, SendOperation},
    stream::{ReadOperation, WriteOperation},
};
use crate::{
    io::{Async, source::Done},
    reactor::{directions::Direction, readiness::Ticket},
};
use rustix::fd::AsFd;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// One kind of operation. The trait has no lifetime: with one, the compiler cannot prove that a task that awaits a
/// [`Started`] is `Send`.
#[expect(private_interfaces, reason = "sealed: the module is private")]
pub trait Startable {
    /// Which readiness it waits for.
    const DIRECTION: Direction;
    /// What a successful attempt gives.
    type Item;
    /// What the future gives.
    type Output;
    /// The descriptor.
    type Socket: AsFd;

    /// The system call.
    fn attempt(&mut self) -> io::Result<Done<Self::Item>>;
    /// The result, with the buffer.
    fn finish(self, result: io::Result<Self::Item>) -> Self::Output;
    /// The item was not taken. Whether it went back to the socket.
    fn put_back(self, item: Self::Item) -> bool
    where
        Self: Sized,
    {
        drop(item);
        false
    }
}

/// An operation that was started when this was made; awaiting it gives the result.
///
/// If the operation owns a buffer, the output is the pair of the result and the buffer. Dropping it
/// cancels, and loses nothing: what was read or accepted already goes back to the socket and is what its
/// next operation gets. What was sent already stays sent.
///
/// ```
/// use urgency::net::{TcpListener, TcpStream};
/// use std::io::Write;
///
/// # fn main() -> std::io::Result<()> {
/// let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0"))?;
/// let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
/// let served = urgency::spawn(async move {
///     let (server, _) = listener.accept().await?;
///     let request = server.start_read(vec![0; 100]);
///     client.write_all(b"hello")?; // or anything else worth doing meanwhile
///     let (count, buffer) = request.await;
///     assert_eq!(&buffer[..count?], b"hello");
///     Ok(())
/// });
/// served.get().expect("nothing cancels it")
/// # }
/// ```
#[must_use = "dropping a started operation cancels it"]
pub struct Started<'a, O: Startable> {
    socket: &'a Async<O::Socket>,
    /// Present until the output is taken.
    operation: Option<O>,
    result: Option<io::Result<O::Item>>,
    ticket: Option<Ticket>,
}

/// A started read of a stream: `(io::Result<usize>, Vec<u8>)`.
pub type StartedRead<'a> = Started<'a, ReadOperation<'a>>;
/// A started write to a stream: `(io::Result<usize>, Vec<u8>)`.
pub type StartedWrite<'a> = Started<'a, WriteOperation<'a>>;
/// A started accept: `io::Result<(TcpStream, SocketAddr)>` or `io::Result<UnixStream>`.
pub type StartedAccept<'a, C> = Started<'a, AcceptOperation<'a, C>>;
/// A started receive of a datagram: `(io::Result<(usize, A)>, Vec<u8>)`, where `A` is the sender's address.
pub type StartedReceive<'a, S> = Started<'a, ReceiveOperation<'a, S>>;
/// A started send of a datagram: `(io::Result<usize>, Vec<u8>)`.
///
/// ```
/// use urgency::net::{StartedReceive, StartedSend, UdpSocket};
///
/// urgency::block_on(async {
///     let one = UdpSocket::bind("127.0.0.1:0").await?;
///     let other = UdpSocket::bind("127.0.0.1:0").await?;
///     one.connect(other.local_addr()?).await?;
///     let received: StartedReceive<'_, _> = other.start_recv_from(vec![0; 100]);
///     let sent: StartedSend<'_, _> = one.start_send(b"ping".to_vec());
///     assert_eq!(sent.await.0?, 4);
///     let (result, buffer) = received.await;
///     let (length, sender) = result?;
///     assert_eq!((&buffer[..length], sender), (&b"ping"[..], one.local_addr()?));
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub type StartedSend<'a, S> = Started<'a, SendOperation<'a, S>>;

impl<'a, O: Startable> Started<'a, O> {
    pub(crate) fn new(socket: &'a Async<O::Socket>, mut operation: O) -> Self {
        let result = match socket.start(O::DIRECTION, |_| operation.attempt()) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        };
        Started {
            socket,
            operation: Some(operation),
            result,
            ticket: None,
        }
    }

    /// Cancels, and gives the output if the operation has happened already.
    ///
    /// ```
    /// use urgency::net::{StartedAccept, StartedWrite, TcpListener, TcpStream};
    ///
    /// urgency::block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     // No client has come, so there is nothing to give.
    ///     let accept: StartedAccept<'_, _> = listener.start_accept();
    ///     assert!(accept.cancel().is_none());
    ///
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let write: StartedWrite<'_> = client.start_write(b"ping".to_vec());
    ///     // There was room in the socket's buffer: it was written at once.
    ///     let (written, _buffer) = write.cancel().expect("it has happened");
    ///     assert_eq!(written?, 4);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn cancel(mut self) -> Option<O::Output> {
        let result = self.result.take()?;
        let operation = self.operation.take()?;
        Some(operation.finish(result))
    }
}

// The operation is called by reference and never pinned.
impl<O: Startable> Unpin for Started<'_, O> {}

impl<O: Startable> Future for Started<'_, O> {
    type Output = O::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O::Output> {
        let this = self.get_mut();
        let operation = this
            .operation
            .as_mut()
            .expect("not polled after it was ready");
        let result = match this.result.take() {
            Some(result) => result,
            None => {
                let (socket, attempt) = (this.socket, |_: &_| operation.attempt());
                ready!(socket.poll_with_ticket(cx, O::DIRECTION, &mut this.ticket, attempt))
            }
        };
        let operation = this.operation.take().expect("it was there above");
        Poll::Ready(operation.finish(result))
    }
}

impl<O: Startable> Drop for Started<'_, O> {
    fn drop(&mut self) {
        let Some(operation) = self.operation.take() else {
            return;
        };
        let (socket, direction) = (self.socket, O::DIRECTION);
        socket.leave(direction, self.ticket.take());
        if let Some(Ok(item)) = self.result.take()
            && operation.put_back(item)
        {
            socket.raise(direction);
        }
    }
}

debug_struct!(['a, O: Startable] Started<'a, O>, |it| has_happened: it.result.is_some());
