//! The blocking forms of I/O, for closures.
//!
//! `stream.blocking()` is a view of a descriptor whose operations return when they are done. On a
//! worker's stack the wait suspends the stack and the worker goes on with other work; on a plain thread it
//! parks the thread. For streams the view is a [`std::io::Read`] and [`std::io::Write`], so that
//! everything written for those works; the other types add their own methods to it.
//!
//! A write is done when its bytes are where they belong, so it flushes. For a socket a flush is nothing. For a standard
//! stream that is a file, a flush waits for the write that was started.

use futures_io::{AsyncRead, AsyncWrite};
use std::{
    future::poll_fn,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    pin::Pin,
    task::{Context, Poll},
};

/// A descriptor seen from a closure: its operations return when they are done.
///
/// Made by the `blocking` method of each stream, listener and socket. Inside async code use the descriptor itself.
/// Reads and writes of a stream have no place in the order of the waiting tasks: see [`net`](crate::net).
///
/// ```
/// use std::io::{BufRead, BufReader, Write};
/// use urgency::net::{TcpListener, TcpStream};
///
/// # fn main() -> std::io::Result<()> {
/// let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0"))?;
/// let client = urgency::block_on(TcpStream::connect(listener.local_addr()?))?;
/// let (server, _) = listener.blocking().accept()?;
/// writeln!(client.blocking(), "a line")?;
/// let mut line = String::new();
/// BufReader::new(server.blocking()).read_line(&mut line)?;
/// assert_eq!(line, "a line\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Blocking<'a, T> {
    pub(crate) inner: &'a T,
}

impl<'a, T> Blocking<'a, T> {
    pub(crate) fn new(inner: &'a T) -> Self {
        Blocking { inner }
    }
}

impl<T> Clone for Blocking<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Blocking<'_, T> {}

impl<'a, T> Read for Blocking<'a, T>
where
    &'a T: AsyncRead + Unpin,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.inner;
        crate::block_on(poll_fn(|cx| Pin::new(&mut inner).poll_read(cx, buffer)))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut inner = self.inner;
        crate::block_on(poll_fn(|cx| {
            Pin::new(&mut inner).poll_read_vectored(cx, buffers)
        }))
    }
}

impl<'a, T> Write for Blocking<'a, T>
where
    &'a T: AsyncWrite + Unpin,
{
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        crate::block_on(write_through(self.inner, |inner, cx| {
            inner.poll_write(cx, buffer)
        }))
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        crate::block_on(write_through(self.inner, |inner, cx| {
            inner.poll_write_vectored(cx, buffers)
        }))
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut inner = self.inner;
        crate::block_on(poll_fn(|cx| Pin::new(&mut inner).poll_flush(cx)))
    }
}

/// Writes once, and flushes.
pub(super) async fn write_through<W: AsyncWrite + Unpin>(
    mut to: W,
    mut poll_write: impl FnMut(Pin<&mut W>, &mut Context<'_>) -> Poll<io::Result<usize>>,
) -> io::Result<usize> {
    let count = poll_fn(|cx| poll_write(Pin::new(&mut to), cx)).await?;
    poll_fn(|cx| Pin::new(&mut to).poll_flush(cx)).await?;
    Ok(count)
}
