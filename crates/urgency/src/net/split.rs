//! The two halves of a stream: owned, for two tasks, or borrowed, within one.
//!
//! All of them dereference to the stream, and the methods and traits are the stream's.

use crate::io::forward::{forward_read, forward_write};
use futures_io::{AsyncRead, AsyncWrite};
use std::{
    fmt, io,
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
pub struct OwnedReadHalf<S: Duplex>(Arc<S>);

/// The half of a stream that writes. It dereferences to the stream.
///
/// Dropping it ends the direction, so that the peer sees the end of the stream;
/// [`OwnedReadHalf::reunite`] does not.
#[derive(Debug)]
pub struct OwnedWriteHalf<S: Duplex> {
    /// Taken by `reunite` only.
    stream: Option<Arc<S>>,
}

/// The half of a stream that reads, borrowed. It dereferences to the stream.
#[derive(Debug)]
pub struct ReadHalf<'a, S: Duplex>(&'a S);

/// The half of a stream that writes, borrowed. It dereferences to the stream. Dropping it ends nothing.
#[derive(Debug)]
pub struct WriteHalf<'a, S: Duplex>(&'a S);

pub(crate) fn split<S: Duplex>(stream: &S) -> (ReadHalf<'_, S>, WriteHalf<'_, S>) {
    (ReadHalf(stream), WriteHalf(stream))
}

/// The halves were not of the same stream. They are given back in it.
#[derive(Debug)]
pub struct ReuniteError<S: Duplex>(pub OwnedReadHalf<S>, pub OwnedWriteHalf<S>);

error_text!(
    [S: Duplex + fmt::Debug] ReuniteError<S>,
    "the two halves are of different streams; only the halves that one into_split returned can be reunited"
);

pub(crate) fn into_split<S: Duplex>(stream: S) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let stream = Arc::new(stream);
    let writer = OwnedWriteHalf {
        stream: Some(stream.clone()),
    };
    (OwnedReadHalf(stream), writer)
}

impl<S: Duplex> OwnedReadHalf<S> {
    /// Makes the stream whole again.
    ///
    /// # Errors
    /// If the halves are of different streams; both are in the error.
    pub fn reunite(self, mut writer: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Arc::ptr_eq(&self.0, writer.whole()) {
            return Err(ReuniteError(self, writer));
        }
        drop(writer.stream.take());
        Ok(Arc::into_inner(self.0).expect("a stream has no more than two halves"))
    }
}

impl<S: Duplex> OwnedWriteHalf<S> {
    /// Drops the half without an end of the direction: the peer sees none until the other half is dropped too.
    pub fn forget(mut self) {
        drop(self.stream.take());
    }

    fn whole(&self) -> &Arc<S> {
        self.stream.as_ref().expect("taken by reunite only")
    }
}

impl<S: Duplex> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.end_writing();
        }
    }
}

macro_rules! dereference {
    ($(|$it:ident: $half:ty| $stream:expr),*) => {$(
        impl<S: Duplex> Deref for $half {
            type Target = S;

            fn deref(&self) -> &S {
                let $it = self;
                $stream
            }
        }

        impl<S: Duplex> AsRef<S> for $half {
            fn as_ref(&self) -> &S {
                self
            }
        }
    )*};
}

dereference! {
    |it: ReadHalf<'_, S>| it.0,
    |it: WriteHalf<'_, S>| it.0,
    |it: OwnedReadHalf<S>| &it.0,
    |it: OwnedWriteHalf<S>| it.whole()
}

// The traits of a half are the ones that a reference to its stream has.
forward_read!((impl<S: Duplex> AsyncRead for OwnedReadHalf<S> where for<'a> &'a S: AsyncRead) |this| &**this);
forward_write!((impl<S: Duplex> AsyncWrite for OwnedWriteHalf<S> where for<'a> &'a S: AsyncWrite) |this| &**this);
forward_read!((impl<S: Duplex> AsyncRead for ReadHalf<'_, S> where for<'a> &'a S: AsyncRead) |this| &**this);
forward_write!((impl<S: Duplex> AsyncWrite for WriteHalf<'_, S> where for<'a> &'a S: AsyncWrite) |this| &**this);
