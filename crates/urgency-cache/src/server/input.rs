//! What a connection has received and not yet used: one buffer, filled by reads as long as it has room.
//!
//! A buffer starts small, for most of ten thousand connections wait; it doubles when a read fills it, up to [`ROOM`],
//! and shrinks again when it is empty. For a value or a line longer than that, the connection takes a share of one
//! [`Allowance`] of the whole server, as large as the request may become, and waits until there is one. Then the buffer
//! grows as the bytes arrive: announcing a large value costs no memory, but a share, which a client that does not go on
//! may lose.

use super::allowance::{Allowance, Share};
use crate::protocol::text::GET_LINE_MAX;
use futures_io::AsyncRead;
use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    task::Poll,
};

/// The length of a connection's buffer at first.
const FIRST: usize = 2048;

/// The length up to which a buffer grows to save reads.
pub const ROOM: usize = 64 * 1024;

/// After so many reads that had not to wait, a connection lets others run.
const READS_BEFORE_YIELD: u32 = 32;

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// There is more than before.
    More,
    /// The client has closed its side.
    End,
    /// The client was too slow, and others wait for the memory that it would need.
    Lost,
}

/// See the module's text.
#[derive(Debug)]
pub struct Input<'s> {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How many of the unused bytes are known to have no line feed.
    pub scanned: usize,
    allowance: &'s Allowance,
    share: Option<Share<'s>>,
    /// The bytes of the share.
    entitled: usize,
    reads_at_once: u32,
}

impl<'s> Input<'s> {
    /// An empty buffer.
    pub fn new(allowance: &'s Allowance) -> Self {
        Input {
            buffer: vec![0; FIRST],
            start: 0,
            end: 0,
            scanned: 0,
            allowance,
            share: None,
            entitled: 0,
            reads_at_once: 0,
        }
    }

    /// What was received and not used.
    #[inline]
    pub fn unused(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks `count` bytes as used.
    #[inline]
    pub fn use_up(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
        self.scanned = 0;
    }

    /// Throws away up to `count` bytes that are here, and returns how many are still to come.
    pub fn skip(&mut self, count: u64) -> u64 {
        let here = count.min((self.end - self.start) as u64);
        self.use_up(here as usize);
        count - here
    }

    /// The right to its memory, if it is large.
    pub fn share(&self) -> Option<&Share<'s>> {
        self.share.as_ref()
    }

    /// Receives more, with a view to having `at_least` unused bytes in the end.
    ///
    /// # Errors
    /// The connection's errors.
    pub async fn fill<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        at_least: usize,
    ) -> io::Result<Filled> {
        if !self.make_room(at_least).await {
            return Ok(Filled::Lost);
        }
        let room = &mut self.buffer[self.end..];
        let length = room.len();
        let (reads, limit) = (&mut self.reads_at_once, READS_BEFORE_YIELD);
        let share = self.share.as_ref();
        let count = poll_fn(|cx| {
            if share.is_some_and(|share| share.poll_lost(cx)) {
                return Poll::Ready(Ok(None));
            }
            if *reads >= limit {
                *reads = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let polled = Pin::new(&mut *stream).poll_read(cx, room);
            *reads = if polled.is_ready() { *reads + 1 } else { 0 };
            polled.map_ok(Some)
        })
        .await?;
        let Some(count) = count else {
            return Ok(Filled::Lost);
        };
        if let Some(share) = share {
            share.moved(count);
        }
        self.end += count;
        if count == length && self.buffer.len() < ROOM {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        Ok(if count == 0 {
            Filled::End
        } else {
            Filled::More
        })
    }

    /// Lets go of memory that what is unused, and a request of `at_least` bytes, do not need.
    pub fn tidy(&mut self, at_least: usize) {
        let unused = self.end - self.start;
        let is_of_use = at_least > ROOM && at_least <= self.entitled;
        if self.buffer.len() > ROOM && unused <= ROOM && !is_of_use {
            let mut smaller = vec![0; if unused == 0 { FIRST } else { ROOM }];
            smaller[..unused].copy_from_slice(self.unused());
            let larger = std::mem::replace(&mut self.buffer, smaller);
            self.allowance.keep(larger);
            (self.share, self.entitled) = (None, 0);
            (self.start, self.end) = (0, unused);
        } else if unused == 0 {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Throws away everything.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
        self.tidy(0);
    }

    /// Makes room for at least one byte behind the bytes that are there; `false` if the right to them was lost.
    async fn make_room(&mut self, at_least: usize) -> bool {
        self.tidy(at_least);
        if self.start > 0 && self.start + at_least > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end < self.buffer.len() {
            return true;
        }
        // Twice as much as has really come, but not more than the request needs, in whole pieces: of a line
        // nobody knows more than that it goes on.
        let wanted = (self.buffer.len() * 2)
            .min(at_least.max(ROOM).next_multiple_of(ROOM))
            .max(self.end + 1);
        if wanted > self.entitled.max(ROOM) {
            let is_line = at_least == self.end - self.start + 1;
            let whole = if is_line { GET_LINE_MAX } else { at_least };
            let whole = whole.max(wanted).next_multiple_of(ROOM);
            let mut taking = pin!(self.allowance.take(whole));
            let old = self.share.as_ref();
            let share = poll_fn(|cx| {
                if old.is_some_and(|share| share.poll_lost(cx)) {
                    return Poll::Ready(None);
                }
                taking.as_mut().poll(cx).map(Some)
            });
            let Some(share) = share.await else {
                return false;
            };
            (self.share, self.entitled) = (Some(share), whole);
            if let Some(mut spare) = self.allowance.spare(whole) {
                spare.extend_from_slice(&self.buffer[..self.end]);
                self.buffer = spare;
            }
        }
        self.buffer.reserve_exact(wanted - self.buffer.len());
        self.buffer.resize(wanted, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::Arc,
        task::{Context, Waker},
    };

    /// A client that has always sent more than there is room for.
    struct Endless {
        reads: usize,
    }

    impl AsyncRead for Endless {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            self.reads += 1;
            Poll::Ready(Ok(room.len()))
        }
    }

    #[test]
    fn a_long_line_is_read_in_large_pieces_although_nobody_knows_its_length() {
        let allowance = Allowance::new(1 << 20, Arc::default());
        let mut input = Input::new(&allowance);
        let mut client = Endless { reads: 0 };
        while input.unused().len() < 256 << 10 {
            let at_least = input.unused().len() + 1;
            let mut filled = pin!(input.fill(&mut client, at_least));
            let mut cx = Context::from_waker(Waker::noop());
            while filled.as_mut().poll(&mut cx).is_pending() {}
        }
        assert!(client.reads < 40, "{} reads", client.reads);
        assert_eq!(
            input.unused().len(),
            256 << 10,
            "no more than it was asked for"
        );
    }
}
