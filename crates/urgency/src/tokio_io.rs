//! Tokio's I/O traits for the streams of `net`; the feature `tokio-io`.
//!
//! Crates in the Tokio world say what they need of a connection in `tokio::io::AsyncRead` and `AsyncWrite`, and
//! most of them need nothing else of Tokio: TLS, codecs, web sockets, HTTP. The traits are implemented for the
//! sockets themselves, because then nothing has to be wrapped, and because a wrapper in another crate could
//! not read into memory that is not initialised: a server would clear its buffer before each read.
//!
//! The traits of `futures-io` stay. Both declare `poll_read` and `poll_write`, so code that imports both has
//! to say which it means.
//!
//! # Rule
//!
//! 1. `Stream::poll_read_uninit(buffer)` is ready with `Ok(n)` only if the first `n` bytes of `buffer` are
//!    initialised: by the kernel, as rustix reports it in a slice of that length, or one by one from what was
//!    put back.
//!
//! # Ends
//!
//! `poll_shutdown` ends the writing direction. For a connection that is gone, this is no error, because there is no
//! peer to tell: TLS and HTTP shut down what their peers may have closed already.

use crate::net::{ReadHalf, TcpStream, UnixStream, WriteHalf};
use std::{
    io::{self, IoSlice},
    net::Shutdown,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

macro_rules! impl_read {
    ($($type:ty),+) => {$(
        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                // SAFETY: nothing is made uninitialised: the callee writes initialised bytes or nothing.
                let room = unsafe { buffer.unfilled_mut() };
                let count = ready!(self.as_stream().poll_read_uninit(cx, room))?;
                // SAFETY: rule 1 in the module's text.
                unsafe { buffer.assume_init(count) };
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
        }
    )+};
}

macro_rules! impl_write {
    ($($type:ty),+) => {$(
        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.as_stream().poll_write(cx, buffer)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.as_stream().poll_write_vectored(cx, buffers)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(match self.shutdown(Shutdown::Write) {
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    result => result,
                })
            }
        }
    )+};
}

impl_read!(
    TcpStream,
    UnixStream,
    ReadHalf<TcpStream>,
    ReadHalf<UnixStream>
);
impl_write!(
    TcpStream,
    UnixStream,
    WriteHalf<TcpStream>,
    WriteHalf<UnixStream>
);
