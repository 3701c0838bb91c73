//! The two halves of a stream, for two tasks.

use futures_io::{AsyncRead, AsyncWrite};
use std::{
    error::Error,
    fmt,
    io::{self, IoSlice, IoSliceMut},
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// A stream with two directions.
pub trait Duplex {
    /// The peer is to see the end.
    fn end_writing(&self);
}

/// The half of a stream that reads. It dereferences to the stream.
#[derive(Debug)]
pub struct ReadHalf<S: Duplex>(Arc<S>);

/// The half of a stream that writes. It dereferences to the stream.
///
/// Dropping it ends the direction, so that the peer sees the end of the stream;
/// [`ReadHalf::reunite`] does not.
#[derive(Debug)]
pub struct WriteHalf<S: Duplex> {
    /// Taken by `reunite` only.
    stream: Option<Arc<S>>,
}

/// The halves were not of the same stream. They are given back in it.
#[derive(Debug)]
pub struct ReuniteError<S: Duplex>(pub ReadHalf<S>, pub WriteHalf<S>);

impl<S: Duplex> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the two halves are of different streams; only the halves that one into_split returned \
             can be reunited",
        )
    }
}

impl<S: Duplex + fmt::Debug> Error for ReuniteError<S> {}

pub(crate) fn into_split<S: Duplex>(stream: S) -> (ReadHalf<S>, WriteHalf<S>) {
    let stream = Arc::new(stream);
    let writer = WriteHalf {
        stream: Some(stream.clone()),
    };
    (ReadHalf(stream), writer)
}

impl<S: Duplex> ReadHalf<S> {
    /// Makes the stream whole again.
    ///
    /// # Errors
    /// If the halves are of different streams; both are in the error.
    pub fn reunite(self, mut writer: WriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Arc::ptr_eq(&self.0, writer.whole()) {
            return Err(ReuniteError(self, writer));
        }
        drop(writer.stream.take());
        Ok(Arc::into_inner(self.0).expect("a stream has no more than two halves"))
    }
}

impl<S: Duplex> WriteHalf<S> {
    fn whole(&self) -> &Arc<S> {
        self.stream.as_ref().expect("taken by reunite only")
    }
}

impl<S: Duplex> Drop for WriteHalf<S> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.end_writing();
        }
    }
}

impl<S: Duplex> Deref for ReadHalf<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Duplex> Deref for WriteHalf<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.whole()
    }
}

impl<S: Duplex> AsyncRead for ReadHalf<S>
where
    for<'a> &'a S: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &**self).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &**self).poll_read_vectored(cx, buffers)
    }
}

impl<S: Duplex> AsyncWrite for WriteHalf<S>
where
    for<'a> &'a S: AsyncWrite,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &**self).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &**self).poll_write_vectored(cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &**self).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &**self).poll_close(cx)
    }
}
