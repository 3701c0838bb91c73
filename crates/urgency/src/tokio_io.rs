//! Tokio's I/O traits for sockets, files, pipes of children and the standard streams; the feature `tokio-io`.
//!
//! Crates in the Tokio world say what they need of a connection in `tokio::io::AsyncRead` and `AsyncWrite`, and
//! most of them need nothing else of Tokio: TLS, codecs, web sockets, HTTP. The traits are implemented for the
//! sockets themselves, because then nothing has to be wrapped, and because a wrapper in another crate could
//! not read into memory that is not initialised: a server would clear its buffer before each read.
//!
//! What is built on the traits alone (`AsyncReadExt`, `BufReader`, `copy`, `duplex`, `split`) is Tokio's own,
//! re-exported by [`io`](crate::io): tokio's feature `io-util` needs no runtime. Rejected: traits of our own with the
//! same names. No crate of the Tokio world would know them, and the 3,000 lines of the extensions would be written
//! again.
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
//! 2. `Datagrams::attempt_receive_uninit` likewise.
//!
//! # Ends
//!
//! `poll_shutdown` ends the writing direction. For a connection that is gone, this is no error, because there is no
//! peer to tell: TLS and HTTP shut down what their peers may have closed already.

use crate::{
    fs::File,
    io::{Stdin, Stdout, source::Done},
    net::{
        ReceiveBuffer, TcpStream, UnixStream,
        datagram::{Datagrams, Socket},
        receive_buffer::Receives,
        tcp, unix,
        unix::pipe,
    },
    process::{ChildStderr, ChildStdin, ChildStdout},
};
use std::{
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

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

/// By the traits of `futures-io`. `$vectored`: several buffers are one system call.
macro_rules! impl_write {
    ($vectored:literal: $($type:ty),+) => {$(
        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write(self, cx, buffer)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write_vectored(self, cx, buffers)
            }

            fn is_write_vectored(&self) -> bool {
                $vectored
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                futures_io::AsyncWrite::poll_flush(self, cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                let closed = futures_io::AsyncWrite::poll_close(self, cx);
                closed.map(|result| match result {
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
    tcp::OwnedReadHalf,
    tcp::ReadHalf<'_>,
    unix::OwnedReadHalf,
    unix::ReadHalf<'_>
);
impl_write!(
    true: TcpStream,
    UnixStream,
    tcp::OwnedWriteHalf,
    tcp::WriteHalf<'_>,
    unix::OwnedWriteHalf,
    unix::WriteHalf<'_>
);

/// Files and standard streams, of this process and of others: by their traits of `futures-io`. Files copy in any case.
macro_rules! impl_copying_read {
    ($($type:ty),+) => {$(
        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let room = buffer.initialize_unfilled();
                let count = ready!(futures_io::AsyncRead::poll_read(self, cx, room))?;
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
        }
    )+};
}

impl_copying_read!(File, Stdin, ChildStdout, ChildStderr, pipe::Receiver);
impl_write!(false: File, Stdout);
impl_write!(true: ChildStdin, pipe::Sender);

impl ReceiveBuffer for ReadBuf<'_> {
    type Count = ();
    type CountFrom<A> = A;

    fn count(_: usize) {}

    fn count_from<A>(_: usize, from: A) -> A {
        from
    }
}

impl Receives for ReadBuf<'_> {
    fn receive<S: Socket>(&mut self, from: &Datagrams<S>) -> io::Result<Done<(usize, S::Address)>> {
        // SAFETY: nothing is made uninitialised: the callee writes initialised bytes or nothing.
        let room = unsafe { self.unfilled_mut() };
        let done = from.attempt_receive_uninit(room)?;
        // SAFETY: rule 2 in the module's text.
        unsafe { self.assume_init(done.value.0) };
        self.advance(done.value.0);
        Ok(done)
    }
}

impl AsyncSeek for File {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        match self.seeking().replace(to) {
            None => Ok(()),
            Some(_) => Err(io::Error::other(
                "another seek of this file is under way; call poll_complete until it is ready",
            )),
        }
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let to = self.seeking().unwrap_or(SeekFrom::Current(0));
        let position = ready!(futures_io::AsyncSeek::poll_seek(self.as_mut(), cx, to));
        *self.seeking() = None;
        Poll::Ready(position)
    }
}
