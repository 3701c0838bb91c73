//! What a connection has received and not yet used: one buffer, filled by reads as long as it has room.
//!
//! A buffer starts small, for most of ten thousand connections wait; it doubles when a read fills it, up to
//! [`ROOM`], and shrinks again when it is empty. A value longer than that makes it as long as the value, as
//! its bytes arrive: announcing a large value costs nothing. What lies beyond [`ROOM`] is taken from one
//! [`Allowance`] of the whole server, so ten thousand clients that send large values at a trickle do not fill
//! the memory.

use futures_io::AsyncRead;
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Poll,
};

/// The length of a connection's buffer at first.
const FIRST: usize = 2048;

/// The length up to which a buffer grows to save reads.
pub const ROOM: usize = 64 * 1024;

/// After so many reads that had not to wait, a connection lets others run.
const READS_BEFORE_YIELD: u32 = 32;

/// Bytes that all buffers together may take beyond [`ROOM`] each.
#[derive(Debug)]
pub struct Allowance {
    left: AtomicUsize,
}

impl Allowance {
    /// An allowance of `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Allowance {
            left: AtomicUsize::new(bytes),
        }
    }

    fn take(&self, bytes: usize) -> bool {
        let take = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Relaxed, Relaxed, take).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Relaxed);
    }
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// There is more than before.
    More,
    /// The client has closed its side.
    End,
    /// There is no memory for what the client sends.
    NoMemory,
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
    taken: usize,
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
            taken: 0,
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

    /// Receives more, with a view to having `at_least` unused bytes in the end.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn fill<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        at_least: usize,
    ) -> io::Result<Filled> {
        if !self.make_room(at_least) {
            return Ok(Filled::NoMemory);
        }
        let room = &mut self.buffer[self.end..];
        let length = room.len();
        let (reads, limit) = (&mut self.reads_at_once, READS_BEFORE_YIELD);
        let count = poll_fn(|cx| {
            if *reads >= limit {
                *reads = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let polled = Pin::new(&mut *stream).poll_read(cx, room);
            *reads = if polled.is_ready() { *reads + 1 } else { 0 };
            polled
        })
        .await?;
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

    /// Makes room for at least one byte behind those that are there.
    fn make_room(&mut self, at_least: usize) -> bool {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > ROOM && at_least <= ROOM {
                self.buffer = vec![0; FIRST];
                self.give_back();
            }
        } else if self.start > 0 && self.start + at_least > self.buffer.len() {
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
        if wanted > ROOM {
            let more = wanted - self.buffer.len().max(ROOM);
            if !self.allowance.take(more) {
                return false;
            }
            self.taken += more;
        }
        self.buffer.reserve_exact(wanted - self.buffer.len());
        self.buffer.resize(wanted, 0);
        true
    }

    fn give_back(&mut self) {
        self.allowance.give_back(std::mem::take(&mut self.taken));
    }
}

impl Drop for Input<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future::Future,
        pin::pin,
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
        let allowance = Allowance::new(1 << 20);
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
