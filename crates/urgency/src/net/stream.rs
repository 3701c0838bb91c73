//! What TCP and Unix streams share: bytes in order, in two directions.
//!
//! A read takes what a dropped started read put back before it asks the kernel. A read or write that
//! transfers less than asked for shows that the next one would block, which saves one system call per
//! request; that is relied on for TCP only, and not after a hang-up, an error or urgent data (a read stops
//! short at those). A read of a Unix stream also stops short where a descriptor was passed along.

use super::started::Startable;
use crate::{
    io::{
        Async, Interest, Ready,
        forward::write_all,
        ready::{ready_for, some_ready},
        source::Done,
        unread::{Bytes, Place, Unread},
    },
    reactor::{
        directions::Direction,
        sockets::{MOST_SLICES, SEND_FLAGS},
    },
};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{
    fd::OwnedFd,
    net::{RecvFlags, SendAncillaryBuffer, Shutdown, recv, send, sendmsg},
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    pin::Pin,
    task::{Context, Poll},
};

/// The socket of a stream. See the module's text.
#[derive(Debug)]
pub struct Stream {
    io: Async<OwnedFd>,
    unread: Unread<Bytes>,
    trusts_short: bool,
}

impl Stream {
    pub(crate) fn new(io: Async<OwnedFd>, trusts_short: bool) -> Self {
        Stream {
            io,
            unread: Unread::new(),
            trusts_short,
        }
    }

    pub(crate) fn io(&self) -> &Async<OwnedFd> {
        &self.io
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.io.into_inner()
    }

    fn done(&self, count: usize, of: usize) -> io::Result<Done<usize>> {
        Ok(Done {
            value: count,
            exhausted: self.trusts_short && 0 < count && count < of,
        })
    }

    #[inline]
    fn attempt_read(&self, buffer: &mut [u8]) -> io::Result<Done<usize>> {
        match self.unread.take_bytes(|bytes| bytes.copy_to(buffer)) {
            Some((count, _)) => Ok(Done::maybe_more(count)),
            None => self.attempt_receive(buffer),
        }
    }

    #[inline]
    fn attempt_receive(&self, buffer: &mut [u8]) -> io::Result<Done<usize>> {
        let (_, count) = recv(self.io.get_ref(), &mut *buffer, RecvFlags::empty())?;
        self.done(count, buffer.len())
    }

    /// As `attempt_read`; the first bytes of `buffer`, as many as returned, are initialised then.
    #[cfg(feature = "tokio-io")]
    #[inline]
    fn attempt_read_uninit(
        &self,
        buffer: &mut [std::mem::MaybeUninit<u8>],
    ) -> io::Result<Done<usize>> {
        let unread = self.unread.take_bytes(|bytes| bytes.copy_to_uninit(buffer));
        if let Some((count, _)) = unread {
            return Ok(Done::maybe_more(count));
        }
        let room = buffer.len();
        let ((read, _), _) = recv(self.io.get_ref(), buffer, RecvFlags::empty())?;
        self.done(read.len(), room)
    }

    fn attempt_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<Done<usize>> {
        let unread = self
            .unread
            .take_bytes(|bytes| buffers.iter_mut().map(|buffer| bytes.copy_to(buffer)).sum());
        if let Some((count, _)) = unread {
            return Ok(Done::maybe_more(count));
        }
        let most = buffers.len().min(MOST_SLICES);
        let buffers = &mut buffers[..most];
        let count = rustix::io::readv(self.io.get_ref(), buffers)?;
        self.done(count, buffers.iter().map(|b| b.len()).sum())
    }

    fn attempt_peek(&self, buffer: &mut [u8]) -> io::Result<Done<usize>> {
        let unread = self
            .unread
            .take_with(|place, bytes| (bytes.peek_to(buffer), Some((place, bytes))));
        if let Some(count) = unread {
            return Ok(Done::maybe_more(count));
        }
        let (_, count) = recv(self.io.get_ref(), buffer, RecvFlags::PEEK)?;
        Ok(Done::maybe_more(count))
    }

    #[inline]
    fn attempt_write(&self, buffer: &[u8]) -> io::Result<Done<usize>> {
        let count = send(self.io.get_ref(), buffer, SEND_FLAGS)?;
        self.done(count, buffer.len())
    }

    fn attempt_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<Done<usize>> {
        let buffers = &buffers[..buffers.len().min(MOST_SLICES)];
        let nothing = &mut SendAncillaryBuffer::default();
        let count = sendmsg(self.io.get_ref(), buffers, nothing, SEND_FLAGS)?;
        self.done(count, buffers.iter().map(|b| b.len()).sum())
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send {
        self.io
            .operate(Direction::Read, move |_| self.attempt_read(buffer))
    }

    pub(crate) fn read_vectored(
        &self,
        buffers: &mut [IoSliceMut<'_>],
    ) -> impl Future<Output = io::Result<usize>> + Send {
        self.io.operate(Direction::Read, move |_| {
            self.attempt_read_vectored(buffers)
        })
    }

    pub(crate) fn peek(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send {
        self.io
            .operate(Direction::Read, move |_| self.attempt_peek(buffer))
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.io
            .operate(Direction::Read, |io| self.unread.is_readable(io))
            .await
    }

    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_operate(cx, Direction::Read, |io| self.unread.is_readable(io))
    }

    /// What is ready of `interest` now. What was put back counts as there to be read.
    fn ready_now(&self, interest: Interest) -> io::Result<Ready> {
        let ready = ready_for(self.io.get_ref(), interest)?;
        let unread = interest.is_readable() && !self.unread.is_empty();
        Ok(if unread {
            ready | Ready::READABLE
        } else {
            ready
        })
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let attempt = |_: &OwnedFd| some_ready(self.ready_now(interest));
        self.io.when(interest, attempt).await
    }

    pub(crate) fn write(&self, buffer: &[u8]) -> impl Future<Output = io::Result<usize>> + Send {
        self.io
            .operate(Direction::Write, move |_| self.attempt_write(buffer))
    }

    pub(crate) fn write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
    ) -> impl Future<Output = io::Result<usize>> + Send {
        self.io.operate(Direction::Write, move |_| {
            self.attempt_write_vectored(buffers)
        })
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.attempt_read(buffer)?.value)
    }

    pub(crate) fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        Ok(self.attempt_write(buffer)?.value)
    }

    pub(crate) fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Ok(self.attempt_read_vectored(buffers)?.value)
    }

    pub(crate) fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(self.attempt_write_vectored(buffers)?.value)
    }

    pub(crate) async fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len();
        while !buffer.is_empty() {
            match self.read(buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => buffer = &mut buffer[count..],
            }
        }
        Ok(length)
    }

    pub(crate) async fn write_all(&self, mut buffer: &[u8]) -> io::Result<()> {
        write_all!(self, buffer)
    }

    /// As `AsyncRead::poll_read`; the first bytes of `buffer`, as many as returned, are initialised then.
    #[cfg(feature = "tokio-io")]
    pub(crate) fn poll_read_uninit(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [std::mem::MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_operate(cx, Direction::Read, |_| self.attempt_read_uninit(buffer))
    }

    pub(crate) fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        let how = match how {
            std::net::Shutdown::Read => Shutdown::Read,
            std::net::Shutdown::Write => Shutdown::Write,
            std::net::Shutdown::Both => Shutdown::Both,
        };
        Ok(rustix::net::shutdown(self.io.get_ref(), how)?)
    }
}

impl AsyncRead for &Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = |_: &OwnedFd| self.attempt_read(buffer);
        self.io.poll_operate(cx, Direction::Read, attempt)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = |_: &OwnedFd| self.attempt_read_vectored(buffers);
        self.io.poll_operate(cx, Direction::Read, attempt)
    }
}

impl AsyncWrite for &Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = |_: &OwnedFd| self.attempt_write(buffer);
        self.io.poll_operate(cx, Direction::Write, attempt)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = |_: &OwnedFd| self.attempt_write_vectored(buffers);
        self.io.poll_operate(cx, Direction::Write, attempt)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown(std::net::Shutdown::Write))
    }
}

/// A read that owns its buffer.
#[derive(Debug)]
pub struct ReadOperation<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) buffer: Vec<u8>,
}

#[expect(private_interfaces, reason = "sealed: the module is private")]
impl Startable for ReadOperation<'_> {
    const DIRECTION: Direction = Direction::Read;
    type Item = (usize, Place);
    type Output = (io::Result<usize>, Vec<u8>);
    type Socket = OwnedFd;

    fn attempt(&mut self) -> io::Result<Done<Self::Item>> {
        let (unread, buffer) = (&self.stream.unread, &mut self.buffer);
        if let Some(taken) = unread.take_bytes(|bytes| bytes.copy_to(buffer)) {
            return Ok(Done::maybe_more(taken));
        }
        let done = self.stream.attempt_receive(buffer)?;
        Ok(done.map(|count| (count, unread.place(count))))
    }

    fn finish(self, result: io::Result<Self::Item>) -> Self::Output {
        (result.map(|(count, _)| count), self.buffer)
    }

    fn put_back(self, (count, place): Self::Item) -> bool {
        if count != 0 {
            let bytes = Bytes::new(self.buffer, count);
            self.stream.unread.put_back(place, bytes);
        }
        count != 0
    }
}

/// A write that owns its buffer.
#[derive(Debug)]
pub struct WriteOperation<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) buffer: Vec<u8>,
}

#[expect(private_interfaces, reason = "sealed: the module is private")]
impl Startable for WriteOperation<'_> {
    const DIRECTION: Direction = Direction::Write;
    type Item = usize;
    type Output = (io::Result<usize>, Vec<u8>);
    type Socket = OwnedFd;

    fn attempt(&mut self) -> io::Result<Done<usize>> {
        self.stream.attempt_write(&self.buffer)
    }

    fn finish(self, result: io::Result<usize>) -> Self::Output {
        (result, self.buffer)
    }
}
