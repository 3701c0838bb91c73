//! What UDP and Unix datagram sockets share: whole messages, in or out.

use super::{receive_buffer::ReceiveBuffer, started::Startable};
use crate::{
    io::{
        Async, Interest, Ready,
        ready::{ready_with_datagrams, some_ready},
        source::Done,
        unread::{Place, Unread},
    },
    reactor::directions::Direction,
};
use rustix::fd::AsFd;
use std::{
    io,
    task::{Context, Poll},
};

/// A non-blocking socket of the standard library.
pub trait Socket: AsFd {
    /// Where a datagram comes from.
    type Address: Clone + std::fmt::Debug;

    /// Receives one datagram.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Self::Address)>;
    /// As `receive`; the first bytes of `buffer`, as many as returned, are initialised then.
    #[cfg(feature = "tokio-io")]
    fn receive_uninit(
        &self,
        buffer: &mut [std::mem::MaybeUninit<u8>],
    ) -> io::Result<(usize, Self::Address)>;
    /// Sends one datagram, to the connected peer if no other is given.
    fn transmit(&self, datagram: &[u8], to: Option<&Self::Address>) -> io::Result<usize>;
}

/// A socket with what was received and not taken.
#[derive(Debug)]
pub struct Datagrams<S: Socket> {
    io: Async<S>,
    unread: Unread<Datagram<S::Address>>,
}

#[derive(Debug)]
struct Datagram<A> {
    buffer: Vec<u8>,
    count: usize,
    from: A,
}

impl<A: Clone> Datagram<A> {
    /// What does not fit is cut off, as the kernel does it.
    fn copy_to(&self, buffer: &mut [u8]) -> (usize, A) {
        let count = self.count.min(buffer.len());
        buffer[..count].copy_from_slice(&self.buffer[..count]);
        (count, self.from.clone())
    }
}

impl<S: Socket> Datagrams<S> {
    /// The socket is non-blocking.
    pub(crate) fn new(socket: S) -> Self {
        Datagrams {
            io: Async::from_nonblocking(socket),
            unread: Unread::new(),
        }
    }

    pub(crate) fn socket(&self) -> &S {
        self.io.get_ref()
    }

    pub(crate) fn io(&self) -> &Async<S> {
        &self.io
    }

    #[inline]
    pub(crate) fn attempt_receive(
        &self,
        buffer: &mut [u8],
    ) -> io::Result<Done<(usize, S::Address)>> {
        let unread = self
            .unread
            .take_with(|_, datagram| (datagram.copy_to(buffer), None));
        unread
            .map_or_else(|| self.socket().receive(buffer), Ok)
            .map(Done::maybe_more)
    }

    /// As `attempt_receive`; the first bytes of `buffer`, as many as returned, are initialised then.
    #[cfg(feature = "tokio-io")]
    pub(crate) fn attempt_receive_uninit(
        &self,
        buffer: &mut [std::mem::MaybeUninit<u8>],
    ) -> io::Result<Done<(usize, S::Address)>> {
        let unread = self.unread.take_with(|_, datagram| {
            let count = datagram.count.min(buffer.len());
            for (to, from) in buffer.iter_mut().zip(&datagram.buffer[..count]) {
                to.write(*from);
            }
            ((count, datagram.from.clone()), None)
        });
        unread
            .map_or_else(|| self.socket().receive_uninit(buffer), Ok)
            .map(Done::maybe_more)
    }

    pub(crate) fn try_receive(&self, buffer: &mut [u8]) -> io::Result<(usize, S::Address)> {
        Ok(self.attempt_receive(buffer)?.value)
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.io
            .operate(Direction::Read, |socket| self.is_readable(socket))
            .await
    }

    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_operate(cx, Direction::Read, |socket| self.is_readable(socket))
    }

    /// An attempt that only asks.
    fn is_readable(&self, socket: &S) -> io::Result<Done<()>> {
        some_ready(self.ready_now(socket, Interest::READABLE)).map(|_| Done::maybe_more(()))
    }

    fn ready_now(&self, socket: &S, interest: Interest) -> io::Result<Ready> {
        let ready = ready_with_datagrams(socket, interest)?;
        Ok(match interest.is_readable() && !self.unread.is_empty() {
            true => ready | Ready::READABLE,
            false => ready,
        })
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let attempt = |socket: &S| some_ready(self.ready_now(socket, interest));
        self.io.when(interest, attempt).await
    }

    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        operation: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        some_ready(ready_with_datagrams(self.socket(), interest))?;
        operation()
    }

    pub(crate) fn into_socket(self) -> S {
        self.io.into_inner()
    }

    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, S::Address)> {
        self.io
            .operate(Direction::Read, |_| self.attempt_receive(buffer))
            .await
    }

    /// As `receive`, but the datagram will be received again.
    pub(crate) async fn peek(
        &self,
        buffer: &mut [u8],
        mut peek: impl FnMut(&S, &mut [u8]) -> io::Result<(usize, S::Address)>,
    ) -> io::Result<(usize, S::Address)> {
        let attempt = |socket: &S| {
            let unread = self
                .unread
                .take_with(|place, datagram| (datagram.copy_to(buffer), Some((place, datagram))));
            unread
                .map_or_else(|| peek(socket, buffer), Ok)
                .map(Done::maybe_more)
        };
        self.io.operate(Direction::Read, attempt).await
    }

    pub(crate) fn poll_receive<B: ReceiveBuffer + ?Sized>(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut B,
    ) -> Poll<io::Result<(usize, S::Address)>> {
        self.io
            .poll_operate(cx, Direction::Read, |_| buffer.receive(self))
    }

    pub(crate) async fn transmit(
        &self,
        datagram: &[u8],
        to: Option<&S::Address>,
    ) -> io::Result<usize> {
        self.io
            .write_with(|socket| socket.transmit(datagram, to))
            .await
    }

    pub(crate) fn poll_transmit(
        &self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        to: Option<&S::Address>,
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_write_with(cx, |socket| socket.transmit(datagram, to))
    }
}

/// A receive that owns its buffer.
#[derive(Debug)]
pub struct ReceiveOperation<'a, S: Socket> {
    pub(crate) datagrams: &'a Datagrams<S>,
    pub(crate) buffer: Vec<u8>,
}

#[expect(private_interfaces, reason = "sealed: the module is private")]
impl<S: Socket> Startable for ReceiveOperation<'_, S> {
    const DIRECTION: Direction = Direction::Read;
    type Item = ((usize, S::Address), Place);
    type Output = (io::Result<(usize, S::Address)>, Vec<u8>);
    type Socket = S;

    fn attempt(&mut self) -> io::Result<Done<Self::Item>> {
        let (unread, buffer) = (&self.datagrams.unread, &mut self.buffer);
        let taken = unread.take_with(|place, datagram| ((datagram.copy_to(buffer), place), None));
        if let Some(taken) = taken {
            return Ok(Done::maybe_more(taken));
        }
        let received = self.datagrams.socket().receive(buffer)?;
        Ok(Done::maybe_more((received, unread.place(1))))
    }

    fn finish(self, result: io::Result<Self::Item>) -> Self::Output {
        (result.map(|(received, _)| received), self.buffer)
    }

    fn put_back(self, ((count, from), place): Self::Item) -> bool {
        let datagram = Datagram {
            buffer: self.buffer,
            count,
            from,
        };
        self.datagrams.unread.put_back(place, datagram);
        true
    }
}

/// A send that owns its datagram.
#[derive(Debug)]
pub struct SendOperation<'a, S: Socket> {
    pub(crate) datagrams: &'a Datagrams<S>,
    pub(crate) datagram: Vec<u8>,
    pub(crate) to: Option<S::Address>,
}

#[expect(private_interfaces, reason = "sealed: the module is private")]
impl<S: Socket> Startable for SendOperation<'_, S> {
    const DIRECTION: Direction = Direction::Write;
    type Item = usize;
    type Output = (io::Result<usize>, Vec<u8>);
    type Socket = S;

    fn attempt(&mut self) -> io::Result<Done<usize>> {
        let socket = self.datagrams.socket();
        let sent = socket.transmit(&self.datagram, self.to.as_ref())?;
        Ok(Done::maybe_more(sent))
    }

    fn finish(self, result: io::Result<usize>) -> Self::Output {
        (result, self.datagram)
    }
}
