//! Any descriptor that the kernel can wait for, with asynchronous operations.
//!
//! [`Async`] adds to a descriptor what the sockets of [`net`](crate::net) are made of: operations that
//! are tried at once and suspend their future only if they would block. What the operation is, the
//! caller says in a closure. The descriptor is made non-blocking and stays so.
//!
//! An operation is one system call that succeeds or does not happen, so dropping its future loses
//! nothing. Its ticket in the queue of waiters is given back when the future is dropped.

use super::{
    Blocking,
    source::{Done, Source, Waits, ready_now},
};
use crate::reactor::{directions::Direction, readiness::Ticket, sockets::set_nonblocking};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{fd::AsFd, fs::FileType};
use std::{
    fmt,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    pin::Pin,
    task::{Context, Poll},
};

/// A readable or writable descriptor whose operations suspend instead of blocking.
///
/// It works with everything the kernel can wait for: sockets, pipes, terminals, timer, event and signal
/// descriptors, devices. Regular files are always ready as far as the kernel is concerned and are
/// refused; [`fs`](crate::fs) is for them.
///
/// Several tasks may use it at once, by `&`. Tasks that wait in one direction get their turn in the order in which they
/// began to wait. (Design: section 6; the paper's I/O futures.) An operation begins when its future is first polled; to
/// start it now and await it later, [`spawn`](crate::spawn()) it.
///
/// ```
/// use std::io::{Read, Write};
/// use urgency::io::Async;
///
/// # fn main() -> std::io::Result<()> {
/// let (reader, mut writer) = std::io::pipe()?;
/// let reader = Async::new(reader)?;
/// urgency::block_on(async {
///     writer.write_all(b"now")?;
///     reader.readable().await?;
///     let mut buffer = [0; 16];
///     let count = reader.read_with(|mut pipe| pipe.read(&mut buffer)).await?;
///     assert_eq!(&buffer[..count], b"now");
///     let pipe = reader.into_inner(); // the pipe itself, still non-blocking
///     # drop(pipe);
///     Ok(())
/// })
/// # }
/// ```
pub struct Async<T: AsFd> {
    source: Source,
    /// Taken by `into_inner` only.
    io: Option<T>,
}

const TAKEN: &str = "the descriptor is there until into_inner";

impl<T: AsFd> Async<T> {
    /// Makes the descriptor non-blocking.
    ///
    /// The non-blocking mode belongs to the open file, which other descriptors and processes may share.
    ///
    /// # Errors
    /// `InvalidInput` for regular files and directories; otherwise what the kernel says. That a descriptor
    /// cannot be waited for (`/dev/null`) may show only when an operation would block.
    pub fn new(io: T) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&io)?.st_mode);
        if matches!(kind, FileType::RegularFile | FileType::Directory) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "a descriptor of kind {kind:?} cannot be waited for, since it is always ready; \
                     allowed are sockets, pipes, terminals and the like; use urgency::fs for files"
                ),
            ));
        }
        set_nonblocking(io.as_fd())?;
        Ok(Async::from_nonblocking(io))
    }

    /// For descriptors that are known to be right.
    pub(crate) fn from_nonblocking(io: T) -> Self {
        Async {
            source: Source::new(),
            io: Some(io),
        }
    }

    /// The descriptor. Its operations do not wait: they fail with `WouldBlock`.
    #[inline]
    pub fn get_ref(&self) -> &T {
        self.io.as_ref().expect(TAKEN)
    }

    /// Gives the descriptor back, still non-blocking.
    pub fn into_inner(mut self) -> T {
        self.source
            .deregister(self.io.as_ref().expect(TAKEN).as_fd());
        self.io.take().expect(TAKEN)
    }

    /// The blocking forms, for closures.
    pub fn blocking(&self) -> Blocking<'_, Self> {
        Blocking::new(self)
    }

    /// Waits until a read would return at once: with bytes, the end, or an error. Dropping the future changes nothing.
    ///
    /// # Errors
    /// If the descriptor cannot be waited for, or the runtime was shut down.
    pub async fn readable(&self) -> io::Result<()> {
        self.operate(Direction::Read, |io| ready_now(io, Direction::Read))
            .await
    }

    /// Waits until a write would return at once. Dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`readable`](Async::readable).
    pub async fn writable(&self) -> io::Result<()> {
        self.operate(Direction::Write, |io| ready_now(io, Direction::Write))
            .await
    }

    /// Makes `operation` as soon as it does not fail with `WouldBlock`, waiting for readability between
    /// attempts. The first attempt is made when the future is first polled.
    ///
    /// Dropping the future cancels: the operation has happened if and only if the future returned.
    ///
    /// # Errors
    /// The operation's errors, or as [`readable`](Async::readable).
    pub async fn read_with<R>(
        &self,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.operate(Direction::Read, |io| operation(io).map(Done::maybe_more))
            .await
    }

    /// As [`read_with`](Async::read_with), waiting for writability.
    ///
    /// # Errors
    /// As [`read_with`](Async::read_with).
    pub async fn write_with<R>(
        &self,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.operate(Direction::Write, |io| operation(io).map(Done::maybe_more))
            .await
    }

    /// The `poll_*` form of [`readable`](Async::readable).
    ///
    /// Each readiness wakes every task that polled, even if another task uses it up.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_operate(cx, Direction::Read, |io| ready_now(io, Direction::Read))
    }

    /// The `poll_*` form of [`writable`](Async::writable).
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_operate(cx, Direction::Write, |io| ready_now(io, Direction::Write))
    }

    /// The `poll_*` form of [`read_with`](Async::read_with).
    pub fn poll_read_with<R>(
        &self,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_operate(cx, Direction::Read, |io| {
            operation(io).map(Done::maybe_more)
        })
    }

    /// The `poll_*` form of [`write_with`](Async::write_with).
    pub fn poll_write_with<R>(
        &self,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_operate(cx, Direction::Write, |io| {
            operation(io).map(Done::maybe_more)
        })
    }

    /// An operation as a future.
    pub(crate) fn operate<R, F>(&self, direction: Direction, attempt: F) -> Operation<'_, T, F>
    where
        F: FnMut(&T) -> io::Result<Done<R>>,
    {
        Operation {
            on: self,
            direction,
            attempt,
            ticket: None,
        }
    }

    /// An operation as a `poll_*` form.
    #[inline]
    pub(crate) fn poll_operate<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut attempt: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let mut io = self.get_ref();
        self.source
            .poll(&mut io, direction, Waits::Watcher(cx.waker()), |io| {
                attempt(io)
            })
    }

    /// The first attempt of a started operation. If it would block, the descriptor is registered.
    pub(crate) fn start<R>(
        &self,
        direction: Direction,
        mut attempt: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let mut io = self.get_ref();
        self.source
            .poll(&mut io, direction, Waits::Nobody, |io| attempt(io))
    }

    /// An operation of a future that keeps its own ticket; it must [`leave`](Async::leave).
    pub(crate) fn poll_with_ticket<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        ticket: &mut Option<Ticket>,
        mut attempt: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let mut io = self.get_ref();
        let waits = Waits::Future(ticket, cx.waker());
        self.source
            .poll(&mut io, direction, waits, |io| attempt(io))
    }

    /// The future that kept this ticket is dropped.
    pub(crate) fn leave(&self, direction: Direction, ticket: Option<Ticket>) {
        if let Some(ticket) = ticket {
            self.source.leave(direction, ticket);
        }
    }

    /// See [`Source::raise`].
    pub(crate) fn raise(&self, direction: Direction) {
        self.source.raise(direction);
    }
}

impl<T: AsFd> Drop for Async<T> {
    fn drop(&mut self) {
        if let Some(io) = &self.io {
            self.source.deregister(io.as_fd());
        }
    }
}

// Nothing in it is ever pinned.
impl<T: AsFd> Unpin for Async<T> {}

impl<T: AsFd + fmt::Debug> fmt::Debug for Async<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Async").field(self.get_ref()).finish()
    }
}

impl<T: AsFd> AsFd for Async<T> {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

/// An operation that waits for its turn; see [`Async::operate`].
#[must_use = "futures do nothing unless awaited"]
pub(crate) struct Operation<'a, T: AsFd, F> {
    on: &'a Async<T>,
    direction: Direction,
    attempt: F,
    ticket: Option<Ticket>,
}

// The closure is called by reference and never pinned.
impl<T: AsFd, F> Unpin for Operation<'_, T, F> {}

impl<T: AsFd, R, F: FnMut(&T) -> io::Result<Done<R>>> Future for Operation<'_, T, F> {
    type Output = io::Result<R>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let on = this.on;
        on.poll_with_ticket(cx, this.direction, &mut this.ticket, &mut this.attempt)
    }
}

impl<T: AsFd, F> Drop for Operation<'_, T, F> {
    #[inline]
    fn drop(&mut self) {
        self.on.leave(self.direction, self.ticket);
    }
}

impl<T: AsFd> Async<T> {
    fn poll_mut<R>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        direction: Direction,
        mut attempt: impl FnMut(&mut T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let this = self.get_mut();
        let io = this.io.as_mut().expect(TAKEN);
        this.source
            .poll(io, direction, Waits::Watcher(cx.waker()), |io| {
                attempt(io).map(Done::maybe_more)
            })
    }
}

impl<T: AsFd + Read> AsyncRead for Async<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_mut(cx, Direction::Read, |io| io.read(buffer))
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_mut(cx, Direction::Read, |io| io.read_vectored(buffers))
    }
}

impl<T: AsFd + Write> AsyncWrite for Async<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_mut(cx, Direction::Write, |io| io.write(buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_mut(cx, Direction::Write, |io| io.write_vectored(buffers))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_mut(cx, Direction::Write, |io| io.flush())
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl<T: AsFd> AsyncRead for &Async<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, |mut io| io.read(buffer))
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, |mut io| io.read_vectored(buffers))
    }
}

impl<T: AsFd> AsyncWrite for &Async<T>
where
    for<'a> &'a T: Write,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |mut io| io.write(buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |mut io| io.write_vectored(buffers))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_with(cx, |mut io| io.flush())
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
