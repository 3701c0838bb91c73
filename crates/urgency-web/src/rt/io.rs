//! `Io`: the bridge between hyper's I/O traits and Tokio's.
//!
//! It goes both ways: a stream with Tokio's traits (a socket of [`urgency::net`], TLS over one) gets hyper's,
//! and what hyper gives away (an upgraded connection) gets Tokio's. No byte is copied, no buffer is cleared.
//!
//! # Rules
//!
//! 1. A read buffer of either kind starts at the first unfilled byte of the other one and is dropped before
//!    that one is advanced.
//! 2. What the inner stream filled is a prefix of that memory. A hand-written stream might have put another
//!    `ReadBuf` in the place of Tokio's, so the address is compared; hyper's cursor cannot be exchanged for another's
//!    buffer, because the buffer stays here.

use crate::serve::Written;
use hyper::rt;
use pin_project_lite::pin_project;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pin_project! {
    /// A stream for hyper; see the [module's text](crate::rt).
    ///
    /// ```
    /// use urgency::net::{TcpListener, TcpStream};
    /// use urgency_web::rt::Io;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// urgency::block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     let io = Io::new(stream); // for a builder of hyper
    ///     io.into_inner().set_nodelay(true)
    /// })
    /// # }
    /// ```
    #[derive(Debug)]
    pub struct Io<T> {
        #[pin]
        inner: T,
        // Notes writes, for the limit on idle connections.
        written: Option<Written>,
    }
}

impl<T> Io<T> {
    /// Around a stream.
    pub fn new(inner: T) -> Self {
        Io {
            inner,
            written: None,
        }
    }

    /// Around a stream whose writes are noted.
    pub(crate) fn noting(inner: T, written: Written) -> Self {
        Io {
            inner,
            written: Some(written),
        }
    }

    /// The stream.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// The stream, to be changed.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: AsyncRead> rt::Read for Io<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: `ReadBuf` never makes bytes uninitialised.
        let room = unsafe { cursor.as_mut() };
        let start = room.as_ptr();
        let mut buffer = ReadBuf::uninit(room);
        ready!(self.project().inner.poll_read(cx, &mut buffer))?;
        let filled = buffer.filled();
        assert!(
            std::ptr::eq(start.cast(), filled.as_ptr()),
            "a stream filled another buffer than the one that it was given"
        );
        let count = filled.len();
        // SAFETY: by rule 2 the first `count` bytes at the cursor are filled.
        unsafe { cursor.advance(count) };
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite> rt::Write for Io<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = this.inner.poll_write(cx, buffer);
        if let Some(all) = this.written {
            all.note(&[IoSlice::new(buffer)], &written);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = this.inner.poll_write_vectored(cx, buffers);
        if let Some(all) = this.written {
            all.note(buffers, &written);
        }
        written
    }
}

impl<T: rt::Read> AsyncRead for Io<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = {
            // SAFETY: hyper's `ReadBuf` never makes bytes uninitialised.
            let mut inner = rt::ReadBuf::uninit(unsafe { buffer.unfilled_mut() });
            ready!(self.project().inner.poll_read(cx, inner.unfilled()))?;
            inner.filled().len()
        };
        // SAFETY: by rule 2 the first `count` unfilled bytes are initialised.
        unsafe { buffer.assume_init(count) };
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<T: rt::Write> AsyncWrite for Io<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write(cx, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write_vectored(cx, buffers)
    }
}
