//! What a connection is to send: one buffer, written out when there is nothing more to do or when it is full.
//!
//! Answers to pipelined requests go out in one write. A client that does not read is waited for: its connection
//! executes no further request, so the client costs one buffer. The buffer has [`BASE`] bytes. A value for which these
//! do not suffice is not copied before the connection has a share of one [`Allowance`] of the whole server ([`Room`]).

use super::allowance::{Allowance, Share};
use futures_io::AsyncWrite;
use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};

/// A buffer with so much in it is written before the next item goes in.
pub const FULL: usize = 64 * 1024;

/// The most that a buffer has without a share.
pub const BASE: usize = 2 * FULL;

/// What stands before and after a value, at most.
const FRAME: usize = 1024;

/// How much memory an answer may take.
#[derive(Debug)]
pub struct Room {
    limit: usize,
    wanted: usize,
}

impl Room {
    /// Room for everything: other code bounds the answer.
    pub const ENDLESS: Room = Room::of(usize::MAX);

    /// A connection's without a share.
    pub const OF_BASE: Room = Room::of(BASE);

    const fn of(limit: usize) -> Self {
        Room { limit, wanted: 0 }
    }

    /// Makes room in `out` for a value of so many bytes. If that is not allowed, nothing is to be done: the connection
    /// sees to it that it is, and repeats the request.
    #[inline]
    pub fn admits(&mut self, out: &mut Vec<u8>, value: usize) -> bool {
        let needed = out.len() + value + FRAME;
        if needed > self.limit {
            self.wanted = value + FRAME;
            return false;
        }
        if needed > out.capacity() {
            let capacity = (2 * out.capacity()).clamp(needed, self.limit);
            out.reserve_exact(capacity - out.len());
        }
        true
    }

    /// The bytes for which there was no room, or 0.
    #[inline]
    pub fn missed(&self) -> usize {
        self.wanted
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Output<'s> {
    /// What is to be sent.
    pub bytes: Vec<u8>,
    share: Option<Share<'s>>,
}

fn too_slow<T>() -> Poll<io::Result<T>> {
    let why = "it was too slow, and others waited for memory";
    Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
}

/// Whether one of the shares is lost.
fn are_lost(shares: [Option<&Share<'_>>; 2], cx: &Context<'_>) -> bool {
    shares
        .into_iter()
        .flatten()
        .any(|share| share.poll_lost(cx))
}

impl<'s> Output<'s> {
    /// Whether it is time to write.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Sends everything. Whenever the client has taken something for which it let the server wait, `took` is
    /// called. `input` is what the connection holds besides.
    ///
    /// # Errors
    /// The connection's errors, and [`TimedOut`](io::ErrorKind::TimedOut) if a share is lost.
    pub async fn flush<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        input: Option<&Share<'_>>,
        mut took: impl FnMut(),
    ) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.bytes.len() {
            let rest = &self.bytes[sent..];
            let mut waited = false;
            let shares = [self.share.as_ref(), input];
            let written = poll_fn(|cx| {
                if are_lost(shares, cx) {
                    return too_slow();
                }
                let polled = Pin::new(&mut *stream).poll_write(cx, rest);
                waited |= polled.is_pending();
                polled
            })
            .await?;
            match written {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => sent += count,
            }
            for share in shares.into_iter().flatten() {
                share.moved(written);
            }
            if waited {
                took();
            }
        }
        self.bytes.clear();
        // One large value does not make the connection large for good.
        match self.share.take() {
            Some(share) => share.keep(std::mem::take(&mut self.bytes)),
            None => self.bytes.shrink_to(BASE),
        }
        Ok(())
    }

    /// Waits for memory for a value that had no room. Everything before it must be sent.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if `input`, which the connection holds, is lost meanwhile.
    pub async fn widen(
        &mut self,
        allowance: &'s Allowance,
        missed: usize,
        input: Option<&Share<'_>>,
    ) -> io::Result<Room> {
        if missed <= BASE {
            return Ok(Room::OF_BASE);
        }
        let mut taking = pin!(allowance.take(missed));
        let share = poll_fn(|cx| {
            if are_lost([input, None], cx) {
                return too_slow();
            }
            taking.as_mut().poll(cx).map(Ok)
        });
        self.share = Some(share.await?);
        if let Some(spare) = allowance.spare(missed) {
            self.bytes = spare;
        }
        Ok(Room::of(missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// A client that takes everything.
    struct Takes;

    impl AsyncWrite for Takes {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn one_long_answer_does_not_make_a_connection_large_for_good() {
        let mut output = Output {
            bytes: vec![b'x'; 10 * BASE],
            share: None,
        };
        let flushed = pin!(output.flush(&mut Takes, None, || ()))
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(flushed, Poll::Ready(Ok(()))));
        assert!(output.bytes.capacity() <= BASE);
    }
}
